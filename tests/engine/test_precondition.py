"""A plan that was made for other files than are there now is stale: no step writes over what it did not expect."""

import json
from collections.abc import Mapping

import pytest

from garboard.engine import (
    AddMember,
    ControlService,
    EmptyFolder,
    Executor,
    Interpreters,
    IssueRequest,
    Journal,
    Observers,
    OutcomePlaceholder,
    Plan,
    Precondition,
    RemoveFile,
    Step,
    WriteFile,
    plan_as_json,
    with_preconditions,
)
from garboard.engine.action import Action
from garboard.engine.pre_image import digest_of
from garboard.errors import StalePlan
from garboard.node.interpreters import interpreters_over
from tests.support.engine.actions import MemoryFiles, issue
from tests.support.engine.clusters import OneMember
from tests.support.engine.runs import CODEC, MemoryRun, begin

ADD = AddMember(name="b", peer_url="https://192.0.2.2:2380", outcome="members")


def write(path: str, content: bytes = b"new") -> WriteFile:
    return WriteFile(path=path, content=content, mode=0o600)


def planned(files: MemoryFiles, *actions: Action) -> Plan:
    steps = tuple(Step(action, "because", f"phase-{index}", "n") for index, action in enumerate(actions))

    def digest(path: str) -> str:
        found = files.read(path)
        return "" if found is None else digest_of(found)

    return with_preconditions(Plan(steps), digest)


class Pair:
    """Issues a key and a certificate that differ each time."""

    def __init__(self) -> None:
        self.made = 0

    def issue(self, request: IssueRequest) -> Mapping[str, bytes]:
        self.made += 1
        return {"/key": b"key %d" % self.made, "/crt": b"crt %d" % self.made}


class Killed(BaseException):
    """The process is gone."""


class DyingFiles(MemoryFiles):
    """Files whose writer dies before it writes a certain one."""

    deadly = ""

    def write(self, path: str, data: bytes, *, new_mode: int, folder_mode: int, expected: str | None = None) -> None:
        if path == self.deadly:
            raise Killed
        super().write(path, data, new_mode=new_mode, folder_mode=folder_mode, expected=expected)

    def remove(self, path: str) -> None:
        if not self.deadly:  # a process that is gone cleans nothing up
            super().remove(path)


def test_step_expects_what_planning_found() -> None:
    files = MemoryFiles({"/etc/there": (0o600, b"former")})
    plan = planned(files, write("/etc/there"), issue("pair", "/key", "/crt"))
    assert [step.preconditions for step in plan.steps] == [
        (Precondition("/etc/there", digest_of(b"former")),),
        (Precondition("/key"), Precondition("/crt")),
    ]
    shown = json.dumps(plan_as_json(plan))
    assert '"preconditions": [{"path": "/key", "absent": true}, {"path": "/crt", "absent": true}]' in shown
    assert f'"preconditions": [{{"path": "/etc/there", "sha256": "{digest_of(b"former")}"}}]' in shown
    assert CODEC.plan_from_bytes(CODEC.plan_to_bytes(plan)) == plan


@pytest.mark.parametrize(
    "earlier",
    [
        pytest.param(write("/etc/a", b"first"), id="written"),
        pytest.param(RemoveFile(path="/etc/a"), id="removed"),
        pytest.param(EmptyFolder(path="/etc"), id="removed with its folder"),
        pytest.param(ControlService(service="kubelet", verb="start", writes=("/etc/a",)), id="made by a service"),
    ],
)
def test_file_that_an_earlier_step_changes_has_no_precondition(earlier: Action) -> None:
    plan = planned(MemoryFiles({"/etc/a": (0o600, b"former")}), earlier, write("/etc/a"), write("/etcd"))
    assert plan.steps[1].preconditions == ()
    assert plan.steps[2].preconditions == (Precondition("/etcd"),)


@pytest.mark.parametrize(
    ("found", "then", "told"),
    [
        pytest.param(None, b"theirs", "/etc/a has been made since", id="made"),
        pytest.param(b"former", b"theirs", "/etc/a has changed since", id="changed"),
        pytest.param(b"former", None, "/etc/a has gone since", id="gone"),
        pytest.param(None, b"new", "/etc/a has been made since", id="made with the very content of the plan"),
    ],
)
def test_step_whose_file_moved_is_not_begun(found: bytes | None, then: bytes | None, told: str) -> None:
    files = MemoryFiles({} if found is None else {"/etc/a": (0o600, found)})
    plan = planned(files, write("/etc/first"), write("/etc/a"))
    files.files.pop("/etc/a", None)
    if then is not None:
        files.files["/etc/a"] = (0o600, then)
    store, journal = begin(plan, Observers(files=files))
    executor = Executor(interpreters_over(files=files), recorder=journal, observers=Observers(files=files))
    with pytest.raises(StalePlan, match=rf"{told} \(phase phase-1\)"):
        executor.execute(plan)
    assert files.read("/etc/a") == then
    assert set(store.record.progress.begun) == {0}


@pytest.mark.parametrize(("then", "is_moved"), [(b"former", False), (None, False), (b"theirs", True)])
@pytest.mark.parametrize("leaves_moved", [True, False])
def test_file_that_is_removed_is_the_one_that_was_planned_for(
    then: bytes | None, is_moved: bool, leaves_moved: bool
) -> None:
    files = MemoryFiles({"/etc/a": (0o600, b"former")})
    plan = planned(files, RemoveFile(path="/etc/a"), write("/etc/b"))
    assert plan.steps[0].preconditions == (Precondition("/etc/a", digest_of(b"former")),)
    files.files.pop("/etc/a")
    if then is not None:
        files.files["/etc/a"] = (0o600, then)
    observers, told = Observers(files=files), list[str]()
    store, journal = begin(plan, observers)
    executor = Executor(
        interpreters_over(files=files), told.append, journal, observers=observers, leaves_moved=leaves_moved
    )
    if is_moved and not leaves_moved:
        with pytest.raises(StalePlan, match="/etc/a has changed since"):
            executor.execute(plan)
        return
    executor.execute(plan)
    assert files.read("/etc/a") == (b"theirs" if is_moved else None)
    assert any("/etc/a has changed since (phase phase-0): it stays as it is" in line for line in told) == is_moved
    assert (files.read("/etc/b"), {*store.record.progress.finished}) == (b"new", {0, 1})


def test_stale_plan_is_refused_with_all_that_moved() -> None:
    files = MemoryFiles()
    plan = planned(files, write("/a"), write("/b"), write("/c"))
    files.files |= {"/a": (0o600, b"x"), "/c": (0o600, b"x")}
    executor = Executor(interpreters_over(files=files), observers=Observers(files=files))
    with pytest.raises(StalePlan, match=r"/a has been made since .*; /c has been made since") as caught:
        executor.refuse_stale(plan, hint="plan again")
    assert (caught.value.hint, caught.value.error_class) == ("plan again", "stale-plan")


def take_up(run: MemoryRun, files: MemoryFiles, interpreters: Interpreters) -> None:
    """Resume the run."""
    record, observers = run.record, Observers(files=files)
    plan = record.plan(run, CODEC)
    executor = Executor(interpreters, recorder=Journal(run, CODEC, observers, record.progress), observers=observers)
    executor.refuse_stale(plan, record.progress, hint="")
    executor.execute(plan, record.progress)


def test_resumed_run_accepts_its_own_half_done_work_however_often_it_was_killed() -> None:
    files = DyingFiles()
    interpreters = interpreters_over(files=files, issuer=Pair())
    plan = planned(files, issue("pair", "/key", "/crt"))
    run, journal = begin(plan, Observers(files=files))
    files.deadly = "/crt"
    with pytest.raises(Killed):
        Executor(interpreters, recorder=journal, observers=Observers(files=files)).execute(plan)
    assert files.read("/key") == b"key 1"
    # The second attempt records another key, and dies before it has written it.
    files.deadly = "/key"
    with pytest.raises(Killed):
        take_up(run, files, interpreters)
    assert files.read("/key") == b"key 1"
    files.deadly = ""
    take_up(run, files, interpreters)
    assert (files.read("/key"), files.read("/crt")) == (b"key 3", b"crt 3")


def test_file_that_a_killed_step_had_written_is_done_and_one_that_somebody_wrote_since_is_stale() -> None:
    files = DyingFiles()
    plan = planned(files, write("/a"), write("/b"))
    run, journal = begin(plan, Observers(files=files))
    interpreters = interpreters_over(files=files)
    journal.begin(0, plan.steps[0])
    files.files["/a"] = (0o600, b"new")
    files.deadly = "/a"  # it is not written again
    take_up(run, files, interpreters)
    files.deadly = ""
    run, journal = begin(planned(MemoryFiles(), write("/c")), Observers(files=files))
    journal.begin(0, run.record.plan(run, CODEC).steps[0])
    files.files["/c"] = (0o600, b"theirs")
    with pytest.raises(StalePlan, match="/c has been made since"):
        take_up(run, files, interpreters)
    assert files.read("/c") == b"theirs"


def test_file_with_the_outcome_of_an_earlier_attempt_is_the_steps_own() -> None:
    files, members = MemoryFiles(), OneMember()
    manifest = WriteFile(
        path="/etcd", content=b"--all=<all> -x", mode=0o600, outcomes=(OutcomePlaceholder("<all>", "members"),)
    )
    plan = planned(files, ADD, manifest)
    run, journal = begin(plan, Observers(files=files))
    journal.begin(0, plan.steps[0])
    journal.end(0, plan.steps[0], {"members": "a=former"})
    journal.begin(1, plan.steps[1])
    files.files["/etcd"] = (0o600, b"--all=a=former -x")
    take_up(run, files, interpreters_over(files=files, members=members))
    assert b"192.0.2.2" in (files.read("/etcd") or b"")


class Interrupted(Pair):
    """While the keys are made, another program writes one of the files."""

    def __init__(self, files: MemoryFiles, path: str) -> None:
        super().__init__()
        self.files, self.path = files, path

    def issue(self, request: IssueRequest) -> Mapping[str, bytes]:
        self.files.files[self.path] = (0o600, b"theirs")
        return super().issue(request)


@pytest.mark.parametrize("former", [None, b"former"])
@pytest.mark.parametrize("path", ["/key", "/crt"])
def test_file_that_is_written_while_keys_are_made_is_left_and_the_pair_stays_whole(
    path: str, former: bytes | None
) -> None:
    files = MemoryFiles({} if former is None else dict.fromkeys(("/key", "/crt"), (384, former)))
    plan = planned(files, issue("pair", "/key", "/crt"))
    interpreters = interpreters_over(files=files, issuer=Interrupted(files, path))
    with pytest.raises(StalePlan):
        Executor(interpreters, observers=Observers(files=files)).execute(plan)
    assert {each: files.read(each) for each in ("/key", "/crt")} == {"/key": former, "/crt": former, path: b"theirs"}
