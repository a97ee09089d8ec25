import pytest

from garboard.documents import Json
from garboard.engine import (
    AddMember,
    ChangeOwner,
    ControlService,
    EmptyFolder,
    EndTurn,
    Executor,
    Eyes,
    Hands,
    MakeFolder,
    Plan,
    PullImage,
    PutObject,
    RemoveFile,
    RemoveMember,
    RemoveSandboxes,
    Step,
    TakeTurn,
    UndoRefused,
    Unmount,
    WriteFile,
    plan_undo,
)
from garboard.engine.action import Action
from tests.engine.actions import FakeServices, MemoryFiles, WishIssuer, issue
from tests.engine.runs import CODEC, MemoryRun, carried_out
from tests.engine.test_execute import Cluster, OneMember
from tests.engine.test_journal import TAKE, Queue, cut

URL = "https://192.0.2.2:2380"
ADD = AddMember(name="b", peer_url=URL, outcome="members")


def plan(*actions: Action) -> Plan:
    return Plan(tuple(Step(action, "because", f"phase-{index}", "n") for index, action in enumerate(actions)))


def write(path: str, content: bytes = b"new") -> WriteFile:
    return WriteFile(path=path, content=content, mode=0o644)


def undone(run: MemoryRun, eyes: Eyes) -> list[Action]:
    steps = plan_undo(run.record.plan(run, CODEC), run.record, eyes, run.kept).steps
    return [step.action for step in steps]


def test_files_folders_and_owners_become_what_they_were() -> None:
    before = {"/etc/kept": (0o640, b"former"), "/etc/gone": (0o600, b"was here"), "/etc/other": (0o600, b"")}
    files = MemoryFiles(dict(before), {"/etc": 0o755}, {"/etc/kept": (7, 8, None)})
    eyes = Eyes(files=files)
    run = carried_out(
        plan(
            write("/etc/kept"),
            write("/etc/kept", b"newer"),
            write("/etc/pki/etcd/new"),
            issue("pair", "/wish"),
            RemoveFile(path="/etc/gone"),
            ChangeOwner(path="/etc/other", uid=5, gid=5, mode=0o600),
            MakeFolder(path="/data", mode=0o700),
        ),
        Hands(files=files, issuer=WishIssuer()),
        eyes,
    )
    files.files["/data/made/since"] = (0o600, b"by whoever was started")
    files.files["/etc/.kept.abcd1234"] = (0o600, b"half")
    undo = plan_undo(run.record.plan(run, CODEC), run.record, eyes, run.kept)
    Executor(Hands(files=files)).execute(undo)
    assert files.files == before
    assert {path for path in files.folders if path not in ("", "/etc")} == set()
    assert files.owners["/etc/other"] == (0, 0, 0o600)
    assert undone(run, eyes) == []


def test_folder_with_somebody_elses_file_stays() -> None:
    files = MemoryFiles({}, {"/etc": 0o755})
    run = carried_out(plan(write("/etc/kubernetes/admin.conf")), Hands(files=files), Eyes(files=files))
    files.files["/etc/kubernetes/notes"] = (0o600, b"mine")
    undo = plan_undo(run.record.plan(run, CODEC), run.record, Eyes(files=files), run.kept)
    Executor(Hands(files=files)).execute(undo)
    assert files.files == {"/etc/kubernetes/notes": (0o600, b"mine")}
    assert "/etc/kubernetes" in files.folders


def test_step_that_did_not_begin_is_not_undone() -> None:
    files = MemoryFiles({}, {"/etc": 0o755})
    run = carried_out(plan(write("/etc/a"), write("/etc/b")), Hands(files=files), Eyes(files=files))
    cut(run, 3)
    assert undone(run, Eyes(files=files)) == [RemoveFile(path="/etc/a")]


def test_member_goes_first_then_services_and_files_last() -> None:
    files, services, members = MemoryFiles({}, {"/etc": 0o755, "/var": 0o755}), FakeServices(), OneMember()
    start = ControlService(service="kubelet", verb="start", fills=("/var/kubelet",), registers="n")
    hands = Hands(files=files, services=services, members=members, turns=Queue())
    eyes = Eyes(files=files, services=services)
    steps = plan(write("/etc/a"), start, TAKE, ADD, write("/etc/etcd"))
    run = carried_out(steps, hands, eyes, "elsewhere")
    files.files["/var/kubelet/state"] = (0o600, b"")
    files.folders["/var/kubelet"] = 0o755
    kinds = [type(action) for action in undone(run, eyes)]
    assert kinds[:6] == [TakeTurn, RemoveMember, ControlService, RemoveSandboxes, Unmount, EndTurn]
    assert kinds.index(EmptyFolder) > 5
    assert undone(run, eyes)[-2:] == [RemoveFile(path="/etc/etcd"), RemoveFile(path="/etc/a")]
    assert undone(run, eyes)[6].name == "n"  # type: ignore[union-attr]


class NoPods:
    """A runtime without pods."""

    def pull(self, action: PullImage) -> None:
        raise AssertionError("an undo pulls nothing")

    def remove_sandboxes(self) -> None:
        return


def test_what_a_service_writes_until_it_is_stopped_goes_and_what_was_there_stays() -> None:
    files, services = MemoryFiles({"/var/log/old": (0o600, b"")}, {"/var": 0o755, "/var/log": 0o755}), FakeServices()
    start = ControlService(service="kubelet", verb="start", fills=("/var/log",))
    run = carried_out(plan(start), Hands(files=files, services=services), Eyes(files=files, services=services))
    planned = plan_undo(run.record.plan(run, CODEC), run.record, Eyes(files=files, services=services), run.kept)
    files.files["/var/log/after"] = (0o600, b"written after undo was planned")
    Executor(Hands(files=files, services=services, runtime=NoPods())).execute(planned)
    assert list(files.files) == ["/var/log/old"]
    assert undone(run, Eyes(files=files, services=services)) == [RemoveSandboxes(), Unmount(path="/var/log")]


def test_file_that_a_service_may_still_make_goes_once_it_is_stopped() -> None:
    files, services = MemoryFiles({}, {"/etc": 0o755}), FakeServices()
    start = ControlService(service="kubelet", verb="start", writes=("/etc/kubelet.conf",))
    run = carried_out(plan(start), Hands(files=files, services=services), Eyes(files=files, services=services))
    stop = ControlService(service="kubelet", verb="stop", is_needed=False)
    assert undone(run, Eyes(files=files, services=services)) == [stop, RemoveFile(path="/etc/kubelet.conf")]
    services.stop("kubelet")
    assert undone(run, Eyes(files=files, services=services)) == []
    files.files["/etc/kubelet.conf"] = (0o600, b"")
    assert undone(run, Eyes(files=files, services=services)) == [RemoveFile(path="/etc/kubelet.conf")]


def test_service_returns_to_its_former_state() -> None:
    files, services = MemoryFiles({}, {"/etc": 0o755}), FakeServices({"kubelet"})
    steps = plan(
        ControlService(service="kubelet", verb="stop"), write("/etc/a"), ControlService(service="kubelet", verb="start")
    )
    eyes = Eyes(files=files, services=services)
    run = carried_out(steps, Hands(files=files, services=services), eyes)
    verbs = [each.verb for each in undone(run, eyes) if isinstance(each, ControlService)]
    assert verbs == ["stop", "start"]


class Watched(OneMember):
    def has(self, peer_url: str) -> bool:
        return peer_url in self.peers.values()


def test_member_that_was_there_before_stays() -> None:
    members = Watched()
    members.peers["b"] = URL
    eyes = Eyes(files=MemoryFiles(), members=members)
    run = carried_out(plan(ADD), Hands(files=MemoryFiles(), members=members), eyes)
    assert undone(run, eyes) == []


class Objects(Cluster):
    def find(self, kind: str, namespace: str, name: str) -> dict[str, Json] | None:
        found = self.objects.get(name)
        return found if isinstance(found, dict) else None


def put(name: str, content: Json, *, is_shared: bool = False) -> PutObject:
    return PutObject(
        api_version="v1",
        kind="ConfigMap",
        name=name,
        namespace="kube-system",
        content=content,
        keeps_other_data=is_shared,
    )


def test_objects_of_a_cluster_that_the_run_made_go_with_its_files() -> None:
    files, cluster = MemoryFiles(), Objects()
    run = carried_out(
        plan(put("a", {})), Hands(files=files, objects=cluster), Eyes(files=files, objects=cluster), "made"
    )
    assert undone(run, Eyes(files=files, objects=cluster)) == []


def test_object_is_deleted_or_restored() -> None:
    files, cluster = MemoryFiles(), Objects()
    former: Json = {"data": {"x": "1"}, "metadata": {"name": "old", "uid": "u", "resourceVersion": "3"}}
    cluster.objects["old"] = former
    eyes, hands = Eyes(files=files, objects=cluster), Hands(files=files, objects=cluster)
    run = carried_out(plan(put("old", {"data": {}}), put("new", {"data": {}})), hands, eyes)
    undo = plan_undo(run.record.plan(run, CODEC), run.record, eyes, run.kept)
    Executor(hands).execute(undo)
    assert cluster.objects == {"old": {"data": {"x": "1"}, "metadata": {"name": "old"}}}


def test_shared_object_loses_only_the_keys_of_the_run() -> None:
    files, cluster = MemoryFiles(), Objects()
    eyes, hands = Eyes(files=files, objects=cluster), Hands(files=files, objects=cluster)
    run = carried_out(plan(put("shared", {"data": {"mine": "1"}}, is_shared=True)), hands, eyes)
    cluster.objects["shared"] = {"data": {"mine": "1", "theirs": "2"}}
    (patch,) = undone(run, eyes)
    assert patch.content == {"data": {"mine": None}}  # type: ignore[union-attr]
    cluster.objects["shared"] = {"data": {"mine": "1"}}
    (deletion,) = undone(run, eyes)
    assert type(deletion).__name__ == "DeleteObject"


def test_run_that_removed_what_nobody_brings_back_is_not_undone() -> None:
    files = MemoryFiles()
    run = carried_out(plan(EmptyFolder(path="/var/lib/etcd")), Hands(files=files), Eyes(files=files))
    with pytest.raises(UndoRefused, match="nobody can bring back"):
        undone(run, Eyes(files=files))
