"""Plans of join's phases, from a cluster in memory to what is left on the machine."""

from functools import partial

import pytest

from garboard.documents import Json, read_yaml
from garboard.engine import (
    AcquireLease,
    AddMember,
    AwaitGate,
    Executor,
    Issue,
    Outcomes,
    Plan,
    PromoteMember,
    PutObject,
    QuorumChange,
    ReleaseLease,
    RemoveFile,
    RestartLearner,
    ShowMessage,
    StepContext,
    WriteFile,
    plan_as_json,
    plan_as_text,
)
from garboard.errors import NotReady
from garboard.node.interpreters import interpreters_over
from garboard.node.interpreters.certificates import PkiIssuer
from garboard.patches import PatchFile
from garboard.phases import plan_workflow, select
from garboard.phases.join import JOIN
from garboard.phases.patching import NodePatches
from garboard.pki.bootstrap_kubeconfig import FILE_NAME
from garboard.pki.chain import authority_pins
from garboard.pki.keys import SystemKeys
from tests.support.phases.join.clusters import CONTROL_PLANE, TOKEN, MemoryCluster, context_of
from tests.support.phases.join.clusters import JOIN as JOIN_TEXT
from tests.support.phases.machines import NOW, MemoryMachine

BOOTSTRAP = f"/etc/kubernetes/{FILE_NAME}"
LATE = "featureGates: {ControlPlaneKubeletLocalMode: false}"
MEMBERS = "node-1=https://192.0.2.1:2380,node-2=https://192.0.2.20:2380"


class FakeLive:
    """Members, Leases and gates that all go well."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def acquire(self, _action: AcquireLease) -> Outcomes:
        self.done.append("take")
        return {}

    def release(self, _action: ReleaseLease) -> None:
        self.done.append("end")

    def add(self, action: AddMember) -> Outcomes:
        self.done.append("add")
        return {action.outcome: MEMBERS}

    def restart(self, _action: RestartLearner, _run: StepContext) -> None:
        self.done.append("restart")

    def promote(self, _action: PromoteMember) -> None:
        self.done.append("promote")

    def remove(self, _action: object) -> None:
        raise AssertionError("nothing is removed")

    def patch(self, _action: object) -> None:
        self.done.append("patch")

    def put(self, action: PutObject) -> None:
        self.done.append(f"put {action.name}")

    def delete(self, _action: object) -> None:
        raise AssertionError("join deletes no object")

    def wait(self, _gate: object) -> None:
        self.done.append("wait")

    def is_open(self, gate: object) -> bool:
        raise AssertionError(gate)


def plan(cluster: MemoryCluster, machine: MemoryMachine, text: str, patches: NodePatches | None = None) -> Plan:
    return plan_workflow(select(JOIN), context_of(cluster, machine, text, patches))


def joined(text: str, more: str = "", patches: NodePatches | None = None) -> MemoryMachine:
    machine, live = MemoryMachine(services=set()), FakeLive()
    interpreters = interpreters_over(
        files=machine, issuer=PkiIssuer(machine.folder, SystemKeys(), NOW), services=machine,
        members=live, leases=live, waiter=live, objects=live,
    )  # fmt: skip
    interpreters.add(RestartLearner, live.restart)
    Executor(interpreters).execute(plan(MemoryCluster.made(more=more), machine, text, patches))
    return machine


def document(machine: MemoryMachine, path: str) -> dict[str, Json]:
    found = read_yaml(machine.files[path], source=path)
    assert isinstance(found, dict)
    return found


def server_of(plan: Plan) -> str:
    """Return whom the kubelet is sent to for its certificate."""
    (write,) = [s.action for s in plan.steps if isinstance(s.action, WriteFile) and s.action.path == BOOTSTRAP]
    kubeconfig = read_yaml(write.content, source=BOOTSTRAP)
    assert isinstance(kubeconfig, dict)
    clusters = kubeconfig["clusters"]
    assert isinstance(clusters, list)
    assert isinstance(clusters[0], dict)
    cluster = clusters[0]["cluster"]
    assert isinstance(cluster, dict)
    return str(cluster["server"])


def test_worker_gets_the_kubelets_files_and_the_ca_and_keeps_no_token() -> None:
    machine = joined(JOIN_TEXT)
    assert set(machine.files) == {
        "/etc/kubernetes/pki/ca.crt", "/var/lib/kubelet/config.yaml", "/var/lib/kubelet/instance-config.yaml",
        "/var/lib/kubelet/kubeadm-flags.env",
    }  # fmt: skip
    assert machine.services == {"kubelet"}
    assert document(machine, "/var/lib/kubelet/config.yaml")["cgroupDriver"] == "cgroupfs"


def test_worker_asks_the_cluster_for_its_certificate() -> None:
    assert server_of(plan(MemoryCluster.made(), MemoryMachine(), JOIN_TEXT)) == "https://192.0.2.1:6443"


def test_kubelet_of_a_control_plane_asks_the_api_server_beside_it() -> None:
    assert (
        server_of(plan(MemoryCluster.made(), MemoryMachine(), JOIN_TEXT + CONTROL_PLANE)) == "https://192.0.2.20:6443"
    )


def test_without_local_mode_it_asks_the_cluster_and_is_waited_for_before_etcd() -> None:
    found = plan(MemoryCluster.made(more=LATE), MemoryMachine(services=set()), JOIN_TEXT + CONTROL_PLANE)
    assert server_of(found) == "https://192.0.2.1:6443"
    kinds = [type(step.action) for step in found.steps]
    assert kinds.index(AwaitGate) < kinds.index(RemoveFile) < kinds.index(AcquireLease)


def test_lease_is_acquired_before_the_member_is_added_and_released_after_it_votes() -> None:
    found = plan(MemoryCluster.made(), MemoryMachine(), JOIN_TEXT + CONTROL_PLANE)
    of_etcd = [type(s.action).__name__ for s in found.steps if s.phase == "etcd-join"]
    of_member = ["AddMember", "WriteFile", "RestartLearner", "PromoteMember"]
    assert of_etcd == ["AcquireLease", "MakeFolder", *of_member, "ReleaseLease"]


def test_plan_says_that_the_learner_restarts_and_when_the_members_that_vote_are_more() -> None:
    found = plan(MemoryCluster.made(), MemoryMachine(), JOIN_TEXT + CONTROL_PLANE)
    assert {type(s.action): s.restarts for s in found.steps if s.restarts} == {RestartLearner: ("etcd",)}
    quorum = {type(s.action): s.quorum_after for s in found.steps if s.quorum_after}
    assert quorum == {AddMember: QuorumChange(), PromoteMember: QuorumChange(voters=1, up=1)}


def test_manifest_of_etcd_names_the_members_that_adding_found() -> None:
    machine = joined(JOIN_TEXT + CONTROL_PLANE)
    text = machine.files["/etc/kubernetes/manifests/etcd.yaml"].decode()
    assert f"    - --initial-cluster={MEMBERS}\n" in text
    assert "    - --initial-cluster-state=existing\n" in text
    assert "<members-of-etcd>" not in text


def test_control_plane_shares_what_the_others_have_and_issues_the_rest() -> None:
    cluster, machine = MemoryCluster.made(), joined(JOIN_TEXT + CONTROL_PLANE)
    for name in ("ca.crt", "ca.key", "sa.pub", "sa.key", "front-proxy-ca.key", "etcd/ca.crt", "etcd/ca.key"):
        assert machine.files[f"/etc/kubernetes/pki/{name}"] == cluster.pki.files[name]
    assert machine.modes["/etc/kubernetes/pki/ca.key"] == 0o600
    assert machine.modes["/etc/kubernetes/pki/sa.pub"] == 0o644
    assert "/etc/kubernetes/pki/etcd/peer.crt" in machine.files
    assert {name for name in machine.files if name.endswith(".conf")} == {
        f"/etc/kubernetes/{name}.conf" for name in ("admin", "controller-manager", "scheduler")
    }


def test_plan_shows_no_secret_in_text_or_json() -> None:
    cluster = MemoryCluster.made()
    found = plan(cluster, MemoryMachine(), JOIN_TEXT + CONTROL_PLANE)
    for shown in (plan_as_text(found), str(plan_as_json(found)), repr(found)):
        assert TOKEN not in shown
        assert "PRIVATE KEY" not in shown
        assert "ab" * 32 not in shown


def test_equal_inputs_give_equal_plans() -> None:
    found = [plan(MemoryCluster.made(), MemoryMachine(), JOIN_TEXT + CONTROL_PLANE) for _ in range(2)]
    assert found[0] == found[1]


def test_certificates_that_are_shared_already_are_not_written_again() -> None:
    cluster = MemoryCluster.made()
    machine = MemoryMachine({f"/etc/kubernetes/pki/{name}": data for name, data in cluster.pki.files.items()})
    written = {
        s.action.path
        for s in plan(cluster, machine, JOIN_TEXT + CONTROL_PLANE).steps
        if isinstance(s.action, WriteFile)
    }
    assert not any(path.startswith("/etc/kubernetes/pki") for path in written)


def test_without_a_key_the_shared_certificates_must_be_there() -> None:
    text = JOIN_TEXT + "controlPlane: {}\n"
    with pytest.raises(NotReady, match=r"/etc/kubernetes/pki/ca\.crt is missing.*sa\.key is missing"):
        plan(MemoryCluster.made(), MemoryMachine(), text)


def test_cluster_without_a_shared_endpoint_takes_no_further_control_plane() -> None:
    cluster = MemoryCluster.made()
    stored = cluster.objects["ConfigMap", "kubeadm-config"]["data"]
    stored["ClusterConfiguration"] = stored["ClusterConfiguration"].replace("controlPlaneEndpoint", "#")
    with pytest.raises(NotReady, match="stable controlPlaneEndpoint"):
        plan(cluster, MemoryMachine(), JOIN_TEXT + CONTROL_PLANE)


def test_name_of_a_node_that_is_ready_is_taken() -> None:
    cluster = MemoryCluster.made()
    cluster.objects["Node", "node-2"] = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    with pytest.raises(NotReady, match='"node-2" and status "Ready" already exists'):
        plan(cluster, MemoryMachine(), JOIN_TEXT)


def test_node_that_is_not_ready_may_come_back() -> None:
    cluster = MemoryCluster.made()
    cluster.objects["Node", "node-2"] = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    assert plan(cluster, MemoryMachine(), JOIN_TEXT).steps


def test_external_etcd_is_somebody_elses() -> None:
    files = (
        "{endpoints: [https://192.0.2.5:2379], caFile: /etc/e/ca.crt, certFile: /etc/e/c.crt, keyFile: /etc/e/c.key}"
    )
    cluster = MemoryCluster.made(more=f"etcd: {{external: {files}}}")
    machine = MemoryMachine({f"/etc/kubernetes/pki/{name}": data for name, data in cluster.pki.files.items()})
    found = plan(cluster, machine, JOIN_TEXT + "controlPlane: {}\n")
    assert not any(isinstance(step.action, AddMember | AcquireLease) for step in found.steps)
    issued = {step.action.name for step in found.steps if isinstance(step.action, Issue)}
    assert not any("etcd" in name for name in issued)


@pytest.mark.parametrize("target", ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"])
def test_patches_reach_every_static_pod(target: str) -> None:
    patch = b"metadata: {annotations: {mine: x}}"
    patches = NodePatches(lambda: [PatchFile(f"{target}.yaml", f"{target}.yaml", partial(bytes, patch))])
    machine = joined(JOIN_TEXT + CONTROL_PLANE, patches=patches)
    metadata = document(machine, f"/etc/kubernetes/manifests/{target}.yaml")["metadata"]
    assert isinstance(metadata, dict)
    annotations = metadata["annotations"]
    assert isinstance(annotations, dict)
    assert annotations["mine"] == "x"


def test_patches_reach_the_kubelet_of_a_worker() -> None:
    files = [PatchFile("kubeletconfiguration.yaml", "k", partial(bytes, b"maxPods: 7"))]
    machine = joined(JOIN_TEXT, patches=NodePatches(lambda: files))
    assert document(machine, "/var/lib/kubelet/config.yaml")["maxPods"] == 7


def test_taints_of_a_worker_are_registered_those_of_a_control_plane_are_not() -> None:
    taints = "nodeRegistration: {taints: [{key: a, effect: NoSchedule}]}\n"
    flags = "/var/lib/kubelet/kubeadm-flags.env"
    assert b"--register-with-taints=a:NoSchedule" in joined(JOIN_TEXT + taints).files[flags]
    assert b"register-with-taints" not in joined(JOIN_TEXT + taints + CONTROL_PLANE).files[flags]


def test_pins_of_the_plans_cluster_are_those_of_its_ca() -> None:
    machine = joined(JOIN_TEXT)
    cluster = MemoryCluster.made()
    assert authority_pins(machine.files["/etc/kubernetes/pki/ca.crt"]) == authority_pins(cluster.ca)


@pytest.mark.parametrize("text", [JOIN_TEXT, JOIN_TEXT + CONTROL_PLANE], ids=["worker", "control plane"])
def test_the_end_is_told_when_all_was_asked_for(text: str) -> None:
    context = context_of(MemoryCluster.made(), MemoryMachine(), text)
    whole = context_of(MemoryCluster.made(), MemoryMachine(), text, is_whole=True)
    last = plan_workflow(select(JOIN), whole).steps[-1].action
    assert isinstance(last, ShowMessage)
    assert "node-2 has joined the cluster" in last.text
    assert not any(isinstance(step.action, ShowMessage) for step in plan_workflow(select(JOIN), context).steps)
