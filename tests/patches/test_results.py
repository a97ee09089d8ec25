"""Results of patches, judged: each line of the list of patches that destroy a control plane gives its finding."""

import pytest

from garboard.documents import Json, read_yaml
from garboard.model import DEFAULT_VERSION
from garboard.patches import (
    Finding,
    Patch,
    PatchChecks,
    PatchRefused,
    PatchSubject,
    PatchType,
    Severity,
    SourceText,
    apply_patches,
    find_target,
    lint_patches,
    read_patch_file,
    refuse_errors,
)
from garboard.schema import load_schema
from tests.support.rules.component_pods import component_pod
from tests.support.rules.workloads import workload

SCHEMA = load_schema(DEFAULT_VERSION)
KUBELET = """
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: /etc/kubernetes/manifests
cgroupDriver: systemd
"""
MOUNT = "spec: {containers: [{name: kube-apiserver, volumeMounts: [{name: audit, mountPath: /var/log/audit}]}]}"
VOLUME = "spec: {volumes: [{name: audit, hostPath: {path: /var/log/audit, type: DirectoryOrCreate}}]}"
COMMAND = (
    "spec: {containers: [{name: kube-apiserver, command: [kube-apiserver, --etcd-servers=https://127.0.0.1:2379]}]}"
)


def original(target: str) -> Json:
    return read_yaml(KUBELET, source="base") if target == "kubeletconfiguration" else component_pod(target)


def patches_of(*texts: tuple[str, str]) -> list[Patch]:
    return [
        Patch.from_yaml(SourceText(f"{number}.yaml", text), PatchType(type_))
        for number, (type_, text) in enumerate(texts, start=1)
    ]


def lint(*texts: tuple[str, str], target: str = "kube-apiserver") -> list[Finding]:
    subject = PatchSubject.of_target(find_target(target, DEFAULT_VERSION), SCHEMA)
    return lint_patches(patches_of(*texts), subject, PatchChecks(SCHEMA), [original(target)])


def main(text: str) -> str:
    """Return a strategic patch of the main container."""
    return f"spec: {{containers: [{{name: kube-apiserver, {text}}}]}}"


@pytest.mark.parametrize(
    ("type_", "text", "codes"),
    [
        pytest.param(
            "merge",
            "spec: {containers: [{name: kube-apiserver}]}",
            {"required-field", "program-changed", "probe-removed", "mount-removed"},
            id="a merge patch that drops image, command and probes",
        ),
        pytest.param(
            "strategic",
            COMMAND,
            {"critical-flag-removed", "flag-removed", "missing-flag"},
            id="a command list that drops flags",
        ),
        pytest.param(
            "strategic",
            "spec: {containers: [{name: kube-apiserver, $patch: delete}]}",
            {"required-field", "container-removed"},
            id="the only container deleted",
        ),
        pytest.param(
            "merge", "spec: {containers: null}", {"required-field", "container-removed"}, id="containers: null"
        ),
        pytest.param("strategic", main('image: ""'), {"required-field"}, id="an empty image"),
        pytest.param("strategic", MOUNT, {"missing-volume"}, id="a mount without its volume"),
        pytest.param(
            "strategic",
            "spec: {volumes: [{name: ca-certs, emptyDir: {}}]}",
            {"several-sources"},
            id="a volume with two sources",
        ),
        pytest.param(
            "strategic",
            "spec: {volumes: [{name: a, hostPath: {path: /etc/kubernetes/audit.yaml, type: DirectoryOrCreate}}],"
            " containers: [{name: kube-apiserver, volumeMounts: [{name: a, mountPath: /etc/kubernetes/audit.yaml}]}]}",
            {"host-path-type"},
            id="a hostPath whose type contradicts",
        ),
        pytest.param(
            "json",
            "[{op: add, path: /spec/volumes/-, value: {name: a, emptyDir: {}}},"
            " {op: copy, from: /spec/volumes/5, path: /spec/volumes/-}]",
            {"duplicate-name"},
            id="two volumes of one name",
        ),
        pytest.param(
            "json",
            "[{op: add, path: /spec/containers/0/volumeMounts/-, value: {name: k8s-certs, mountPath: /a}},"
            " {op: add, path: /spec/containers/0/volumeMounts/-, value: {name: ca-certs, mountPath: /a}}]",
            {"duplicate-mount-path"},
            id="two mounts at one path",
        ),
        pytest.param(
            "strategic",
            main("resources: {limits: {cpu: 100m}}"),
            {"requests-above-limits"},
            id="a limit below the request of kubeadm",
        ),
        pytest.param(
            "strategic", main("resources: {requests: {memroy: 1Gi}}"), {"unknown-resource"}, id="a misspelt resource"
        ),
        pytest.param(
            "strategic", main("resources: {requests: {memory: 1GB}}"), {"wrong-type"}, id="a quantity of no unit"
        ),
        pytest.param(
            "strategic", main("imagePullPolicy: Sometimes"), {"unsupported-value"}, id="imagePullPolicy: Sometimes"
        ),
        pytest.param("strategic", "spec: {restartPolicy: always}", {"unsupported-value"}, id="restartPolicy: always"),
        pytest.param("strategic", main("ports: [{containerPort: 99999}]"), {"out-of-range"}, id="a port out of range"),
        pytest.param(
            "strategic",
            "spec: {volumes: [{name: Audit_Log, hostPath: {path: /a}}]}",
            {"bad-name"},
            id="a name that is no DNS label",
        ),
        pytest.param(
            "json",
            "- {op: add, path: /spec/containers/0/command/-, value: --authorization-mode=AlwaysAllow}",
            {"repeated-flag", "authorization-weakened"},
            id="a second --authorization-mode",
        ),
        pytest.param("args", "profiling: perhaps", {"bad-flag-value"}, id="a flag value of the wrong type"),
        pytest.param(
            "args",
            "audit-policy-file: /etc/kubernetes/pki/policy.yaml",
            {"audit-without-backend"},
            id="an audit policy without a backend",
        ),
        pytest.param(
            "args",
            "encryption-provider-config: /etc/kubernetes/enc/enc.yaml",
            {"unmounted-file"},
            id="an encryption file that no mount holds",
        ),
        pytest.param("strategic", main("livenessProbe: null"), {"probe-removed"}, id="a probe of kubeadm"),
        pytest.param("strategic", "spec: {hostNetwork: false}", {"host-network-off"}, id="hostNetwork"),
        pytest.param(
            "strategic",
            main("volumeMounts: [{mountPath: /etc/kubernetes/pki, $patch: delete}]"),
            {"mount-removed"},
            id="the mount of the certificates",
        ),
        pytest.param("args", "etcd-servers: null", {"critical-flag-removed", "missing-flag"}, id="--etcd-servers"),
        pytest.param("strategic", "spec: {restartPolicy: Never}", {"restart-off"}, id="restarts"),
        pytest.param("strategic", "metadata: {namespace: default}", {"object-renamed"}, id="the namespace"),
        pytest.param("merge", "metadata: {name: api}", {"object-renamed"}, id="the name"),
        pytest.param("args", "client-ca-file: null", {"critical-flag-removed"}, id="--client-ca-file"),
    ],
)
def test_patch_that_destroys_a_control_plane_is_found(type_: str, text: str, codes: set[str]) -> None:
    findings = lint((type_, text))
    assert {each.error_class for each in findings} == codes
    assert {each.severity for each in findings} == {Severity.ERROR}
    assert {each.position.line for each in findings} == {1}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("cgroupDriver: systmd", "unsupported-value", id="cgroupDriver"),
        pytest.param("memorySwap: {swapBehavior: All}", "unsupported-value", id="swapBehavior"),
        pytest.param("containerLogMaxSize: 10MB", "bad-quantity", id="containerLogMaxSize"),
        pytest.param("syncFrequency: 1d", "wrong-type", id="a duration in days"),
        pytest.param("staticPodPath: null", "static-pods-off", id="no static pods"),
    ],
)
def test_kubelet_configuration_that_cannot_work_is_found(text: str, code: str) -> None:
    assert [each.error_class for each in lint(("strategic", text), target="kubeletconfiguration")] == [code]


@pytest.mark.parametrize(
    ("type_", "text", "code", "at"),
    [
        pytest.param(
            "strategic", f"# a comment\n{main('imagePullPolicy: no')}", "wrong-type", "1.yaml:2:44", id="type"
        ),
        pytest.param("merge", "spec:\n  restartPolicy: always", "unsupported-value", "1.yaml:2:3", id="a word"),
        pytest.param(
            "json",
            "- op: add\n  path: /spec/containers/0/imagePullPolicy\n  value: Often",
            "unsupported-value",
            "1.yaml:3:3",
            id="the value of an operation",
        ),
    ],
)
def test_value_is_judged_without_a_document(type_: str, text: str, code: str, at: str) -> None:
    subject = PatchSubject.of_target(find_target("kube-apiserver", DEFAULT_VERSION), SCHEMA)
    [found] = lint_patches(patches_of((type_, text)), subject, PatchChecks(SCHEMA))
    assert (found.error_class, found.where) == (code, at)


def test_volume_in_a_later_patch_makes_the_mount_whole() -> None:
    assert lint(("strategic", MOUNT), ("strategic", VOLUME)) == []


def test_finding_is_at_the_patch_that_brought_it_about() -> None:
    gone = "spec: {volumes: [{name: audit, $patch: delete}]}"
    findings = lint(("strategic", MOUNT), ("strategic", VOLUME), ("strategic", gone))
    [found] = [each for each in findings if each.severity is Severity.ERROR]
    assert (found.error_class, found.file) == ("missing-volume", "3.yaml")


def test_fault_of_the_document_itself_is_not_told() -> None:
    pod = component_pod()
    pod["spec"]["restartPolicy"] = "always"
    subject = PatchSubject.of_target(find_target("kube-apiserver", DEFAULT_VERSION), SCHEMA)
    patches = patches_of(("strategic", "spec: {terminationGracePeriodSeconds: 5}"))
    assert lint_patches(patches, subject, PatchChecks(SCHEMA), [pod]) == []


def test_strict_mode_refuses_what_cannot_work() -> None:
    subject = PatchSubject.of_target(find_target("kube-apiserver", DEFAULT_VERSION), SCHEMA)
    applied = apply_patches(
        component_pod(), patches_of(("strategic", MOUNT)), subject, is_traced=True, checks=PatchChecks(SCHEMA)
    )
    with pytest.raises(PatchRefused, match="which the Pod does not have") as refused:
        refuse_errors(applied.findings)
    assert refused.value.error_class == "missing-volume"


@pytest.mark.parametrize(
    ("target", "text", "code"),
    [
        pytest.param("corednsdeployment", "spec: {replicas: -1}", "out-of-range", id="replicas"),
        pytest.param(
            "corednsdeployment",
            "spec: {template: {metadata: {labels: {k8s-app: dns}}}}",
            "selector-mismatch",
            id="labels",
        ),
        pytest.param("corednsdeployment", "spec: {template: {spec: {containers: null}}}", "required-field", id="none"),
        pytest.param(
            "kubeproxydaemonset", "spec: {template: {spec: {hostNetwork: false}}}", "host-network-off", id="net"
        ),
        pytest.param("kubeproxydaemonset", "metadata: {name: proxy}", "object-renamed", id="name"),
    ],
)
def test_result_of_an_addon_is_judged(target: str, text: str, code: str) -> None:
    schema = load_schema(DEFAULT_VERSION)
    known = find_target(target, DEFAULT_VERSION)
    patch = read_patch_file("p.yaml", text.encode(), PatchType.STRATEGIC)
    findings = lint_patches(patch, PatchSubject.of_target(known, schema), PatchChecks(schema), [workload(known.kind)])
    assert code in [each.error_class for each in findings]


@pytest.mark.parametrize(
    ("type_", "text", "code", "line"),
    [
        pytest.param(
            "strategic",
            "metadata: {labels: {a: b}}\nspec:\n  containers:\n  - name: kube-apiserver\n    volumeMounts:\n"
            "    - {$patch: delete, mountPath: /etc/kubernetes/pki}\n",
            "mount-removed",
            6,
            id="an element that is deleted",
        ),
        pytest.param("args", "profiling: false\nclient-ca-file: null\n", "critical-flag-removed", 2, id="a flag"),
        pytest.param(
            "strategic",
            "metadata: {labels: {a: b}}\nspec:\n  containers:\n  - name: kube-apiserver\n    resources:\n"
            "      limits: {cpu: 100m}\n",
            "requests-above-limits",
            6,
            id="a limit below the request of kubeadm",
        ),
        pytest.param(
            "strategic",
            "metadata: {labels: {a: b}}\nspec:\n  volumes:\n  - {name: k8s-certs, emptyDir: {}}\n",
            "several-sources",
            4,
            id="a second source",
        ),
    ],
)
def test_finding_stands_where_the_patch_brings_it_about(type_: str, text: str, code: str, line: int) -> None:
    [found] = [each for each in lint((type_, text)) if each.error_class == code]
    assert found.position.line == line


def test_files_that_are_lost_with_their_mount_are_told_once() -> None:
    mount = "{$patch: delete, mountPath: /etc/kubernetes/pki}"
    text = f"spec: {{containers: [{{name: kube-apiserver, volumeMounts: [{mount}]}}]}}"
    assert [each.error_class for each in lint(("strategic", text))] == ["mount-removed"]
