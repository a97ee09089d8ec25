import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from garboard.engine import (
    AddMember,
    AwaitGate,
    ChangeOwner,
    ControlService,
    DeleteObject,
    EmptyFolder,
    Evidence,
    Executor,
    ExpiryPlaceholder,
    FilePlaceholder,
    Gate,
    GateFailed,
    MakeFolder,
    Observers,
    OutcomePlaceholder,
    PatchObject,
    Plan,
    PlanRefused,
    Progress,
    PutObject,
    ReleaseLease,
    RemoveFile,
    RemoveFolder,
    RemoveMember,
    Step,
    WriteFile,
    refuse_units,
)
from garboard.engine.action import Action
from garboard.engine.pre_image import PreImage
from garboard.errors import ClusterUnreachable, GarboardError
from garboard.node.interpreters import interpreters_over
from garboard.phases.gates import KubeletHealthy
from garboard.retry import Clock
from tests.support.engine.actions import Diary, FakeServices, MemoryFiles, WishIssuer, issue
from tests.support.engine.clusters import TAKE, Cluster, OneMember, RecordedLeases


def plan(*actions: Action) -> Plan:
    return Plan(tuple(Step(action, "because", f"phase-{index}") for index, action in enumerate(actions)))


FILE = WriteFile(path="/etc/a", content=b"a", mode=0o600)


def test_steps_are_done_in_order_with_their_modes() -> None:
    files, services = MemoryFiles(), FakeServices()
    interpreters = interpreters_over(files=files, issuer=WishIssuer(), services=services)
    Executor(interpreters).execute(
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
    Executor(interpreters_over(files=files)).execute(plan(FILE))
    assert files.files == {"/etc/a": (0o640, b"a")}


@pytest.mark.parametrize(
    "action",
    [
        pytest.param(issue("certificate", "/wish"), id="no issuer"),
        pytest.param(ControlService(service="kubelet", verb="stop"), id="no service manager"),
        pytest.param(PutObject(api_version="v1", kind="ConfigMap", name="x", content={}), id="no API client"),
    ],
)
def test_plan_that_cannot_be_finished_is_not_begun(action: Action) -> None:
    files = MemoryFiles()
    with pytest.raises(PlanRefused, match="phase-1: "):
        Executor(interpreters_over(files=files)).execute(plan(FILE, action))
    assert files.files == {}


def test_outcome_of_a_step_stands_in_the_file_of_a_later_one() -> None:
    files, url = MemoryFiles(), "https://192.0.2.2:2380"
    add = AddMember(name="b", peer_url=url, outcome="members")
    manifest = WriteFile(
        path="/etcd", content=b"--all=<all>", mode=0o600, outcomes=(OutcomePlaceholder("<all>", "members"),)
    )
    members = OneMember()
    Executor(interpreters_over(files=files, members=members)).execute(plan(add, manifest))
    assert files.read("/etcd") == b"--all=a=https://192.0.2.1:2380,b=https://192.0.2.2:2380"
    Executor(interpreters_over(files=files, members=members)).execute(plan(RemoveMember(peer_url=url)))
    assert list(members.peers) == ["a"]


class CountingWaiter:
    """Counts how often a gate is waited for."""

    def __init__(self) -> None:
        self.waits = 0

    def wait(self, gate: Gate) -> None:
        self.waits += 1

    def is_open(self, gate: Gate) -> bool:
        raise AssertionError(gate)


def resumed(finished: int, waiter: CountingWaiter, files: MemoryFiles) -> None:
    """Resume a run of a gate and two files after so many of its steps."""
    steps = plan(AwaitGate(gate=KubeletHealthy(timeout_s=1)), FILE, replace(FILE, path="/etc/b"))
    progress = Progress(finished={index: {} for index in range(finished)})
    interpreters = interpreters_over(files=files, waiter=waiter)
    Executor(interpreters, observers=Observers(files=files)).execute(steps, progress)


def test_gate_that_was_passed_is_looked_at_again_on_resume() -> None:
    waiter, files = CountingWaiter(), MemoryFiles()
    resumed(2, waiter, files)
    assert waiter.waits == 1
    assert set(files.files) == {"/etc/b"}


def test_step_does_not_begin_if_a_gate_that_was_passed_is_closed_now() -> None:
    class ClosedWaiter(CountingWaiter):
        def wait(self, gate: Gate) -> None:
            raise GateFailed(gate, "connection refused", Evidence())

    files = MemoryFiles()
    with pytest.raises(GateFailed, match="in vain for a healthy kubelet: connection refused"):
        resumed(2, ClosedWaiter(), files)
    assert files.files == {}


def test_gate_of_a_run_that_only_was_not_closed_is_left_alone() -> None:
    waiter = CountingWaiter()
    resumed(3, waiter, MemoryFiles())
    assert waiter.waits == 0


MEMBERS_FILE = WriteFile(
    path="/etcd", content=b"--all=<all>", mode=0o600, outcomes=(OutcomePlaceholder("<all>", "members"),)
)
ADD = AddMember(name="b", peer_url="https://192.0.2.2:2380", outcome="members")
BEFORE = "a=https://192.0.2.1:2380,b=https://192.0.2.2:2380"
NOW = "a=https://192.0.2.1:2380,c=https://192.0.2.3:2380,b=https://192.0.2.2:2380"


@pytest.mark.parametrize("recorded", [pytest.param(BEFORE, id="resumed"), pytest.param(NOW, id="resumed twice")])
def test_file_of_an_outcome_that_has_changed_is_written_again(recorded: str) -> None:
    """Another node joined while the run was cut short; a first resume was cut short before it came to the file."""
    files, members = MemoryFiles({"/etcd": (0o600, f"--all={BEFORE}".encode())}), OneMember()
    members.peers["c"] = "https://192.0.2.3:2380"
    progress = Progress(finished={0: {"members": recorded}, 1: {}}, begun={0: PreImage(), 1: PreImage()})
    interpreters = interpreters_over(files=files, members=members)
    Executor(interpreters, observers=Observers(files=files)).execute(plan(ADD, MEMBERS_FILE, FILE), progress)
    assert files.read("/etcd") == f"--all={NOW}".encode()


def test_file_of_an_outcome_that_is_the_same_is_left_alone() -> None:
    files, diary = MemoryFiles({"/etcd": (0o600, f"--all={BEFORE}".encode())}), Diary()
    progress = Progress(finished={0: {"members": BEFORE}, 1: {}}, begun={0: PreImage(), 1: PreImage()})
    interpreters = interpreters_over(files=files, members=OneMember())
    executor = Executor(interpreters, recorder=diary, observers=Observers(files=files))
    executor.execute(plan(ADD, MEMBERS_FILE, FILE), progress)
    assert diary.lines == ["begin 0 phase-0", "learned 0", "end 0 phase-0", "begin 2 phase-2", "end 2 phase-2"]


def test_of_a_lease_that_was_made_longer_only_the_last_acquisition_is_repeated() -> None:
    """Its holder may have been killed while its own API server was away: it is to be held as it was then."""
    longer = replace(TAKE, duration_s=600.0)
    leases, files = RecordedLeases(), MemoryFiles()
    progress = Progress(finished={0: {}, 1: {}}, begun={0: PreImage(), 1: PreImage(), 2: PreImage()})
    executor = Executor(interpreters_over(files=files, leases=leases), observers=Observers(files=files))
    release = ReleaseLease(name=TAKE.name, namespace=TAKE.namespace, holder=TAKE.holder)
    executor.execute(plan(TAKE, longer, FILE, TAKE, release), progress)
    assert leases.acquired == [longer, TAKE]


def test_what_is_to_go_goes_and_its_neighbours_stay() -> None:
    folders = {"/a": 0o755, "/a/b": 0o755}
    files = MemoryFiles({"/a/b/c": (0o600, b""), "/a/d": (0o600, b""), "/e": (0o600, b"")}, dict(folders))
    Executor(interpreters_over(files=files)).execute(
        plan(EmptyFolder(path="/a/b"), RemoveFolder(path="/a"), RemoveFile(path="/e"))
    )
    assert files.files == {"/a/d": (0o600, b"")}
    assert files.folders == folders


def test_object_is_patched_and_deleted() -> None:
    cluster = Cluster()
    node = PutObject(api_version="v1", kind="Node", name="n", content={"a": 1})
    patch = PatchObject(api_version="v1", kind="Node", name="n", content={"b": 2})
    Executor(interpreters_over(files=MemoryFiles(), objects=cluster)).execute(plan(node, patch))
    assert cluster.objects == {"n": [{"a": 1}, {"b": 2}]}
    gone = DeleteObject(api_version="v1", kind="Node", name="n")
    Executor(interpreters_over(files=MemoryFiles(), objects=cluster)).execute(plan(gone, gone))
    assert cluster.objects == {}


def test_placeholder_of_an_object_is_filled_with_the_file_that_an_earlier_step_made() -> None:
    cluster = Cluster()
    info = PutObject(
        api_version="v1",
        kind="ConfigMap",
        name="info",
        content={"data": {"kubeconfig": "ca: <ca>\n", "list": ["<ca>", 1]}},
        fillings=(FilePlaceholder("<ca>", "/etc/a"),),
    )
    Executor(interpreters_over(files=MemoryFiles(), objects=cluster)).execute(plan(FILE, info))
    assert cluster.objects == {"info": {"data": {"kubeconfig": "ca: YQ==\n", "list": ["YQ==", 1]}}}


def test_end_of_an_object_is_counted_from_when_it_is_put() -> None:
    cluster = Cluster()
    token = PutObject(
        api_version="v1",
        kind="Secret",
        name="token",
        content={"data": {"expiration": "<end>"}},
        endings=(ExpiryPlaceholder("<end>", timedelta(hours=2)),),
    )
    before = datetime.now(UTC).replace(microsecond=0)
    Executor(interpreters_over(files=MemoryFiles(), objects=cluster)).execute(plan(token))
    found: Any = cluster.objects["token"]
    ends = datetime.fromisoformat(base64.b64decode(found["data"]["expiration"]).decode())
    assert before <= ends - timedelta(hours=2) <= datetime.now(UTC)


def test_file_changes_its_owner() -> None:
    files = MemoryFiles()
    Executor(interpreters_over(files=files)).execute(
        plan(FILE, ChangeOwner(path="/etc/a", uid=100, gid=101, mode=0o600))
    )
    assert files.owners == {"/etc/a": (100, 101, 0o600)}


def test_recorder_hears_of_every_step_before_and_after() -> None:
    diary = Diary()
    Executor(interpreters_over(files=MemoryFiles()), recorder=diary).execute(plan(FILE, FILE))
    assert diary.lines == ["begin 0 phase-0", "end 0 phase-0", "begin 1 phase-1", "end 1 phase-1"]


def test_failed_step_has_begun_and_not_ended() -> None:
    diary = Diary()
    interpreters = interpreters_over(files=MemoryFiles(), services=FakeServices(is_broken=True))
    with pytest.raises(GarboardError, match="does not answer"):
        Executor(interpreters, recorder=diary).execute(plan(ControlService(service="kubelet", verb="start"), FILE))
    assert diary.lines == ["begin 0 phase-0"]


@pytest.mark.parametrize("is_there", [False, True])
def test_service_is_left_alone_where_a_file_makes_its_restart_needless(is_there: bool) -> None:
    files, services = MemoryFiles(), FakeServices()
    actions: list[Action] = [FILE] if is_there else []
    actions.append(ControlService(service="kubelet", verb="restart", unless="/etc/a"))
    Executor(interpreters_over(files=files, services=services)).execute(plan(*actions))
    assert services.running == (set() if is_there else {"kubelet"})


def test_failure_of_a_service_that_is_not_needed_is_told() -> None:
    lines: list[str] = []
    files = MemoryFiles()
    interpreters = interpreters_over(files=files, services=FakeServices(is_broken=True))
    Executor(interpreters, lines.append).execute(
        plan(ControlService(service="kubelet", verb="start", is_needed=False), FILE)
    )
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


@pytest.mark.parametrize(
    ("retry_s", "calls"), [pytest.param(30.0, 2, id="some time"), pytest.param(0.0, 1, id="no time")]
)
def test_cluster_out_of_reach_is_asked_again_while_there_is_time(retry_s: float, calls: int) -> None:
    cluster = LateCluster()
    executor = Executor(
        interpreters_over(files=MemoryFiles(), objects=cluster),
        retry_s=retry_s,
        clock=Clock(sleep=lambda _seconds: None),
    )
    gone = plan(DeleteObject(api_version="v1", kind="Node", name="n"))
    if retry_s:
        executor.execute(gone)
    else:
        with pytest.raises(ClusterUnreachable):
            executor.execute(gone)
    assert cluster.calls == calls


class StrictCluster(Cluster):
    error_class = "forbidden"

    def delete(self, action: DeleteObject) -> None:
        raise GarboardError("nodes are not yours to delete", error_class=self.error_class)


@pytest.mark.parametrize("why", ["forbidden", "unauthenticated", "bad-kubeconfig", "no-kubeconfig"])
def test_object_that_may_not_be_deleted_is_left_to_a_person_unless_it_is_needed(why: str) -> None:
    told: list[str] = []
    cluster = StrictCluster()
    cluster.error_class = why
    executor = Executor(interpreters_over(files=MemoryFiles(), objects=cluster), told.append)
    executor.execute(plan(DeleteObject(api_version="v1", kind="Node", name="n", is_needed=False)))
    assert told[-1].endswith("may not delete Node n; please do: kubectl delete node n")
    with pytest.raises(GarboardError, match="not yours"):
        executor.execute(plan(DeleteObject(api_version="v1", kind="Node", name="n")))


@pytest.mark.parametrize(
    ("units", "told"),
    [
        pytest.param(("", "u", "u"), "a unit of this plan could not go back: make folder /etc/b", id="a new folder"),
        pytest.param(("u", "", "u"), "the unit u is in several parts", id="in two parts"),
    ],
)
def test_unit_that_could_not_go_back_is_refused(units: tuple[str, ...], told: str) -> None:
    remove, make = RemoveFile(path="/etc/a"), MakeFolder(path="/etc/b", mode=0o700)
    actions: tuple[Action, ...] = (remove, make, remove)
    steps = tuple(Step(action, "", unit=unit) for action, unit in zip(actions, units, strict=True))
    with pytest.raises(PlanRefused, match=told):
        refuse_units(Plan(steps))
