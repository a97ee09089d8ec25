"""Writes the golden journals of today's format: `python -m tests.support.engine.golden_journals FOLDER`.

Run it once when the format gets a new number, with the code that writes it, and keep what it wrote: later code has to
read these files, so they are never written again. What a format has got since is in runs of its own, each written once:
`python -m tests.support.engine.golden_journals FOLDER later` writes the newest of them into a folder without it, and
`FOLDER confirmation` those of runs that wait to be confirmed.
"""

import json
import sys
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from enum import Enum
from ipaddress import IPv6Address, IPv6Network
from pathlib import Path

from garboard.documents import Json
from garboard.engine import (
    AcquireLease,
    AddMember,
    AwaitGate,
    ChangeOwner,
    ClusterPart,
    ClusterPlace,
    ClusterPlan,
    ControlLink,
    ControlService,
    ControlTimer,
    ControlUnitFile,
    DeleteObject,
    DeletePods,
    EmptyFolder,
    EvictPods,
    ExpiryPlaceholder,
    FilePlaceholder,
    Issue,
    Journal,
    MakeFolder,
    MoveLeader,
    NewerContent,
    NodePart,
    Note,
    Observation,
    Observers,
    OutcomePlaceholder,
    PatchObject,
    Plan,
    PlanCodec,
    Precondition,
    PromoteMember,
    PullImage,
    PutObject,
    QuorumChange,
    ReleaseLease,
    RemoveFile,
    RemoveFolder,
    RemoveMember,
    RemoveSandboxes,
    RestartLearner,
    RunHeader,
    SaveSnapshot,
    SharedKey,
    ShowMessage,
    Step,
    StopContainer,
    StopPods,
    Unmount,
    WriteFile,
)
from garboard.engine.action import Action
from garboard.engine.journal import RunState
from garboard.host.runs import RunFolders
from garboard.node.runs import plan_codec
from garboard.node.wiring import RunSettings
from garboard.phases import plan_workflow, select
from garboard.phases.gates import (
    ApiServerReady,
    CertificateServed,
    ClusterVersionRaised,
    ComponentHealthy,
    ComponentsSettled,
    EtcdHealthy,
    EtcdSparesMember,
    KubeletBootstrapped,
    KubeletHealthy,
    KubeProxySettled,
    ListenerClosed,
    MemberCaughtUp,
    NodeDrained,
    NodeReady,
    NodeRegistered,
    PodsEnded,
    TunnelOpen,
)
from garboard.phases.init import INIT
from garboard.phases.issuing import CertificateRequest, RenewalRequest, SignedRequest
from garboard.phases.join import JOIN
from garboard.pki import KeyAlgorithm, PkiInputs, certificate
from garboard.pki.names import AltNames
from garboard.pki.spec import SERVER_AUTH, CertContent
from tests.support.engine.actions import FakeLinks, FakeServices, FakeTimers, FakeUnitFiles, MemoryFiles
from tests.support.phases.join.clusters import CONTROL_PLANE, MemoryCluster, context_of
from tests.support.phases.join.clusters import JOIN as JOIN_TEXT
from tests.support.phases.machines import MemoryMachine, context_on

_STARTED_AT = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
_RUN = "20261115T120000.000-000{}-{}"
_PEER = "https://192.0.2.9:2380"
_LEASE = ReleaseLease(name="garboard-etcd-join", namespace="kube-system", holder="node-1")


class _Objects:
    def find(self, kind: str, namespace: str, name: str, *, api_version: str = "") -> dict[str, Json] | None:
        metadata: dict[str, Json] = {"name": name, "resourceVersion": "7"}
        return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": {"a": "b"}} if name == "kept" else None


class _Members:
    def has(self, peer_url: str) -> bool:
        return peer_url == _PEER


def _step(phase: str, action: Action) -> Step:
    return Step(action, "it is in the vector", phase, "node-1")


EVERY = Plan(
    (
        _step("files", MakeFolder(path="/etc/new/deep", mode=0o700)),
        _step(
            "files",
            WriteFile(
                path="/etc/former", content=b"with <members>\n", mode=0o600, is_secret=True,
                outcomes=(OutcomePlaceholder("<members>", "initial-cluster"),),
            ),
        ),
        _step("files", RemoveFile(path="/etc/kubernetes/admin.conf")),
        _step("files", RemoveFolder(path="/etc/kubernetes")),
        _step("files", ChangeOwner(path="/etc/former", uid=1000, gid=1000, mode=0o640)),
        _step("files", ChangeOwner(path="/etc", uid=1000, gid=1000)),
        _step(
            "objects",
            PutObject(
                api_version="v1", kind="ConfigMap", name="kept", namespace="kube-system",
                content={"data": {"a": "<sealed>", "$patch": "x"}},
                fillings=(FilePlaceholder("<sealed>", "/etc/former", b"k" * 32, is_needed=False),),
                keeps_other_data=True,
            ),
        ),
        _step(
            "objects",
            PutObject(
                api_version="v1", kind="Secret", name="token", namespace="kube-system", is_secret=True,
                content={"data": {"expiration": "<ending>"}},
                endings=(ExpiryPlaceholder("<ending>", timedelta(hours=24)),),
            ),
        ),
        _step(
            "objects",
            PatchObject(
                api_version="v1", kind="Node", name="kept", content={"spec": {"taints": []}},
                united=(("spec", "taints"),),
            ),
        ),
        _step("objects", DeleteObject(api_version="v1", kind="Node", name="kept", is_needed=False)),
        _step(
            "services",
            ControlService(
                service="kubelet", verb="start", is_needed=False, fills=("/var/lib/kubelet", "/etc"),
                writes=("/etc/former", "/etc/absent"), registers="node-1", unless="/etc/absent",
            ),
        ),
        _step(
            "runtime",
            PullImage(image="example/pause:3.10", is_always=True, beside=("example/etcd:3.6",), is_needed=False),
        ),
        _step(
            "members",
            AcquireLease(
                name=_LEASE.name, namespace=_LEASE.namespace, holder=_LEASE.holder, timeout_s=30.0, peer_url=_PEER
            ),
        ),
        _step("members", AddMember(name="node-9", peer_url=_PEER, outcome="initial-cluster")),
        _step("members", PromoteMember(peer_url=_PEER, timeout_s=30.0)),
        _step("members", _LEASE),
        *(
            _step("gates", AwaitGate(gate=gate))
            for gate in (
                KubeletHealthy(timeout_s=1.0),
                ComponentHealthy(component="kube-scheduler", timeout_s=1.0),
                NodeRegistered(node_name="node-1", timeout_s=1.0),
                KubeletBootstrapped(node_name="node-1", timeout_s=1.0),
                EtcdHealthy(timeout_s=1.0),
            )
        ),
        _step(
            "end",
            ShowMessage(about="the end", text="done <pin>\n", pins=(FilePlaceholder("<pin>", "/etc/former"),)),
        ),
    ),
    (Note("a note", phase="files"), Note("a warning", is_warning=True, phase="files")),
)  # fmt: skip
# What format 2 has got since its first journals were written: kinds, members of kinds, requests and gates.
LATER = Plan(
    (
        Step(
            WriteFile(path="/etc/former", content=b"later\n", mode=0o600),
            "it is in the vector", "files", "node-1",
            preconditions=(Precondition("/etc/former", "0" * 64), Precondition("/etc/absent")), unit="static-pods",
        ),
        _step(
            "objects",
            PatchObject(
                api_version="v1", kind="ConfigMap", name="kept", namespace="kube-system",
                content={"data": {"set.1": None}},
                shared_keys=(SharedKey("set.1", "1", "garboard.dev/patch-set", "1"),), deletes_empty=True,
            ),
        ),
        _step("objects", DeleteObject(api_version="v1", kind="Role", name="kept", unless=("ConfigMap", "a", "b"))),
        _step("objects", EvictPods(node_name="node-1", timeout_s=60.0, grace_s=5, deletes_unmanaged=True)),
        _step("services", ControlTimer(timer="garboard-revert", verb="enable")),
        _step("runtime", StopContainer(container="etcd", manifest="/etc/kubernetes/manifests/etcd.yaml", after_s=0.5)),
        _step("members", RestartLearner(client_url="https://192.0.2.9:2379", data_dir="/var/lib/etcd", timeout_s=30.0)),
        _step(
            "members",
            AcquireLease(
                name=_LEASE.name, namespace=_LEASE.namespace, holder=_LEASE.holder, timeout_s=30.0, duration_s=600.0
            ),
        ),
        _step(
            "certs",
            CertificateRequest(
                spec=certificate("apiserver"),
                inputs=PkiInputs(
                    node_name="node-1", advertise_address=IPv6Address("2001:db8::9"),
                    service_subnets=(IPv6Network("2001:db8:1::/108"),),
                ),
                folder="/etc/kubernetes/pki",
            ).action(),
        ),
        _step(
            "certs/renew",
            RenewalRequest(
                spec=certificate("apiserver"), ca="ca",
                content=CertContent(
                    common_name="kube-apiserver", usages=(SERVER_AUTH,),
                    alt_names=AltNames(("api.test",), (IPv6Address("::1"),)),
                ),
                validity=timedelta(days=365), key_algorithm=KeyAlgorithm.ECDSA_P384,
                folder="/etc/kubernetes/pki", kubeconfig_dir="/etc/kubernetes",
            ).action(),
        ),
        *(
            _step("gates", AwaitGate(gate=gate))
            for gate in (
                MemberCaughtUp(peer_url=_PEER, timeout_s=1.0),
                NodeDrained(node_name="node-1", timeout_s=1.0),
                NodeReady(node_name="node-1", timeout_s=1.0),
                ListenerClosed(component="kube-apiserver", host="192.0.2.9", port=6443, timeout_s=1.0),
                PodsEnded(components=("etcd",), pods=("0123",), timeout_s=1.0),
                ComponentsSettled(components=("etcd", "kube-apiserver"), timeout_s=1.0),
            )
        ),
        # Last: once something is lost for good, no pre-image is taken any more.
        _step("members", RemoveMember(peer_url=_PEER, member_id="8e9e05c52164694d")),
        _step("files", EmptyFolder(path="/var/lib/etcd", only=("member",), is_resolved=True)),
    )
)  # fmt: skip
# … and since the run before was written.
LATEST = Plan(
    (
        _step("etcd", SaveSnapshot(path="/var/lib/garboard/etcd.db", client_url="https://192.0.2.9:2379")),
        Step(
            MoveLeader(peer_url=_PEER, timeout_s=10.0), "its member restarts", "etcd", "node-1",
            restarts=("etcd",), quorum_after=QuorumChange(up=-1, voters_before=3),
        ),
        _step("runtime", StopPods(namespace="kube-system", selector=(("k8s-app", "kube-proxy"),))),
        _step("gates", AwaitGate(gate=ApiServerReady(timeout_s=1.0))),
    ),
    observed=(Observation("file /etc/former", "0" * 64), Observation("file /etc/absent")),
)  # fmt: skip
# … and since that one was.
TUNNEL = Plan(
    (
        _step("tunnel", ControlLink(address="10.255.0.1", link="konnectivity0", verb="add")),
        _step("tunnel", ControlUnitFile(service="konnectivity-agent", verb="enable")),
        _step("tunnel", AwaitGate(gate=TunnelOpen(server="https://10.255.0.1:6443", timeout_s=1.0))),
        _step(
            "undo/objects",
            DeleteObject(api_version="v1", kind="Node", name="node-1", is_needed=False, may_be_left=True),
        ),
    )
)
# … and with gates that came after that.
GUARDED = Plan((_step("gates", AwaitGate(gate=EtcdSparesMember(peer_url=_PEER, timeout_s=1.0))),))
# … and with a file that may have no way back.
_RAISED = ClusterVersionRaised(above="3.6")
UPGRADE = Plan(
    (
        Step(
            WriteFile(path="/etc/former", content=b"new", mode=0o600, unless=NewerContent(_RAISED, b"newer")),
            "it is in the vector", "control-plane", "node-1", unit="static-pods", lasts_once=_RAISED,
        ),
    )
)  # fmt: skip
# … and with what a change of a cluster does besides.
PROXY = Plan(
    (
        _step(
            "kube-proxy",
            DeletePods(
                node_name="node-1", namespace="kube-system", selector=(("k8s-app", "kube-proxy"),), timeout_s=1.0
            ),
        ),
        _step("gates", AwaitGate(gate=KubeProxySettled(timeout_s=1.0, url="http://127.0.0.1:10256/healthz"))),
        _step(
            "gates",
            AwaitGate(
                gate=CertificateServed(
                    component="kube-apiserver", path="/etc/kubernetes/pki/apiserver.crt", host="192.0.2.9", port=6443,
                    timeout_s=1.0,
                )
            ),
        ),
    )
)  # fmt: skip
# … and with a certificate that an authority elsewhere has signed.
SIGNED = Plan(
    (
        _step(
            "certs",
            SignedRequest(
                spec=certificate("apiserver"),
                inputs=PkiInputs(
                    node_name="node-1", advertise_address=IPv6Address("2001:db8::9"),
                    service_subnets=(IPv6Network("2001:db8:1::/108"),),
                ),
                folder="/etc/kubernetes/pki", waiting="/var/lib/garboard/signing",
            ).action(),
        ),
    )
)  # fmt: skip
_DELETED = DeleteObject(api_version="v1", kind="ConfigMap", name="a", namespace="b")
CLUSTER_PLAN = ClusterPlan(
    (
        NodePart(node="node-1", words=("change", "node"), plan=LATEST, stdin=b"plan"),
        ClusterPart(name="ConfigMaps", plan=Plan((_step("maps", _DELETED),))),
    )
)
RESET = Plan(
    (
        _step("remove-etcd-member", RemoveMember(peer_url=_PEER)),
        _step("cleanup-node", RemoveSandboxes()),
        _step("cleanup-node", Unmount(path="/var/lib/kubelet", flags=("MNT_DETACH",))),
        _step("cleanup-node", EmptyFolder(path="/var/lib/kubelet", keeps=("a",))),
    )
)
CHANGE = Plan(
    (
        _step("files", WriteFile(path="/etc/former", content=b"new", mode=0o600)),
        _step("files", WriteFile(path="/etc/absent", content=b"new", mode=0o600)),
    )
)
UNDO = Plan(
    (
        _step("undo/files", RemoveFile(path="/etc/absent")),
        _step("undo/services", ControlService(service="kubelet", verb="stop", is_needed=False)),
    )
)


def schema_of(codec: PlanCodec) -> dict[str, list[str]]:
    """Return the members of every type by its tag: what a journal of this format can hold."""
    members = {
        tag: [str(each.value) for each in kind] if issubclass(kind, Enum) else [each.name for each in fields(kind)]  # type: ignore[arg-type]
        for tag, kind in codec._types.items()
    }
    return {**members, **{tag: [] for tag in codec._tagged_adapters}}


class Writer:
    """Writes runs into a folder, each as far as it is told to."""

    def __init__(self, folder: Path) -> None:
        self.folders = RunFolders(folder)
        self.files = MemoryFiles(
            {"/etc/kubernetes/admin.conf": (0o600, b"former"), "/etc/former": (0o640, b"former")},
            {"/etc": 0o755, "/etc/kubernetes": 0o755},
        )

    def begin(
        self,
        number: int,
        command: str,
        plan: Plan,
        cluster: ClusterPlace = "local",
        *,
        undoes: str = "",
        supersedes: bool = False,
        confirm_within_s: float = 0.0,
    ) -> Journal:
        word = command.partition(" ")[0]
        header = RunHeader(
            run="",
            command=command,
            started_at=_STARTED_AT,
            cluster=cluster,
            is_whole=word == command,
            undoes=undoes,
            supersedes=supersedes,
            confirm_within_s=confirm_within_s,
            settings=RunSettings(certificates_dir="/etc/kubernetes/pki").texts(),
        )
        observers = Observers(
            files=self.files,
            services=FakeServices({"kubelet"}),
            objects=None if cluster == "made" else _Objects(),
            members=_Members(),
            timers=FakeTimers(self.files, {"garboard-revert"}),
            unit_files=FakeUnitFiles(self.files, {"konnectivity-agent"}),
            links=FakeLinks({"10.255.0.1": "konnectivity0"}),
        )
        return Journal.begin_run(self.folders.new(_RUN.format(number, word)), plan_codec(), observers, header, plan)


def advance(journal: Journal, plan: Plan, finished: int) -> None:
    """Finish that many steps of the plan, and begin the next one, if there is one."""
    for index, step in enumerate(plan.steps[: finished + 1]):
        journal.begin(index, step)
        if index == finished:
            return
        if isinstance(step.action, Issue):
            journal.learned(index, {file.path: "0" * 64 for file in step.action.files})
        members = "node-1=https://192.0.2.1:2380,node-2=https://192.0.2.20:2380"
        journal.end(index, step, {step.action.outcome: members} if isinstance(step.action, AddMember) else {})


def main(folder: Path) -> None:
    writer = Writer(folder)
    init = plan_workflow(select(INIT), context_on(MemoryMachine(services=set())))
    journal = writer.begin(1, "init", init, "made")
    advance(journal, init, 20)
    journal.fail("the disk is full")
    context = context_of(MemoryCluster.made(), MemoryMachine(services=set()), JOIN_TEXT + CONTROL_PLANE, is_whole=True)
    join = plan_workflow(select(JOIN), context)
    promoted = next(index for index, step in enumerate(join.steps) if isinstance(step.action, PromoteMember))
    advance(writer.begin(2, "join", join, "elsewhere"), join, promoted)
    advance(writer.begin(3, "init phase every", EVERY), EVERY, len(EVERY.steps))
    advance(writer.begin(4, "reset", RESET, "elsewhere", supersedes=True), RESET, 2)
    advance(writer.begin(5, "undo", UNDO, undoes=_RUN.format(3, "init")), UNDO, 0)
    closed = writer.begin(6, "init", UNDO)
    advance(closed, UNDO, 2)
    closed.close("committed")
    schema = json.dumps(schema_of(plan_codec()), indent=2, sort_keys=True) + "\n"
    (folder / "schema.json").write_text(schema)


def write_later(folder: Path) -> None:
    """Write one more run, and a plan for several nodes, with what came later."""
    advance(Writer(folder).begin(8, "init phase latest", LATEST), LATEST, len(LATEST.steps))
    content = json.dumps(plan_codec().encode(CLUSTER_PLAN), indent=2) + "\n"
    (folder / "cluster-plan.json").write_text(content)


def write_tunnel(folder: Path) -> None:
    """Write one more run, of a node that joins through a tunnel."""
    advance(Writer(folder).begin(9, "join", TUNNEL, "elsewhere"), TUNNEL, len(TUNNEL.steps))


def write_guarded(folder: Path) -> None:
    """Write one more run, which waits for what has to be well before it begins."""
    advance(Writer(folder).begin(10, "init phase guarded", GUARDED), GUARDED, len(GUARDED.steps))


def write_upgrade(folder: Path) -> None:
    """Write one more run, with a file that stays where there is no way back for it."""
    advance(Writer(folder).begin(11, "upgrade", UPGRADE), UPGRADE, 0)


def write_proxy(folder: Path) -> None:
    """Write one more run, of a change that is about kube-proxy and a certificate."""
    advance(Writer(folder).begin(12, "change apply", PROXY), PROXY, len(PROXY.steps))


def write_signed(folder: Path) -> None:
    """Write one more run, of a change with a certificate that was signed elsewhere."""
    advance(Writer(folder).begin(13, "change apply", SIGNED), SIGNED, len(SIGNED.steps))


def confirmations(folder: Path) -> None:
    """Write one run for each way in which a run that waits to be confirmed can go: `format-2-confirmation`."""
    writer = Writer(folder)
    ends: tuple[RunState | None, ...] = (None, "confirmed", "reverted")
    for number, state in enumerate(ends, start=1):
        journal = writer.begin(number, "change", CHANGE, confirm_within_s=600.0)
        advance(journal, CHANGE, len(CHANGE.steps))
        journal.leave_unconfirmed(_STARTED_AT + timedelta(minutes=10))
        if state is not None:
            journal.close(state)


_WRITERS = {
    "later": write_later,
    "tunnel": write_tunnel,
    "guarded": write_guarded,
    "upgrade": write_upgrade,
    "proxy": write_proxy,
    "signed": write_signed,
    "confirmation": confirmations,
}
if __name__ == "__main__":
    _WRITERS.get(sys.argv[2] if sys.argv[2:] else "", main)(Path(sys.argv[1]))
