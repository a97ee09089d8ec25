"""What a cluster loses: Pods of kubeadm before and after a change, and the kubelet's configuration."""

from collections.abc import Callable
from typing import Any

import pytest

from garboard.documents import Json, read_yaml
from garboard.model import DEFAULT_VERSION
from garboard.rules import ComponentPod, DocumentField, check_component, weakened, weakened_kubelet
from garboard.schema import load_schema
from tests.support.rules.component_pods import changed_pod, component_pod

SCHEMA = load_schema(DEFAULT_VERSION)
KUBELET = """
staticPodPath: /etc/kubernetes/manifests
rotateCertificates: true
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
authentication:
  {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}}
authorization: {mode: Webhook}
"""


def set_flag(main: Any, name: str, value: str | None) -> None:
    """Change a flag of kubeadm's command, add it, or remove it."""
    words = [word for word in main["command"] if not word.startswith(f"--{name}=")]
    main["command"] = words if value is None else [*words, f"--{name}={value}"]


@pytest.mark.parametrize("component", ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"])
def test_pod_that_stays_as_it_is_loses_nothing(component: str) -> None:
    pod = component_pod(component)
    assert weakened(pod, pod, component, SCHEMA) == []
    assert list(check_component(ComponentPod(DocumentField(pod)["spec"], component, SCHEMA))) == []


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param(lambda spec, main: main.update(name="other"), "container-removed", id="container"),
        pytest.param(lambda spec, main: main.update(command=["/bin/sh", "-c", "x"]), "program-changed", id="program"),
        pytest.param(lambda spec, main: main.pop("command"), "program-changed", id="command"),
        pytest.param(lambda spec, main: main.update(command=main["command"][:1]), "flag-removed", id="all flags"),
        pytest.param(lambda spec, main: spec.update(restartPolicy="Never"), "restart-off", id="restarts"),
        pytest.param(
            lambda spec, main: set_flag(main, "client-ca-file", None), "critical-flag-removed", id="client-ca-file"
        ),
        pytest.param(
            lambda spec, main: set_flag(main, "etcd-servers", None), "critical-flag-removed", id="etcd-servers"
        ),
        pytest.param(
            lambda spec, main: set_flag(main, "etcd-servers", "https://10.0.0.9:2379"),
            "critical-flag-changed",
            id="another etcd",
        ),
        pytest.param(
            lambda spec, main: set_flag(main, "authorization-mode", "Node,RBAC,AlwaysAllow"),
            "authorization-weakened",
            id="AlwaysAllow",
        ),
        pytest.param(
            lambda spec, main: set_flag(main, "authorization-mode", "RBAC"), "authorization-weakened", id="no Node"
        ),
        pytest.param(
            lambda spec, main: set_flag(main, "enable-admission-plugins", "AlwaysPullImages"),
            "admission-weakened",
            id="no NodeRestriction",
        ),
        pytest.param(lambda spec, main: main.pop("livenessProbe"), "probe-removed", id="liveness"),
        pytest.param(lambda spec, main: main.pop("startupProbe"), "probe-removed", id="startup"),
        pytest.param(
            lambda spec, main: main["readinessProbe"]["httpGet"].update(path="/"), "probe-changed", id="another path"
        ),
        pytest.param(lambda spec, main: spec.update(hostNetwork=False), "host-network-off", id="host network"),
        pytest.param(lambda spec, main: main.update(volumeMounts=[]), "mount-removed", id="all mounts"),
        pytest.param(
            lambda spec, main: spec["volumes"][1]["hostPath"].update(path="/elsewhere"), "mount-changed", id="a folder"
        ),
        pytest.param(lambda spec, main: spec.pop("priorityClassName"), "priority-lowered", id="priority"),
        pytest.param(
            lambda spec, main: main.update(securityContext={"privileged": True}), "privileged-container", id="rights"
        ),
    ],
)
def test_loss_of_the_api_server_is_found(change: Callable[[Any, Any], object], code: str) -> None:
    found = weakened(component_pod(), changed_pod(change), "kube-apiserver", SCHEMA)
    assert code in {each.code for each in found}
    assert all(each.rule.is_acceptable for each in found)


def test_etcd_that_no_longer_demands_certificates_is_found() -> None:
    after = changed_pod(lambda spec, main: set_flag(main, "client-cert-auth", "false"), "etcd")
    found = weakened(component_pod("etcd"), after, "etcd", SCHEMA)
    assert [each.code for each in found] == ["authentication-weakened"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda spec, main: set_flag(main, "profiling", "false"), id="another flag"),
        pytest.param(lambda spec, main: main["livenessProbe"].update(failureThreshold=20), id="a threshold"),
        pytest.param(lambda spec, main: spec["containers"].append({"name": "b", "image": "c"}), id="a sidecar"),
        pytest.param(
            lambda spec, main: set_flag(main, "enable-admission-plugins", "NodeRestriction,AlwaysPullImages"),
            id="one more plugin",
        ),
        pytest.param(lambda spec, main: main.update(image="example.com/apiserver:v1"), id="an image"),
    ],
)
def test_what_patches_are_for_is_no_loss(change: Callable[[Any, Any], object]) -> None:
    assert weakened(component_pod(), changed_pod(change), "kube-apiserver", SCHEMA) == []


@pytest.mark.parametrize(
    ("words", "volumes", "code"),
    [
        pytest.param(
            ["--audit-policy-file=/etc/kubernetes/pki/policy.yaml"], [], "audit-without-backend", id="no backend"
        ),
        pytest.param(["--audit-log-path=/etc/kubernetes/pki/log"], [], "audit-without-backend", id="no policy"),
        pytest.param(
            ["--encryption-provider-config=/etc/kubernetes/enc/enc.yaml"], [], "unmounted-file", id="encryption file"
        ),
        pytest.param(["--secure-port=6443"], [], "repeated-flag", id="a second port"),
        pytest.param(
            [], [("/etc/kubernetes/audit.yaml", "DirectoryOrCreate")], "host-path-type", id="a folder called as a file"
        ),
        pytest.param([], [("/var/log/kubernetes/", "File")], "host-path-type", id="a file called as a folder"),
        pytest.param([], [("/a/b", "File"), ("/a/b", "Directory")], "host-path-type", id="two types of one path"),
        pytest.param(
            ["--audit-policy-file=/x/policy", "--audit-log-path=-"],
            [("/x/policy", "DirectoryOrCreate")],
            "host-path-type",
            id="a folder where the flag reads a file",
        ),
        pytest.param(
            ["--encryption-provider-config=/enc/config"],
            [("/enc", "FileOrCreate")],
            "host-path-type",
            id="a file where the flag needs a folder",
        ),
    ],
)
def test_contradiction_is_found(words: list[str], volumes: list[tuple[str, str]], code: str) -> None:
    def change(spec: Any, main: Any) -> None:
        main["command"] += words
        for number, (path, type_) in enumerate(volumes):
            spec["volumes"].append({"name": f"v{number}", "hostPath": {"path": path, "type": type_}})
            main["volumeMounts"].append({"name": f"v{number}", "mountPath": f"{path}{number or ''}"})

    pod = ComponentPod(DocumentField(changed_pod(change))["spec"], "kube-apiserver", SCHEMA)
    assert code in {each.code for each in check_component(pod)}


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(
            ["--audit-policy-file=/etc/kubernetes/pki/policy", "--audit-log-path=/dev/stdout"],
            id="a file of every container",
        ),
        pytest.param(["--audit-policy-file=/etc/kubernetes/pki/policy", "--audit-log-path=-"], id="no file"),
        pytest.param(["--service-account-issuer=https://old.example"], id="a flag that is repeated to rotate it"),
        pytest.param(["--encryption-provider-config=$(CONFIG)"], id="a value from the environment"),
    ],
)
def test_what_only_looks_like_a_contradiction_is_none(words: list[str]) -> None:
    pod = changed_pod(lambda spec, main: main["command"].extend(words))
    assert list(check_component(ComponentPod(DocumentField(pod)["spec"], "kube-apiserver", SCHEMA))) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("staticPodPath: ''", "static-pods-off", id="static pods"),
        pytest.param("rotateCertificates: false", "rotation-off", id="rotation"),
        pytest.param("clusterDNS: []", "cluster-dns-removed", id="DNS"),
        pytest.param("authorization: {mode: AlwaysAllow}", "authorization-weakened", id="authorization"),
        pytest.param("authentication: {anonymous: {enabled: true}}", "authentication-weakened", id="anonymous"),
        pytest.param("readOnlyPort: 10255", "authentication-weakened", id="a port without credentials"),
    ],
)
def test_loss_of_a_node_is_found(text: str, code: str) -> None:
    before, change = read_yaml(KUBELET, source="before"), read_yaml(text, source="change")
    assert isinstance(before, dict)
    assert isinstance(change, dict)
    after: Json = {**before, **change}
    assert code in {each.code for each in weakened_kubelet(before, after)}
    assert weakened_kubelet(before, before) == []


def test_second_authorization_mode_is_found_where_the_first_one_stays() -> None:
    after = changed_pod(lambda spec, main: main["command"].append("--authorization-mode=Webhook"))
    found = weakened(component_pod(), after, "kube-apiserver", SCHEMA)
    assert [each.code for each in found] == ["repeated-flag"]


def test_anonymous_requests_are_told_only_if_they_were_refused() -> None:
    refusing = changed_pod(lambda spec, main: set_flag(main, "anonymous-auth", "false"))
    serving = changed_pod(lambda spec, main: set_flag(main, "anonymous-auth", "true"))
    assert weakened(component_pod(), serving, "kube-apiserver", SCHEMA) == []
    [found] = weakened(refusing, serving, "kube-apiserver", SCHEMA)
    assert found.code == "authentication-weakened"


@pytest.mark.parametrize("name", ["name", "initial-cluster", "advertise-client-urls", "listen-peer-urls"])
def test_flag_of_a_node_depends_on_it(name: str) -> None:
    after = changed_pod(lambda spec, main: set_flag(main, name, "https://10.0.0.9:2379"), "etcd")
    found = weakened(component_pod("etcd"), after, "etcd", SCHEMA)
    assert {(each.code, each.depends_on_node) for each in found} == {("critical-flag-changed", True)}


def test_version_of_an_image_depends_on_the_configuration_within_its_minor() -> None:
    image = component_pod()["spec"]["containers"][0]["image"]
    minor, _, patch = image.rpartition(".")
    for other, depends in ((f"{minor}.{int(patch) + 1}", True), ("registry.k8s.io/kube-apiserver:v1.20.0", False)):
        after = changed_pod(lambda spec, main, other=other: main.update(image=other))  # type: ignore[misc]
        [found] = weakened(component_pod(), after, "kube-apiserver", SCHEMA)
        assert (found.code, found.depends_on_node) == ("image-changed", depends)
