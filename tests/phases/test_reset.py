"""What reset plans for a worker, for a member of etcd and for the last one, and what it leaves alone."""

from dataclasses import dataclass, field, replace

import pytest

from garboard.engine import (
    Action,
    ControlService,
    EmptyFolder,
    Plan,
    RemoveFile,
    RemoveFolder,
    RemoveMember,
    RemoveSandboxes,
    ShowMessage,
    Unmount,
    WriteFile,
)
from garboard.errors import ClusterUnreachable, GarboardError, NotReady, StalePlan
from garboard.model.lifecycle import ResetConfiguration
from garboard.phases import plan_workflow, select
from garboard.phases.node.etcd_member import MANIFEST, ObservedMember, read_member
from garboard.phases.reset import RESET, observe_reset, refuse_other_members
from tests.support.phases.machines import NOW, MemoryMachine

PEER = "https://192.0.2.10:2380"
MANIFEST_TEXT = """
spec:
  containers:
  - command:
    - etcd
    - --name=node-1
    - --advertise-client-urls=https://192.0.2.10:2379
    - --initial-advertise-peer-urls=https://192.0.2.10:2380
    {state}
  volumes:
  - {{name: etcd-certs, hostPath: {{path: /etc/kubernetes/pki/etcd}}}}
  - {{name: etcd-data, hostPath: {{path: /data/etcd}}}}
"""
FIRST = MANIFEST_TEXT.format(state="").encode()
JOINED = MANIFEST_TEXT.format(state="- --initial-cluster-state=existing").encode()
OURS = ObservedMember("node-1", (PEER,), ("https://192.0.2.10:2379",), is_learner=False, id="8e9e05c52164694d")
OTHER = ObservedMember("node-2", ("https://192.0.2.11:2380",), ("https://192.0.2.11:2379",), is_learner=False)
LEARNER = ObservedMember("", ("https://192.0.2.12:2380",), (), is_learner=True)


@dataclass
class Etcd:
    """Members, or nobody who answers; and those that the database names, if there is one that can be read."""

    seen: tuple[ObservedMember, ...] | None = (OURS, OTHER)
    stored: tuple[ObservedMember, ...] | GarboardError | None = None
    own: str = ""  # the id of the member that answers on this node
    asked_at: list[tuple[str, ...]] = field(default_factory=list)

    def members(self, client_urls: tuple[str, ...]) -> tuple[ObservedMember, ...]:
        self.asked_at.append(client_urls)
        if self.seen is None:
            raise ClusterUnreachable("nobody answers")
        return self.seen

    def stored_members(self, data_dir: str) -> tuple[ObservedMember, ...] | None:
        assert data_dir in ("/data/etcd", "/var/lib/etcd")
        if isinstance(self.stored, GarboardError):
            raise self.stored
        return self.stored

    def own_id(self, client_urls: tuple[str, ...]) -> str:
        assert client_urls == OURS.client_urls
        return self.own


def worker() -> MemoryMachine:
    files = ("/etc/kubernetes/kubelet.conf", "/etc/kubernetes/pki/ca.crt", "/var/lib/kubelet/config.yaml")
    return MemoryMachine(files=dict.fromkeys(files, b"x"), services={"kubelet"})


def control_plane(manifest: bytes = JOINED) -> MemoryMachine:
    machine = worker()
    machine.files |= {MANIFEST: manifest, "/etc/kubernetes/admin.conf": b"x", "/data/etcd/member/wal/0.wal": b"x"}
    machine.folders |= {"/data/etcd/member", "/data/etcd/member/wal"}
    return machine


def plan(
    machine: MemoryMachine,
    etcd: Etcd | None = None,
    *,
    only: str | None = None,
    skip: tuple[str, ...] = (),
    has_runtime: bool = True,
    config: ResetConfiguration | None = None,
    abandons: bool = False,
) -> Plan:
    selected = select(RESET, only=only, skip=skip)
    context = observe_reset(
        config or ResetConfiguration(cri_socket="unix:///run/c.sock"),
        machine=machine,
        etcd=etcd or Etcd(),
        node_name="node-1",
        now=NOW,
        selected=[each.path for each in selected],
        has_runtime=lambda _socket: has_runtime,
        abandons_member=abandons,
    )
    return plan_workflow(selected, context)


def actions(planned: Plan) -> list[Action]:
    """What is planned, without how a folder is guarded while it is emptied: that is in test_emptying."""
    found = (step.action for step in planned.steps)
    return [EmptyFolder(path=each.path) if isinstance(each, EmptyFolder) else each for each in found]


def test_worker_loses_its_pods_and_files_and_no_data_of_etcd() -> None:
    machine = worker()
    machine.files["/var/lib/etcd/mine"] = b"x"
    etcd = Etcd()
    found = actions(plan(machine, etcd))
    assert found[:-1] == [
        ControlService(service="kubelet", verb="stop"),
        RemoveSandboxes(),
        Unmount(path="/var/lib/kubelet"),
        EmptyFolder(path="/var/lib/kubelet"),
        EmptyFolder(path="/etc/kubernetes/pki"),
        RemoveFile(path="/etc/kubernetes/kubelet.conf"),
    ]
    assert isinstance(found[-1], ShowMessage)
    assert "kubectl delete node node-1" in found[-1].text
    assert etcd.asked_at == []


def test_member_leaves_first_and_its_data_go_when_nothing_writes_them() -> None:
    etcd = Etcd()
    found = actions(plan(control_plane(), etcd))
    assert found[0] == RemoveMember(peer_url=PEER, member_id=OURS.id)
    data = found.index(EmptyFolder(path="/data/etcd/member"))
    assert found.index(RemoveSandboxes()) < data < found.index(EmptyFolder(path="/etc/kubernetes/manifests"))
    assert found[data + 1] == RemoveFolder(path="/data/etcd/member")
    assert etcd.asked_at == [("https://192.0.2.10:2379",)]


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        pytest.param((OURS, LEARNER), "only voting member", id="the others have no vote"),
        pytest.param((OURS,), "only voting member", id="alone"),
        pytest.param((OTHER,), "any more", id="it has left already"),
    ],
)
def test_member_that_cannot_or_need_not_leave_stays_and_its_data_go(
    seen: tuple[ObservedMember, ...], told: str
) -> None:
    planned = plan(control_plane(), Etcd(seen))
    assert not any(isinstance(each, RemoveMember) for each in actions(planned))
    assert any(told in note.text for note in planned.notes)
    assert EmptyFolder(path="/data/etcd/member") in actions(planned)


UNREADABLE = GarboardError("neither of its two meta pages is valid")
STARTING = ObservedMember("", (PEER,), (), is_learner=True, id="8e9e05c52164694d")
MOVED = ObservedMember("node-1", ("https://192.0.2.99:2380",), (), is_learner=False, id="8e9e05c52164694d")


@pytest.mark.parametrize(
    ("manifest", "stored", "told"),
    [
        pytest.param(FIRST, (OURS, OTHER), "these would go on counting it: node-2", id="the first of several"),
        pytest.param(FIRST, (OURS, LEARNER), "counting it: https://192.0.2.12:2380", id="another one is joining"),
        pytest.param(FIRST, (OTHER,), "counting it: node-2", id="data that do not know it"),
        pytest.param(FIRST, UNREADABLE, "do not tell whether .*meta pages", id="data that cannot be read"),
        pytest.param(FIRST, None, "do not tell whether .*no database among", id="data without a database"),
        pytest.param(JOINED, (OURS, OTHER), "counting it: node-2", id="joined"),
        pytest.param(JOINED, None, "do not tell whether .*no database among", id="joined, and without a database"),
        pytest.param(FIRST, (), "do not tell whether .*names no member", id="a database that names nobody"),
        pytest.param(JOINED, (), "do not tell whether .*names no member", id="joined, and it names nobody"),
        pytest.param(JOINED, (STARTING,), "it joined others", id="joined, and without a vote"),
    ],
)
def test_member_that_others_count_is_not_left_behind_while_etcd_cannot_be_asked(
    manifest: bytes, stored: tuple[ObservedMember, ...] | GarboardError | None, told: str
) -> None:
    with pytest.raises(ClusterUnreachable, match=rf"{told}.*nobody answers.*phase remove-etcd-member") as caught:
        plan(control_plane(manifest), Etcd(None, stored))
    assert "--abandon-etcd-member" in (caught.value.hint or "")
    assert "--skip-phases remove-etcd-member" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("manifest", "stored"),
    [
        pytest.param(FIRST, (OURS,), id="alone"),
        pytest.param(FIRST, (MOVED,), id="alone, with another address"),
        pytest.param(JOINED, (OURS,), id="the last of several"),
    ],
)
def test_dead_single_node_is_reset_with_a_warning(manifest: bytes, stored: tuple[ObservedMember, ...] | None) -> None:
    planned = plan(control_plane(manifest), Etcd(None, stored))
    assert any(note.is_warning and PEER in note.text for note in planned.notes)
    assert EmptyFolder(path="/data/etcd/member") in actions(planned)
    assert "etcdctl" not in left_by(planned)


@pytest.mark.parametrize(
    ("folders", "stored"),
    [
        pytest.param(set(), None, id="no data"),
        pytest.param({"/data/etcd/member"}, None, id="an empty folder"),
        pytest.param({"/data/etcd/member", "/data/etcd/member/snap"}, (), id="a database that names nobody"),
    ],
)
def test_first_node_whose_etcd_never_came_up_is_reset_with_a_warning(
    folders: set[str], stored: tuple[ObservedMember, ...] | None
) -> None:
    machine = control_plane(FIRST)
    del machine.files["/data/etcd/member/wal/0.wal"]
    machine.folders = folders
    if stored is not None:
        machine.files["/data/etcd/member/snap/db"] = b""
    planned = plan(machine, Etcd(None, stored))
    assert any(note.is_warning and PEER in note.text for note in planned.notes)


@pytest.mark.parametrize("manifest", [FIRST, FIRST.replace(b"    - etcd\n", b"    - etcd\n    - --wal-dir=/wal\n")])
def test_database_that_names_nobody_tells_nothing_where_the_member_has_lived(manifest: bytes) -> None:
    machine = control_plane(manifest)
    del machine.files["/data/etcd/member/wal/0.wal"]
    machine.files |= {"/data/etcd/member/snap/db": b""}
    machine.folders |= {"/data/etcd/member/snap"}
    if b"wal-dir" not in manifest:
        machine.files["/data/etcd/member/snap/0000000000000002-0000000000002711.snap"] = b"x"
    with pytest.raises(ClusterUnreachable, match="names no member, and the member has lived"):
        plan(machine, Etcd(None, ()))


def test_joined_node_whose_etcd_never_came_up_is_not_left_behind() -> None:
    machine = control_plane(JOINED)
    del machine.files["/data/etcd/member/wal/0.wal"]
    for stored in (None, ()):
        with pytest.raises(ClusterUnreachable, match="it joined others"):
            plan(machine, Etcd(None, stored))


@pytest.mark.parametrize(
    "etcd",
    [
        pytest.param(Etcd((OTHER, replace(MOVED, name="renamed")), own=OURS.id), id="it says its id itself"),
        pytest.param(Etcd((OTHER, MOVED), (OTHER, MOVED)), id="its data know its id"),
    ],
)
def test_member_whose_peer_url_was_changed_in_etcd_is_removed_by_its_id(etcd: Etcd) -> None:
    planned = plan(control_plane(), etcd)
    assert actions(planned)[0] == RemoveMember(peer_url=PEER, member_id=OURS.id)


def test_last_member_whose_peer_url_was_changed_goes_with_its_data() -> None:
    planned = plan(control_plane(), Etcd((MOVED,), own=OURS.id))
    assert any("only voting member" in note.text for note in planned.notes)


def test_namesake_that_may_be_the_member_of_this_node_is_not_left_behind() -> None:
    etcd = Etcd((OTHER, MOVED), UNREADABLE)
    with pytest.raises(NotReady, match=r"a member node-1 with the peer URL https://192\.0\.2\.99") as caught:
        plan(control_plane(), etcd)
    assert "etcdctl member remove 8e9e05c52164694d" in (caught.value.hint or "")
    assert not any(isinstance(each, RemoveMember) for each in actions(plan(control_plane(), etcd, abandons=True)))


def test_last_member_is_not_taken_away_once_another_one_has_come() -> None:
    selected = select(RESET)
    context = observe_reset(
        ResetConfiguration(cri_socket="unix:///run/c.sock"),
        machine=control_plane(),
        etcd=Etcd((OURS,)),
        node_name="node-1",
        now=NOW,
        selected=[each.path for each in selected],
        has_runtime=lambda _socket: True,
    )
    assert context.is_only_voter
    refuse_other_members(context, (OURS,))
    with pytest.raises(StalePlan, match="there are others by now: node-2"):
        refuse_other_members(context, (OURS, OTHER))


def left_by(planned: Plan) -> str:
    return next(each.text for each in actions(planned) if isinstance(each, ShowMessage))


@pytest.mark.parametrize(
    ("stored", "removal"),
    [
        pytest.param((OURS, OTHER), "etcdctl member remove 8e9e05c52164694d", id="its id is known"),
        pytest.param(UNREADABLE, f"etcdctl member list` shows it beside {PEER}", id="its id is not known"),
    ],
)
def test_abandoned_member_is_told_with_what_remains_to_be_done(
    stored: tuple[ObservedMember, ...] | GarboardError, removal: str
) -> None:
    planned = plan(control_plane(FIRST), Etcd(None, stored), abandons=True)
    assert EmptyFolder(path="/data/etcd/member") in actions(planned)
    assert not any(isinstance(each, RemoveMember) for each in actions(planned))
    assert any(note.is_warning and removal in note.text for note in planned.notes)
    assert removal in left_by(planned)


def test_member_is_removed_and_not_abandoned_where_etcd_answers() -> None:
    planned = plan(control_plane(FIRST), Etcd(), abandons=True)
    assert any(isinstance(each, RemoveMember) for each in actions(planned))
    assert "etcdctl" not in left_by(planned)


def without_manifest() -> MemoryMachine:
    """A control plane whose etcd manifest was moved away."""
    machine = worker()
    data = "/var/lib/etcd/member/snap/db", "/var/lib/etcd/member/wal/0.wal"
    machine.files |= dict.fromkeys((*data, "/etc/kubernetes/pki/etcd/peer.crt"), b"x")
    machine.folders |= {"/var/lib/etcd/member", "/var/lib/etcd/member/snap", "/var/lib/etcd/member/wal"}
    return machine


@pytest.mark.parametrize(
    ("stored", "told"),
    [
        pytest.param((OURS, OTHER), "these would go on counting it: node-2", id="others"),
        pytest.param(UNREADABLE, "do not tell whether .*meta pages", id="data that cannot be read"),
        pytest.param((), "do not tell whether .*names no member", id="data that name nobody"),
    ],
)
def test_member_whose_manifest_is_missing_is_not_left_behind(
    stored: tuple[ObservedMember, ...] | GarboardError, told: str
) -> None:
    etcd = Etcd(None, stored)
    with pytest.raises(NotReady, match=rf"there is no {MANIFEST}, but /var/lib/etcd .*{told}") as caught:
        plan(without_manifest(), etcd)
    assert "--abandon-etcd-member" in (caught.value.hint or "")
    planned = plan(without_manifest(), etcd, abandons=True)
    removal = OURS.id if stored == (OURS, OTHER) else "shows it beside node-1"
    assert any(note.is_warning and removal in note.text for note in planned.notes)
    assert removal in left_by(planned)
    assert not [each for each in actions(planned) if isinstance(each, EmptyFolder) and "etcd" in each.path]
    skipped = plan(without_manifest(), etcd, skip=("remove-etcd-member",))
    assert EmptyFolder(path="/etc/kubernetes/pki") in actions(skipped)


def test_last_member_whose_manifest_is_missing_is_told_and_its_data_stay() -> None:
    planned = plan(without_manifest(), Etcd(None, (OURS,)))
    assert any(note.is_warning and "name no other member" in note.text for note in planned.notes)
    assert "etcdctl" not in left_by(planned)


@pytest.mark.parametrize("missing", ["/etc/kubernetes/pki/etcd/peer.crt", "/var/lib/etcd/member"])
def test_data_without_a_certificate_or_a_certificate_without_data_is_no_member(missing: str) -> None:
    machine = without_manifest()
    machine.files = {path: data for path, data in machine.files.items() if not path.startswith(missing)}
    planned = plan(machine, Etcd(None, (OURS, OTHER)))
    assert not [note for note in planned.notes if note.is_warning]


def test_skipping_the_member_leaves_its_data() -> None:
    etcd = Etcd(None)
    found = actions(plan(control_plane(), etcd, skip=("remove-etcd-member",)))
    assert EmptyFolder(path="/data/etcd/member") not in found
    assert EmptyFolder(path="/etc/kubernetes/manifests") in found
    assert etcd.asked_at == []


def test_member_alone_goes_with_its_data_as_in_kubeadm() -> None:
    found = actions(plan(control_plane(), only="remove-etcd-member"))
    assert found == [
        RemoveMember(peer_url=PEER, member_id=OURS.id),
        EmptyFolder(path="/data/etcd/member"),
        RemoveFolder(path="/data/etcd/member"),
    ]


def test_what_others_keep_beside_the_data_of_etcd_stays_and_is_told() -> None:
    machine = control_plane()
    machine.files["/data/etcd/photos/cat"] = b"x"
    planned = plan(machine)
    assert any("photos" in note.text for note in planned.notes)
    assert EmptyFolder(path="/data/etcd") not in actions(planned)


@pytest.mark.parametrize("manifest", [b"\xff", b"a: [", b"spec: {}", b"[]"])
def test_manifest_that_cannot_be_understood_stops_everything(manifest: bytes) -> None:
    with pytest.raises(NotReady, match=r"cannot be understood"):
        plan(control_plane(manifest))


def test_first_and_joined_members_are_told_apart() -> None:
    assert read_member(FIRST).is_first
    assert not read_member(JOINED).is_first
    assert read_member(JOINED).data_dir == "/data/etcd"


@pytest.mark.parametrize("folder", ["/", "/etc", "/etc/", "/usr", "/var/lib", "/etc/ssl/certs"])
def test_folder_of_the_system_is_never_emptied(folder: str) -> None:
    machine = worker()
    with pytest.raises(NotReady, match="folder of the system"):
        plan(machine, config=ResetConfiguration(certificates_dir=folder))


def test_own_folder_of_certificates_is_emptied_with_a_warning_and_tmp_if_asked_for() -> None:
    machine = worker()
    machine.files |= {"/my/pki/ca.crt": b"x", "/etc/kubernetes/tmp/x": b"x"}
    planned = plan(machine, config=ResetConfiguration(certificates_dir="/my/pki", cleanup_tmp_dir=True))
    assert {EmptyFolder(path="/my/pki"), EmptyFolder(path="/etc/kubernetes/tmp")} <= set(actions(planned))
    assert EmptyFolder(path="/etc/kubernetes/pki") not in actions(planned)
    assert any(note.is_warning and "/my/pki" in note.text for note in planned.notes)


def test_flags_of_unmounting_are_passed_on() -> None:
    planned = plan(worker(), config=ResetConfiguration(unmount_flags=("MNT_DETACH",)))
    assert Unmount(path="/var/lib/kubelet", flags=("MNT_DETACH",)) in actions(planned)


def test_without_service_manager_and_runtime_both_are_told() -> None:
    machine = worker()
    machine.services = None
    planned = plan(machine, has_runtime=False)
    assert len(planned.warnings) == 2
    assert not any(isinstance(each, ControlService | RemoveSandboxes) for each in actions(planned))


def test_users_of_the_rootless_control_plane_go_and_others_stay() -> None:
    machine = worker()
    machine.files["/etc/passwd"] = b"root:x:0:0::/root:/bin/sh\nkubeadm-etcd:x:101:101:::/bin/false\n"
    machine.files["/etc/group"] = b"root:x:0:\n"
    written = [each for each in actions(plan(machine)) if isinstance(each, WriteFile)]
    assert [(each.path, each.content) for each in written] == [("/etc/passwd", b"root:x:0:0::/root:/bin/sh\n")]


def test_machine_that_is_no_node_has_nothing_to_reset() -> None:
    assert plan(MemoryMachine(services=set())).steps == ()
