"""What reset plans for a worker, for a member of etcd and for the last one, and what it leaves alone."""

from dataclasses import dataclass, field

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
    Tell,
    Unmount,
    WriteFile,
)
from garboard.errors import ClusterUnreachable, NotReady
from garboard.model.lifecycle import ResetConfiguration
from garboard.phases import plan_workflow, select
from garboard.phases.reset import RESET
from garboard.phases.reset.context import observe_reset
from garboard.phases.reset.member import MANIFEST, SeenMember, read_member
from tests.phases.machines import MemoryMachine

PEER = "https://192.0.2.10:2380"
MANIFEST_TEXT = """
spec:
  containers:
  - command:
    - etcd
    - --advertise-client-urls=https://192.0.2.10:2379
    - --initial-advertise-peer-urls=https://192.0.2.10:2380
    {state}
  volumes:
  - {{name: etcd-certs, hostPath: {{path: /etc/kubernetes/pki/etcd}}}}
  - {{name: etcd-data, hostPath: {{path: /data/etcd}}}}
"""
FIRST = MANIFEST_TEXT.format(state="").encode()
JOINED = MANIFEST_TEXT.format(state="- --initial-cluster-state=existing").encode()
OURS = SeenMember("node-1", (PEER,), ("https://192.0.2.10:2379",), is_learner=False)
OTHER = SeenMember("node-2", ("https://192.0.2.11:2380",), ("https://192.0.2.11:2379",), is_learner=False)
LEARNER = SeenMember("", ("https://192.0.2.12:2380",), (), is_learner=True)


@dataclass
class Etcd:
    """Members, or nobody who answers."""

    seen: tuple[SeenMember, ...] | None = (OURS, OTHER)
    asked_at: list[tuple[str, ...]] = field(default_factory=list)

    def members(self, client_urls: tuple[str, ...]) -> tuple[SeenMember, ...]:
        self.asked_at.append(client_urls)
        if self.seen is None:
            raise ClusterUnreachable("nobody answers")
        return self.seen


def worker() -> MemoryMachine:
    files = ("/etc/kubernetes/kubelet.conf", "/etc/kubernetes/pki/ca.crt", "/var/lib/kubelet/config.yaml")
    return MemoryMachine(files=dict.fromkeys(files, b"x"), services={"kubelet"})


def control_plane(manifest: bytes = JOINED) -> MemoryMachine:
    machine = worker()
    machine.files |= {MANIFEST: manifest, "/etc/kubernetes/admin.conf": b"x", "/data/etcd/member/wal": b"x"}
    machine.folders |= {"/data/etcd/member"}
    return machine


def plan(
    machine: MemoryMachine,
    etcd: Etcd | None = None,
    *,
    only: str | None = None,
    skip: tuple[str, ...] = (),
    has_runtime: bool = True,
    config: ResetConfiguration | None = None,
) -> Plan:
    selected = select(RESET, only=only, skip=skip)
    context = observe_reset(
        config or ResetConfiguration(cri_socket="unix:///run/c.sock"),
        machine=machine,
        etcd=etcd or Etcd(),
        node_name="node-1",
        selected=[each.path for each in selected],
        has_runtime=lambda _socket: has_runtime,
    )
    return plan_workflow(selected, context)


def actions(planned: Plan) -> list[Action]:
    return [step.action for step in planned.steps]


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
    assert isinstance(found[-1], Tell)
    assert "kubectl delete node node-1" in found[-1].text
    assert etcd.asked_at == []


def test_member_leaves_first_and_its_data_go_when_nothing_writes_them() -> None:
    etcd = Etcd()
    found = actions(plan(control_plane(), etcd))
    assert found[0] == RemoveMember(peer_url=PEER)
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
def test_member_that_cannot_or_need_not_leave_stays_and_its_data_go(seen: tuple[SeenMember, ...], told: str) -> None:
    planned = plan(control_plane(), Etcd(seen))
    assert not any(isinstance(each, RemoveMember) for each in actions(planned))
    assert any(told in note.text for note in planned.notes)
    assert EmptyFolder(path="/data/etcd/member") in actions(planned)


def test_joined_node_is_not_reset_while_etcd_cannot_be_asked() -> None:
    with pytest.raises(ClusterUnreachable, match=r"nobody answers.*phase remove-etcd-member") as caught:
        plan(control_plane(), Etcd(None))
    assert "--skip-phases remove-etcd-member" in (caught.value.hint or "")


def test_first_node_whose_etcd_never_came_up_is_reset_with_a_warning() -> None:
    planned = plan(control_plane(FIRST), Etcd(None))
    assert any(note.is_warning and PEER in note.text for note in planned.notes)
    assert EmptyFolder(path="/data/etcd/member") in actions(planned)


def test_skipping_the_member_leaves_its_data() -> None:
    etcd = Etcd(None)
    found = actions(plan(control_plane(), etcd, skip=("remove-etcd-member",)))
    assert EmptyFolder(path="/data/etcd/member") not in found
    assert EmptyFolder(path="/etc/kubernetes/manifests") in found
    assert etcd.asked_at == []


def test_member_alone_goes_with_its_data_as_in_kubeadm() -> None:
    found = actions(plan(control_plane(), only="remove-etcd-member"))
    assert found == [
        RemoveMember(peer_url=PEER), EmptyFolder(path="/data/etcd/member"), RemoveFolder(path="/data/etcd/member"),
    ]  # fmt: skip


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
