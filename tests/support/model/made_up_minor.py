"""Everything that knows minors, walked through with a minor that does not exist: `python -m` this module.

Runs where garboard is a copy to which the row of Kubernetes 1.38 and its schema data were added, and nothing else.
Prints a JSON object: for each walk that failed, its traceback.
"""

import json
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import fields, replace
from io import StringIO

import pytest

from garboard.cli.main import run
from garboard.config import (
    ConfigFile,
    ConfigNotes,
    FixedFacts,
    ReadOptions,
    check_file,
    configuration_text,
    load_stored_cluster,
    migrated_text,
    parse_feature_gates,
    resolve_version,
)
from garboard.config.printing import (
    init_defaults_text,
    join_defaults_text,
    reset_defaults_text,
    upgrade_defaults_text,
)
from garboard.documents import Json
from garboard.engine import PutObject, WriteFile, plan_as_json, plan_as_text
from garboard.errors import BadUsage, InvalidValue
from garboard.lab.binaries.pins import read_pins
from garboard.manifests import NodeHost
from garboard.manifests.api_server import authorization_warnings
from garboard.manifests.coredns import coredns_objects
from garboard.manifests.kube_proxy import kube_proxy_objects
from garboard.manifests.kubelet import kubelet_files
from garboard.manifests.static_pods import CONTROL_PLANE, control_plane_pod, etcd_pod, static_pod_file
from garboard.model import DEFAULT_VERSION, SUPPORTED_VERSIONS, KubernetesVersion, Minor
from garboard.model.cluster import ClusterConfiguration, control_plane_images
from garboard.model.component import ApiServer, Arg, ControlPlaneComponent, ExternalEtcd
from garboard.model.minors import facts_of
from garboard.model.node import ApiEndpoint, NodeRegistration
from garboard.patches import NodeFacts, PatchChecks, PatchFile, lint_tree, targets_of
from garboard.phases import plan_workflow, select
from garboard.phases.init import INIT
from garboard.phases.join import JOIN
from garboard.phases.patching import NodePatches
from garboard.phases.preflight import (
    ObservedRuntime,
    PreflightFinding,
    control_plane_checks,
    join_checks,
    plan_images,
    run_checks,
)
from garboard.rules.kube_proxy import check_kube_proxy
from garboard.rules.kubelet import check_kubelet
from garboard.rules.pod import check_pod
from garboard.schema import load_schema
from tests.support.manifests.nodes import node
from tests.support.phases.join.clusters import CONTROL_PLANE as CONTROL_PLANE_JOIN
from tests.support.phases.join.clusters import JOIN as JOIN_CONFIG
from tests.support.phases.join.clusters import MemoryCluster, context_of, load_join
from tests.support.phases.machines import CONFIG as INIT_CONFIG
from tests.support.phases.machines import MemoryMachine, context_on
from tests.support.phases.preflight.inspectors import MemoryInspector
from tools.schema.generate import etcd_version

VERSION = KubernetesVersion(1, 38, 0)
FACTS = facts_of(VERSION)
FORMER = facts_of(KubernetesVersion(1, 37, 1))
CLUSTER = ClusterConfiguration(kubernetes_version="v1.38.0")
NODE = NodeRegistration(name="node-1", cri_socket="unix:///run/containerd/containerd.sock")
ENDPOINT = ApiEndpoint(advertise_address="192.0.2.10")
DOCUMENTS = """\
apiVersion: kubeadm.k8s.io/v1
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 192.0.2.10}
---
apiVersion: kubeadm.k8s.io/v1
kind: ClusterConfiguration
kubernetesVersion: v1.38.0
featureGates: {MadeUpGate: false}
apiServer:
  extraArgs: [{name: enable-admission-plugins, value: ",AlwaysPullImages", mergeMethod: append}]
"""


def read(text: str, **options: bool) -> ConfigFile:
    return ConfigFile.read(text, file="kubeadm.yaml", host=FixedFacts(), options=ReadOptions(**options))


def row_has_nothing_of_the_last_one() -> None:
    """What both rows had in common could come from anywhere."""
    for row, other in ((FACTS, FORMER), (FACTS.config_api, FORMER.config_api)):
        assert [each.name for each in fields(row) if getattr(row, each.name) == getattr(other, each.name)] == []


def versions_are_listed() -> None:
    assert DEFAULT_VERSION == VERSION == SUPPORTED_VERSIONS[-1]
    assert resolve_version("stable-1.38").text == resolve_version("stable").text == "v1.38.0"
    with redirect_stdout(StringIO()) as shown:
        assert run(["version"]) == 0
    assert "1.38 (as v1.38.0, default)" in shown.getvalue()
    assert etcd_version(VERSION) == "v3.8.0"


def configuration_is_loaded_and_printed() -> None:
    loaded = read(DOCUMENTS).init()
    (arg,) = loaded.config.cluster.api_server.extra_args
    assert arg == Arg("enable-admission-plugins", ",AlwaysPullImages", "append")
    assert loaded.components.kube_proxy.tree["mode"] == "nftables"
    text = configuration_text(loaded.config, FACTS)
    assert "apiVersion: kubeadm.k8s.io/v1\n" in text
    assert "mergeMethod: append" in text
    assert read(text).init().config == loaded.config
    stored = load_stored_cluster(text.partition("---\n")[2], FixedFacts()).config
    assert stored.api_server == loaded.config.cluster.api_server


def older_api_version_is_read_with_a_warning_and_migrated() -> None:
    old = DOCUMENTS.replace("kubeadm.k8s.io/v1\n", "kubeadm.k8s.io/v1beta4\n").replace(", mergeMethod: append", "")
    assert any("deprecated API spec" in warning for warning in read(old).init().warnings)
    file = read(old, is_strict=True, migrates=True)
    assert "apiVersion: kubeadm.k8s.io/v1\n" in migrated_text(check_file(file), file)


def gates_are_those_of_the_row() -> None:
    assert parse_feature_gates("MadeUpGate=false", FACTS, ConfigNotes()) == {"MadeUpGate": False}
    with pytest.raises(BadUsage):
        parse_feature_gates("PublicKeysECDSA=true", FACTS, ConfigNotes())
    with pytest.raises(InvalidValue):
        facts_of(KubernetesVersion(1, 39))


def defaults_are_printed() -> None:
    kinds = ("KubeletConfiguration", "KubeProxyConfiguration")
    assert "kubernetesVersion: 1.38.0" in init_defaults_text(FACTS, kinds)
    for text in (join_defaults_text(FACTS, "node"), reset_defaults_text(FACTS), upgrade_defaults_text(FACTS)):
        assert text.startswith("apiVersion: kubeadm.k8s.io/v1\n")


def node_files_and_addons_are_rendered() -> None:
    rendered = node(CLUSTER)
    for pod in (*(control_plane_pod(name, rendered) for name in CONTROL_PLANE), etcd_pod(rendered)):
        image = b"etcd:3.8.0-0" if pod.name == "etcd" else f"{pod.name}:v1.38.0".encode()
        assert image in static_pod_file(pod).content
    components = read(DOCUMENTS).init().components
    kubelet = components.kubelet.printed(FACTS)
    files = kubelet_files(
        kubelet, CLUSTER, NODE, NodeHost(hostname="node-1"), kind="InitConfiguration", registers_taints=False
    )
    assert len([*files]) == 3
    assert any("coredns:v1.14.4" in str(each.content) for each in coredns_objects(CLUSTER))
    proxy = components.kube_proxy.printed(FACTS)
    assert kube_proxy_objects(CLUSTER, ENDPOINT, proxy, is_user_supplied=False, environment={})
    assert "registry.k8s.io/pause:3.11" in control_plane_images(CLUSTER)


def init_is_planned() -> None:
    machine = MemoryMachine(services=set())
    plan = plan_workflow(select(INIT), context_on(machine, INIT_CONFIG.replace("v1.37.1", "v1.38.0")))
    written = {step.action.path for step in plan.steps if isinstance(step.action, WriteFile)}
    assert "/etc/kubernetes/manifests/kube-apiserver.yaml" in written
    assert any(isinstance(step.action, PutObject) for step in plan.steps)
    assert "v1.38.0" in plan_as_text(plan) + json.dumps(plan_as_json(plan))


def join_is_planned() -> None:
    cluster = MemoryCluster.made(version="v1.38.0")
    worker = plan_workflow(select(JOIN), context_of(cluster, MemoryMachine(services=set())))
    control_plane = plan_workflow(
        select(JOIN), context_of(cluster, MemoryMachine(services=set()), JOIN_CONFIG + CONTROL_PLANE_JOIN)
    )
    assert 0 < len(worker.steps) < len(control_plane.steps)


def told_by_preflight(inspector: MemoryInspector) -> dict[str, PreflightFinding]:
    join = load_join(JOIN_CONFIG)
    checks = (*control_plane_checks(CLUSTER, ENDPOINT, NODE), *join_checks(join, FACTS))
    return {each.check: each for each in run_checks(checks, inspector)}


def machine_is_checked() -> None:
    names = {"node-1", "node-2"}
    assert told_by_preflight(MemoryInspector(kubelet="v1.38.0", names=names)) == {}
    found = told_by_preflight(
        MemoryInspector(kubelet="v1.34.9", names=names, seen=ObservedRuntime(has_runtime_config=False))
    )
    assert found.keys() == {"KubeletVersion", "ContainerRuntimeVersion"}
    assert "1.35 at least" in found["KubeletVersion"].text
    assert "kubelets of 1.40" in found["ContainerRuntimeVersion"].text
    assert [*plan_images(CLUSTER, NODE, MemoryInspector(), frozenset())]


def by_both(answer: Callable[[KubernetesVersion], object]) -> list[bool]:
    """Say whether there is an answer for the made-up minor, and for the last one."""
    return [bool(answer(each)) for each in (VERSION, FORMER.reference)]


def warnings_about(proxy: str, version: KubernetesVersion) -> list[str]:
    document = f"---\napiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n{proxy}\n"
    text = INIT_CONFIG.replace("v1.37.1", str(version)) + document
    return [each for each in read(text).init().warnings if "KubeProxyConfiguration" in each]


def kube_proxy_is_warned_about_by_the_row() -> None:
    assert by_both(lambda version: warnings_about("mode: ipvs", version)) == [False, True]
    assert by_both(lambda version: warnings_about("bindAddress: '::'", version)) == [True, False]


def empty_authorization_mode_is_judged_by_the_row() -> None:
    def warned(version: KubernetesVersion) -> bool:
        server = ApiServer(extra_args=(Arg("authorization-mode", "Node,,RBAC"),))
        cluster = ClusterConfiguration(kubernetes_version=str(version), api_server=server)
        return any(
            'unknown kube-apiserver authorization-mode ""' in each for each in authorization_warnings(node(cluster))
        )

    assert by_both(warned) == [True, False]


def uploaded_kubelet_configuration_is_that_of_the_row() -> None:
    def leaks(version: KubernetesVersion) -> bool:
        context = context_on(MemoryMachine(services=set()), INIT_CONFIG.replace("v1.37.1", str(version)))
        context = replace(context, host=NodeHost(hostname="node-1", is_systemd_resolved_active=True))
        plan = plan_workflow(select(INIT), context)
        puts = [step.action for step in plan.steps if isinstance(step.action, PutObject)]
        (uploaded,) = (each for each in puts if each.kind == "ConfigMap" and each.name == "kubelet-config")
        return "/run/systemd/resolve/resolv.conf" in json.dumps(uploaded.content)

    assert by_both(leaks) == [True, False]


def ports_and_external_etcd_are_checked_by_the_row() -> None:
    def found(cluster: ClusterConfiguration, **machine: object) -> set[str]:
        inspector = MemoryInspector(names={"node-1"}, **machine)  # type: ignore[arg-type]
        return {each.check for each in run_checks(control_plane_checks(cluster, ENDPOINT, NODE), inspector)}

    def taken(version: KubernetesVersion) -> bool:
        # The scheduler is to listen at one address, and something else listens at another one.
        scheduler = ControlPlaneComponent(extra_args=(Arg("bind-address", "127.0.0.1"),))
        cluster = ClusterConfiguration(kubernetes_version=str(version), scheduler=scheduler)
        return "Port-10259" in found(cluster, kubelet=str(version), taken={("192.0.2.10", 10259)})

    def is_old(version: KubernetesVersion) -> bool:
        etcd = ExternalEtcd(endpoints=("https://a:2379",), ca_file="/a", cert_file="/b", key_file="/c")
        cluster = ClusterConfiguration(kubernetes_version=str(version), etcd=etcd)
        return "ExternalEtcdVersion" in found(cluster, kubelet=str(version), etcd="3.6.8")

    assert by_both(taken) == [True, False]
    assert by_both(is_old) == [True, False]


def results_are_judged_by_the_row() -> None:
    pod: Json = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "a"},
        "spec": {
            "containers": [{"name": "a", "image": "a"}], "volumes": [{"name": "v", "image": {"pullPolicy": "Always"}}],
        },
    }  # fmt: skip
    kubelet: Json = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "memoryThrottlingFactor": 0.5,
        "featureGates": {"MemoryQoS": False},
    }  # fmt: skip
    assert by_both(lambda version: [each for each in check_pod(pod, version) if "image" in str(each)]) == [False, True]
    told = by_both(lambda version: [each for each in check_kubelet(kubelet, version) if "MemoryQoS" in str(each)])
    assert told == [False, True]
    proxy: Json = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
        "nodePortAddresses": ["primary", "elsewhere"],
    }  # fmt: skip
    assert by_both(lambda version: check_kube_proxy(proxy, version) == []) == [True, False]


def patches_are_linted_and_applied() -> None:
    assert tuple(target.name for target in targets_of(VERSION)) == FACTS.patch_targets
    schema = load_schema(VERSION)
    texts = {
        "kube-apiserver.yaml": "spec: {nodeNam: a}\n",
        "corednsdeployment.yaml": "spec: {replicas: 3}\n",
        "kube-scheduler0.yaml": "spec: {containers: [{name: kube-scheduler, command: [kube-scheduler, --nonsense]}]}\n",
    }
    files = [PatchFile(name, name, text.encode) for name, text in texts.items()]
    findings = lint_tree(files, PatchChecks(schema), NodeFacts(), ())
    assert {each.where.partition(":")[0]: each.error_class for each in findings} == {
        "kube-apiserver.yaml": "unknown-field",
        "corednsdeployment.yaml": "unknown-target",
        "kube-scheduler0.yaml": "unknown-flag",
    }
    assert any("Kubernetes 1.38" in each.message for each in findings)
    files = [PatchFile("etcd.yaml", "etcd.yaml", "metadata: {labels: {a: b}}\n".encode)]
    patcher = NodePatches(lambda: files).begin(schema.version)
    assert "a: b" in static_pod_file(etcd_pod(node(CLUSTER)), patcher).content.decode()


def lab_without_its_pins_says_so() -> None:
    with pytest.raises(BadUsage, match=r"Kubernetes v1\.38\.0 is not known to the lab") as refused:
        read_pins().wanted("kubeadm", kubernetes="v1.38.0")
    assert refused.value.hint is not None
    assert "v1.38" not in refused.value.hint


WALKS: tuple[Callable[[], None], ...] = (
    row_has_nothing_of_the_last_one,
    versions_are_listed,
    configuration_is_loaded_and_printed,
    older_api_version_is_read_with_a_warning_and_migrated,
    gates_are_those_of_the_row,
    defaults_are_printed,
    node_files_and_addons_are_rendered,
    init_is_planned,
    join_is_planned,
    machine_is_checked,
    kube_proxy_is_warned_about_by_the_row,
    empty_authorization_mode_is_judged_by_the_row,
    uploaded_kubelet_configuration_is_that_of_the_row,
    ports_and_external_etcd_are_checked_by_the_row,
    results_are_judged_by_the_row,
    patches_are_linted_and_applied,
    lab_without_its_pins_says_so,
)


def failures() -> dict[str, str]:
    found = {}
    for walk in WALKS:
        try:
            walk()
        except Exception:  # noqa: BLE001 - whatever it is, the test that started this process shows it
            found[walk.__name__] = traceback.format_exc()
    return found


if __name__ == "__main__":
    assert FACTS.minor == Minor(1, 38)
    print(json.dumps(failures()))
