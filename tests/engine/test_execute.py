import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from garboard.documents import Json
from garboard.engine import (
    AddMember,
    ChangeOwner,
    ControlService,
    DeleteObject,
    EmptyFolder,
    Ending,
    Executor,
    Filling,
    Hands,
    MakeFolder,
    Outcome,
    PatchObject,
    Plan,
    PlanRefused,
    PromoteMember,
    PutObject,
    RemoveFile,
    RemoveFolder,
    RemoveMember,
    Step,
    Unsupported,
    WriteFile,
)
from garboard.engine.action import Action
from garboard.errors import ClusterUnreachable, GarboardError
from tests.engine.actions import Diary, FakeServices, MemoryFiles, WishIssuer, issue


def plan(*actions: Action) -> Plan:
    return Plan(tuple(Step(action, "because", f"phase-{index}") for index, action in enumerate(actions)))


FILE = WriteFile(path="/etc/a", content=b"a", mode=0o600)


def test_steps_are_done_in_order_with_their_modes() -> None:
    files, services = MemoryFiles(), FakeServices()
    hands = Hands(files=files, issuer=WishIssuer(), services=services)
    Executor(hands).execute(
        plan(
            MakeFolder(path="/data", mode=0o700),
            FILE,
            issue("certificate", "/wish"),
            ControlService(service="kubelet", verb="start"),
        )
    )
    assert files.folders == {"/data": 0o700, "/etc": 0o755, "": 0o755}
    assert files.files == {"/etc/a": (0o600, b"a"), "/wish": (0o600, b"certificate")}
    assert services.running == {"kubelet"}


def test_existing_file_keeps_its_mode() -> None:
    files = MemoryFiles({"/etc/a": (0o640, b"before")})
    Executor(Hands(files=files)).execute(plan(FILE))
    assert files.files == {"/etc/a": (0o640, b"a")}


@pytest.mark.parametrize(
    "action",
    [
        pytest.param(Unsupported(what="waiting"), id="not built"),
        pytest.param(issue("certificate", "/wish"), id="no issuer"),
        pytest.param(ControlService(service="kubelet", verb="stop"), id="no service manager"),
        pytest.param(PutObject(api_version="v1", kind="ConfigMap", name="x", content={}), id="no API client"),
    ],
)
def test_plan_that_cannot_be_finished_is_not_begun(action: Action) -> None:
    files = MemoryFiles()
    with pytest.raises(PlanRefused, match="phase-1: "):
        Executor(Hands(files=files)).execute(plan(FILE, action))
    assert files.files == {}


class Cluster:
    """An API server that keeps what is put."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}

    def put(self, action: PutObject) -> None:
        self.objects[action.name] = action.content

    def patch(self, action: PatchObject) -> None:
        self.objects[action.name] = [self.objects[action.name], action.content]

    def delete(self, action: DeleteObject) -> None:
        self.objects.pop(action.name, None)


class OneMember:
    """An etcd of one member, to which others are added."""

    def __init__(self) -> None:
        self.peers = {"a": "https://192.0.2.1:2380"}

    def add(self, action: AddMember) -> str:
        self.peers[action.name] = action.peer_url
        return ",".join(f"{name}={url}" for name, url in self.peers.items())

    def promote(self, action: PromoteMember) -> None:
        raise AssertionError("nobody asked for it")

    def remove(self, action: RemoveMember) -> None:
        self.peers = {name: url for name, url in self.peers.items() if url != action.peer_url}


def test_outcome_of_a_step_stands_in_the_file_of_a_later_one() -> None:
    files, url = MemoryFiles(), "https://192.0.2.2:2380"
    add = AddMember(name="b", peer_url=url, outcome="members")
    manifest = WriteFile(path="/etcd", content=b"--all=<all>", mode=0o600, outcomes=(Outcome("<all>", "members"),))
    members = OneMember()
    Executor(Hands(files=files, members=members)).execute(plan(add, manifest))
    assert files.read("/etcd") == b"--all=a=https://192.0.2.1:2380,b=https://192.0.2.2:2380"
    Executor(Hands(files=files, members=members)).execute(plan(RemoveMember(peer_url=url)))
    assert list(members.peers) == ["a"]


def test_what_is_to_go_goes_and_its_neighbours_stay() -> None:
    folders = {"/a": 0o755, "/a/b": 0o755}
    files = MemoryFiles({"/a/b/c": (0o600, b""), "/a/d": (0o600, b""), "/e": (0o600, b"")}, dict(folders))
    Executor(Hands(files=files)).execute(plan(EmptyFolder(path="/a/b"), RemoveFolder(path="/a"), RemoveFile(path="/e")))
    assert files.files == {"/a/d": (0o600, b"")}
    assert files.folders == folders


def test_object_is_patched_and_deleted() -> None:
    cluster = Cluster()
    node = PutObject(api_version="v1", kind="Node", name="n", content={"a": 1})
    patch = PatchObject(api_version="v1", kind="Node", name="n", content={"b": 2})
    Executor(Hands(files=MemoryFiles(), objects=cluster)).execute(plan(node, patch))
    assert cluster.objects == {"n": [{"a": 1}, {"b": 2}]}
    gone = DeleteObject(api_version="v1", kind="Node", name="n")
    Executor(Hands(files=MemoryFiles(), objects=cluster)).execute(plan(gone, gone))
    assert cluster.objects == {}


def test_placeholder_of_an_object_is_filled_with_the_file_that_an_earlier_step_made() -> None:
    cluster = Cluster()
    info = PutObject(
        api_version="v1",
        kind="ConfigMap",
        name="info",
        content={"data": {"kubeconfig": "ca: <ca>\n", "list": ["<ca>", 1]}},
        fillings=(Filling("<ca>", "/etc/a"),),
    )
    Executor(Hands(files=MemoryFiles(), objects=cluster)).execute(plan(FILE, info))
    assert cluster.objects == {"info": {"data": {"kubeconfig": "ca: YQ==\n", "list": ["YQ==", 1]}}}


def test_end_of_an_object_is_counted_from_when_it_is_put() -> None:
    cluster = Cluster()
    token = PutObject(
        api_version="v1",
        kind="Secret",
        name="token",
        content={"data": {"expiration": "<end>"}},
        endings=(Ending("<end>", timedelta(hours=2)),),
    )
    before = datetime.now(UTC).replace(microsecond=0)
    Executor(Hands(files=MemoryFiles(), objects=cluster)).execute(plan(token))
    found: Any = cluster.objects["token"]
    ends = datetime.fromisoformat(base64.b64decode(found["data"]["expiration"]).decode())
    assert before <= ends - timedelta(hours=2) <= datetime.now(UTC)


def test_file_changes_hands() -> None:
    files = MemoryFiles()
    Executor(Hands(files=files)).execute(plan(FILE, ChangeOwner(path="/etc/a", uid=100, gid=101, mode=0o600)))
    assert files.owners == {"/etc/a": (100, 101, 0o600)}


def test_recorder_hears_of_every_step_before_and_after() -> None:
    diary = Diary()
    Executor(Hands(files=MemoryFiles()), recorder=diary).execute(plan(FILE, FILE))
    assert diary.lines == ["begin 0 phase-0", "end 0 phase-0", "begin 1 phase-1", "end 1 phase-1"]


def test_failed_step_has_begun_and_not_ended() -> None:
    diary = Diary()
    hands = Hands(files=MemoryFiles(), services=FakeServices(is_broken=True))
    with pytest.raises(GarboardError, match="does not answer"):
        Executor(hands, recorder=diary).execute(plan(ControlService(service="kubelet", verb="start"), FILE))
    assert diary.lines == ["begin 0 phase-0"]


@pytest.mark.parametrize("is_there", [False, True])
def test_service_is_left_alone_where_a_file_makes_its_restart_needless(is_there: bool) -> None:
    files, services = MemoryFiles(), FakeServices()
    actions: list[Action] = [FILE] if is_there else []
    actions.append(ControlService(service="kubelet", verb="restart", unless="/etc/a"))
    Executor(Hands(files=files, services=services)).execute(plan(*actions))
    assert services.running == (set() if is_there else {"kubelet"})


def test_failure_of_a_service_that_is_not_needed_is_told() -> None:
    lines: list[str] = []
    files = MemoryFiles()
    hands = Hands(files=files, services=FakeServices(is_broken=True))
    Executor(hands, lines.append).execute(plan(ControlService(service="kubelet", verb="start", is_needed=False), FILE))
    assert "/etc/a" in files.files
    assert any(line.startswith("[phase-0] warning: cannot start the service kubelet") for line in lines)


class LateCluster(Cluster):
    """An API server that hangs up on the first who asks."""

    calls = 0

    def delete(self, action: DeleteObject) -> None:
        self.calls += 1
        if self.calls == 1:
            raise ClusterUnreachable("the API server broke the connection")
        super().delete(action)


@pytest.mark.parametrize(("patience_s", "calls"), [pytest.param(30.0, 2, id="patient"), pytest.param(0.0, 1, id="not")])
def test_cluster_out_of_reach_is_asked_again_by_who_has_patience(
    patience_s: float, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("garboard.engine.execute._PAUSE_S", 0.0)
    cluster = LateCluster()
    executor = Executor(Hands(files=MemoryFiles(), objects=cluster), patience_s=patience_s)
    gone = plan(DeleteObject(api_version="v1", kind="Node", name="n"))
    if patience_s:
        executor.execute(gone)
    else:
        with pytest.raises(ClusterUnreachable):
            executor.execute(gone)
    assert cluster.calls == calls


class StrictCluster(Cluster):
    error_class = "forbidden"

    def delete(self, action: DeleteObject) -> None:
        raise GarboardError("nodes are not yours to delete", error_class=self.error_class)


@pytest.mark.parametrize("why", ["forbidden", "unauthenticated", "bad-kubeconfig"])
def test_object_that_may_not_be_deleted_is_left_to_a_person_unless_it_is_needed(why: str) -> None:
    told: list[str] = []
    cluster = StrictCluster()
    cluster.error_class = why
    executor = Executor(Hands(files=MemoryFiles(), objects=cluster), told.append)
    executor.execute(plan(DeleteObject(api_version="v1", kind="Node", name="n", is_needed=False)))
    assert told[-1].endswith("may not delete Node n; please do: kubectl delete node n")
    with pytest.raises(GarboardError, match="not yours"):
        executor.execute(plan(DeleteObject(api_version="v1", kind="Node", name="n")))
