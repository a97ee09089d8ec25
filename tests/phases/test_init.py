"""Plans of init's phases, from what is found to what is left behind."""

from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garboard.documents import read_yaml
from garboard.engine import AwaitGate, Issue, Plan, Step, WriteFile, plan_as_json, plan_as_text
from garboard.errors import GarboardError, NotReady
from garboard.model.cluster import ClusterConfiguration
from garboard.model.component import Dns
from garboard.model.lifecycle import InitConfiguration
from garboard.patches import PatchFile, PatchRefused
from garboard.phases import plan_workflow, select
from garboard.phases.init import INIT, InitOptions, with_disabled_addons
from garboard.phases.patching import NodePatches
from tests.support.phases.file_phases import applied, apply, plan_all
from tests.support.phases.machines import CONFIG, MemoryMachine, context_on


def plan_one(machine: MemoryMachine, only: str, text: str = CONFIG) -> Plan:
    return plan_workflow(select(INIT, only=only), context_on(machine, text))


def test_whole_node_is_planned_in_the_order_of_the_phases() -> None:
    phases = [step.phase for step in plan_all(MemoryMachine(services=set())).steps]
    assert phases[:3] == ["certs/ca", "certs/apiserver", "certs/apiserver-kubelet-client"]
    assert list(dict.fromkeys(phase.partition("/")[0] for phase in phases)) == [
        "certs", "kubeconfig", "etcd", "control-plane", "kubelet-start"
    ]  # fmt: skip


def test_applying_a_plan_writes_what_it_says_and_nothing_else() -> None:
    machine = MemoryMachine(services=set())
    plan = plan_all(machine)
    apply(plan, machine)
    said = {step.action.path for step in plan.steps if isinstance(step.action, WriteFile)}
    said |= {file.path for step in plan.steps if isinstance(step.action, Issue) for file in step.action.files}
    assert set(machine.files) == said
    assert machine.folders == {"/var/lib/etcd"}
    assert machine.services == {"kubelet"}


def test_planning_again_after_applying_finds_nothing_to_do() -> None:
    machine = applied()
    assert plan_all(machine).steps == ()


@settings(max_examples=25, deadline=None)
@given(st.sets(st.sampled_from(sorted(applied().files))))
def test_plan_heals_what_is_missing_or_refuses(missing: set[str]) -> None:
    machine = applied()
    for path in missing:
        del machine.files[path]
    try:
        plan = plan_all(machine)
    except GarboardError:
        assert any("/pki/" in path for path in missing), "only certificates can be beyond repair"
        return
    assert plan == plan_all(machine)
    assert plan_as_text(plan) == plan_as_text(plan_all(machine))
    apply(plan, machine)
    assert plan_all(machine).steps == ()


def test_equal_inputs_give_equal_plans() -> None:
    assert plan_all(MemoryMachine()) == plan_all(MemoryMachine())
    assert plan_as_json(plan_all(MemoryMachine())) == plan_as_json(plan_all(MemoryMachine()))


def test_changed_file_is_written_again_for_that_cause() -> None:
    machine = applied()
    path = "/etc/kubernetes/manifests/etcd.yaml"
    machine.files[path] += b"# by hand\n"
    (step,) = plan_all(machine).steps
    assert (step.phase, step.cause) == ("etcd/local", "its content differs")


def test_kubelet_stands_still_while_its_files_change() -> None:
    machine = applied()
    machine.files["/var/lib/kubelet/config.yaml"] = b""
    actions = [_told(step) for step in plan_all(machine).steps]
    assert actions == ["stop kubelet", "/var/lib/kubelet/config.yaml", "start kubelet"]


def _told(step: Step) -> str:
    return step.action.path if isinstance(step.action, WriteFile) else f"{step.action.verb} {step.action.service}"  # type: ignore[union-attr]


def test_without_service_manager_there_is_kubeadms_warning() -> None:
    plan = plan_one(MemoryMachine(services=None), "kubelet-start")
    assert all(isinstance(step.action, WriteFile) for step in plan.steps)
    assert [note.text for note in plan.warnings] == [
        "No supported init system detected, won't make sure the kubelet is running properly."
    ]


def test_waiting_is_for_the_kubelet_and_then_for_each_component() -> None:
    steps = plan_one(MemoryMachine(), "wait-control-plane").steps
    gates = [step.action.gate.name for step in steps if isinstance(step.action, AwaitGate)]
    assert gates == [
        "a healthy kubelet", "a healthy kube-apiserver", "a healthy kube-controller-manager", "a healthy kube-scheduler"
    ]  # fmt: skip


def test_timeouts_are_those_of_the_configuration() -> None:
    timeouts = "timeouts: {kubeletHealthCheck: 7s, controlPlaneComponentHealthCheck: 9s}"
    text = CONFIG.replace("localAPIEndpoint", f"{timeouts}\nlocalAPIEndpoint")
    steps = plan_one(MemoryMachine(), "wait-control-plane", text).steps
    assert [step.action.gate.timeout_s for step in steps if isinstance(step.action, AwaitGate)] == [7, 9, 9, 9]


def test_kubeconfig_alone_needs_a_certificate_authority() -> None:
    with pytest.raises(NotReady, match=r"there is no ca.crt \(phase kubeconfig/admin\)"):
        plan_one(MemoryMachine(), "kubeconfig/admin")


def test_kubeconfig_cannot_trust_an_authority_that_is_still_to_be_made() -> None:
    machine = MemoryMachine(files={"/etc/kubernetes/admin.conf": applied().files["/etc/kubernetes/admin.conf"]})
    with pytest.raises(NotReady, match="trusted CA"):
        plan_all(machine)


def test_external_authority_makes_nothing_and_leaves_signing_to_others() -> None:
    machine = applied()
    del machine.files["/etc/kubernetes/pki/ca.key"]
    plan = plan_all(machine)
    (step,) = plan.steps  # kube-controller-manager no longer signs
    assert step.phase == "control-plane/controller-manager"
    assert "--cluster-signing-key-file=\n" in plan_as_text(plan)
    assert Plan(notes=plan.notes).warnings == ()


def test_incomplete_external_authority_is_refused_before_any_phase() -> None:
    machine = applied()
    for name in ("pki/ca.key", "pki/apiserver.crt"):
        del machine.files[f"/etc/kubernetes/{name}"]
    with pytest.raises(NotReady, match="external CA"):
        plan_one(machine, "etcd/local")


def test_external_etcd_has_no_manifest_and_no_certificates() -> None:
    text = CONFIG + "etcd: {external: {endpoints: ['https://192.0.2.50:2379']}}\n"
    plan = plan_all(MemoryMachine(), text)
    assert not any("etcd" in step.phase for step in plan.steps)
    assert any("External etcd mode" in note.text for note in plan.notes if note.phase == "etcd/local")


def test_local_mode_switched_off_points_the_kubelet_at_the_shared_endpoint() -> None:
    shared = CONFIG + "controlPlaneEndpoint: lb.example:443\n"
    servers = []
    for gates in ("", *(f"featureGates: {{ControlPlaneKubeletLocalMode: {value}}}\n" for value in ("true", "false"))):
        text = shared + gates
        plan = plan_all(MemoryMachine(), text)
        (issue,) = (step.action for step in plan.steps if step.phase == "kubeconfig/kubelet")
        assert isinstance(issue, Issue)
        servers.append(issue.request.describe()["server"])
    assert servers == ["https://192.0.2.10:6443", "https://192.0.2.10:6443", "https://lb.example:443"]


def patches(text: str, *, is_strict: bool = False) -> NodePatches:
    file = PatchFile("kube-scheduler.yaml", "patches/kube-scheduler.yaml", partial(bytes, text.encode()))
    return NodePatches(lambda: [file], is_strict)


def test_patch_reaches_the_manifest() -> None:
    plan = plan_all(MemoryMachine(), patches=patches("metadata: {annotations: {who: me}}\n"))
    (action,) = (step.action for step in plan.steps if step.phase == "control-plane/scheduler")
    assert isinstance(action, WriteFile)
    assert b"who: me" in action.content
    assert plan.warnings == (plan.warnings[0],)  # only the kubelet's


TREE = {
    "garboard.yaml": "",
    "node/node-1/kube-scheduler+args.yaml": "v: '3'\n",
    "node/node-2/kube-scheduler.yaml": "metadata: {annotations: {who: other}}\n",
    "role/worker/kube-scheduler.yaml": "metadata: {annotations: {who: worker}}\n",
    "role/control-plane/kube-scheduler.yaml": "metadata: {annotations: {who: role, role: role}}\n",
    "common/kube-scheduler.yaml": "metadata: {annotations: {who: all, all: all}}\n",
}


def test_layers_of_a_patch_tree_apply_in_their_order_and_are_told_in_it() -> None:
    files = [PatchFile(path, path, partial(bytes, text.encode())) for path, text in TREE.items()]
    tree = NodePatches(lambda: files, node_name="node-1", role="control-plane")
    plan = plan_all(MemoryMachine(), patches=tree)
    (action,) = (step.action for step in plan.steps if step.phase == "control-plane/scheduler")
    assert isinstance(action, WriteFile)
    pod = read_yaml(action.content, source="pod")
    assert isinstance(pod, dict)
    assert pod["metadata"]["annotations"] == {"all": "all", "role": "role", "who": "role"}  # type: ignore[index, call-overload]
    assert b"--v=3" in action.content
    told = [note.text for note in plan.notes if note.phase == "control-plane/scheduler" and "applied" in note.text]
    assert told == [
        "patches: applied common/kube-scheduler.yaml (strategic) to kube-scheduler",
        "patches: applied role/control-plane/kube-scheduler.yaml (strategic) to kube-scheduler",
        "patches: applied node/node-1/kube-scheduler+args.yaml (args) to kube-scheduler",
    ]


def test_what_strict_mode_objects_to_is_a_warning_or_with_strict_patches_refused() -> None:
    text = "spec: {hostNetwrok: true}\n"
    plan = plan_all(MemoryMachine(services=set()), patches=patches(text))
    assert [note.phase for note in plan.warnings] == ["control-plane/scheduler"]
    assert "hostNetwrok" in plan.warnings[0].text
    with pytest.raises(PatchRefused, match="hostNetwrok"):
        plan_all(MemoryMachine(), patches=patches(text, is_strict=True))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("spec: {restartPolicy: always}\n", "unsupported-value", id="what the kubelet refuses"),
        pytest.param("spec: {hostNetwork: false}\n", "host-network-off", id="what the cluster loses"),
    ],
)
def test_result_that_cannot_work_is_a_warning_or_with_strict_patches_refused(text: str, code: str) -> None:
    plan = plan_all(MemoryMachine(services=set()), patches=patches(text))
    assert [note.text.partition("]")[0] for note in plan.warnings] == [f"[{code}"]
    machine = MemoryMachine()
    with pytest.raises(PatchRefused) as refused:
        plan_all(machine, patches=patches(text, is_strict=True))
    assert refused.value.error_class == code


def test_danger_that_the_patch_accepts_passes_strict_patches() -> None:
    text = "# garboard: accept host-network-off because the node has a network of its own\nspec: {hostNetwork: false}\n"
    plan = plan_all(MemoryMachine(services=set()), patches=patches(text, is_strict=True))
    assert ["accepted" in note.text for note in plan.warnings] == [True]


def test_issued_keys_are_not_in_the_plan() -> None:
    machine = MemoryMachine()
    plan = plan_all(machine)
    apply(plan, machine)
    shown = plan_as_text(plan) + repr(plan) + str(plan_as_json(plan))
    assert "PRIVATE KEY" not in shown
    assert machine.modes["/etc/kubernetes/pki/ca.key"] == 0o600


def test_every_phase_of_a_whole_init_plans_something() -> None:
    options = InitOptions(uploads_certs=True, certificate_key="00" * 32)
    planned = plan_workflow(select(INIT), context_on(MemoryMachine(services=set()), options=options))
    phases = list(dict.fromkeys(step.phase.partition("/")[0] for step in planned.steps))
    assert phases == [
        "certs", "kubeconfig", "etcd", "control-plane", "kubelet-start", "wait-control-plane", "upload-config",
        "upload-certs", "mark-control-plane", "bootstrap-token", "kubelet-finalize", "addon", "record",
        "show-join-command",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("skip", "is_dns_off", "is_proxy_off"),
    [
        pytest.param((), False, False, id="nothing"),
        pytest.param(("addon",), True, True, id="both addons"),
        pytest.param(("addon/coredns",), True, False, id="DNS"),
        pytest.param(("certs", "addon/kube-proxy"), False, True, id="the proxy and something else"),
    ],
)
def test_skipped_addon_is_stored_as_disabled(skip: tuple[str, ...], is_dns_off: bool, is_proxy_off: bool) -> None:
    config, skipped = with_disabled_addons(InitConfiguration(), skip)
    assert (config.cluster.dns.disabled, config.cluster.is_proxy_disabled) == (is_dns_off, is_proxy_off)
    assert skipped[: len(skip)] == skip


def test_disabled_addon_is_skipped() -> None:
    cluster = ClusterConfiguration(dns=Dns(disabled=True), is_proxy_disabled=True)
    config = replace(InitConfiguration(), cluster=cluster)
    assert with_disabled_addons(config, ()) == (config, ("addon/coredns", "addon/kube-proxy"))
