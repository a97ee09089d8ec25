import json

import pytest

from garboard.engine import (
    AddMember,
    ControlService,
    EmptyFolder,
    Executor,
    Interpreters,
    Journal,
    Observers,
    OutcomePlaceholder,
    Plan,
    PromoteMember,
    ReleaseLease,
    RemoveFile,
    Step,
    UndoRefused,
    WriteFile,
    plan_as_json,
    plan_undo,
    read_run,
)
from garboard.engine.action import Action
from garboard.errors import GarboardError, NotReady
from garboard.node.interpreters import interpreters_over
from tests.support.engine.actions import FakeServices, MemoryFiles, WishIssuer, issue
from tests.support.engine.clusters import TAKE, OneMember, RecordedLeases
from tests.support.engine.runs import CODEC, MemoryRun, begin, carried_out, cut

SECRET = WriteFile(path="/etc/secret", content=b"top secret", mode=0o600, is_secret=True)
FILE = WriteFile(path="/etc/a", content=b"a", mode=0o600)


def plan(*actions: Action) -> Plan:
    return Plan(tuple(Step(action, "because", f"phase-{index}", "n") for index, action in enumerate(actions)))


def test_journal_holds_the_plan_as_a_dry_run_prints_it_and_no_secret() -> None:
    files = MemoryFiles({"/etc/secret": (0o600, b"former secret")})
    steps = plan(SECRET, FILE)
    run = carried_out(steps, interpreters_over(files=files), Observers(files=files))
    assert run.record.header.masked == plan_as_json(steps)
    assert b"top secret" not in run.data
    assert b"former secret" not in run.data
    assert run.record.plan(run, CODEC) == steps


def test_torn_last_line_is_ignored() -> None:
    files = MemoryFiles()
    run = carried_out(plan(FILE, SECRET), interpreters_over(files=files), Observers(files=files))
    whole = read_run(run.data, CODEC)
    assert whole is not None
    assert whole.progress.finished.keys() == {0, 1}
    for missing in range(1, len(run.data.splitlines()[-1])):
        torn = read_run(run.data[:-missing], CODEC)
        assert torn is not None
        assert torn.progress.finished.keys() == {0}
        assert set(torn.progress.begun) == {0, 1}


def test_run_without_a_plan_is_no_run() -> None:
    assert read_run(b"", CODEC) is None
    assert read_run(b'{"type":"plan","form', CODEC) is None


def test_damaged_line_is_a_failure_in_words() -> None:
    with pytest.raises(NotReady, match="line 1 cannot be read"):
        read_run(b"garbage\n", CODEC)


@pytest.mark.parametrize("data", [b"\0" * 4096, b'{"type":"plan","form\0\0\0', b'{"type":"begin","index":0', b"x"])
def test_journal_without_a_line_is_damaged_unless_it_is_the_beginning_of_a_plan(data: bytes) -> None:
    with pytest.raises(NotReady, match="none of its lines can be read") as caught:
        read_run(data, CODEC)
    assert caught.value.error_class == "bad-journal"


def test_closed_run_keeps_no_content() -> None:
    run, journal = begin(plan(FILE), Observers(files=MemoryFiles()))
    journal.close("committed")
    assert run.contents == {}
    assert not run.record.is_open


def test_open_run_tells_where_and_why_it_stopped() -> None:
    run, journal = begin(plan(FILE, SECRET), Observers(files=MemoryFiles()))
    interpreters = interpreters_over(files=MemoryFiles())
    Executor(interpreters, recorder=journal).execute(plan(FILE))
    journal.fail("no space left")
    assert (run.record.next_phase, run.record.failure, run.record.steps) == ("phase-1", "no space left", 2)


def resumed(run: MemoryRun, interpreters: Interpreters, observers: Observers) -> list[str]:
    """Carry an open run to its end; return what was reported."""
    told: list[str] = []
    journal = Journal(run, CODEC, Observers(files=MemoryFiles()), run.record.progress)
    executor = Executor(interpreters, told.append, journal, observers=observers)
    executor.execute(run.record.plan(run, CODEC), run.record.progress)
    return told


def test_finished_step_is_not_repeated() -> None:
    files = MemoryFiles()
    run = carried_out(plan(FILE, SECRET), interpreters_over(files=files), Observers(files=files))
    cut(run, 3)
    files.files["/etc/a"] = (0o600, b"changed since")
    assert resumed(run, interpreters_over(files=files), Observers(files=files)) == [
        "[phase-1] write /etc/secret (0600)"
    ]
    assert files.files["/etc/a"] == (0o600, b"changed since")


def test_step_that_was_cut_short_is_repeated_and_its_temporary_file_removed() -> None:
    files = MemoryFiles({"/etc/.a.keptkept": (0o600, b"somebody's own")}, {"/etc": 0o755})
    run = carried_out(plan(FILE), interpreters_over(files=files), Observers(files=files))
    cut(run, 2)
    files.files = {"/etc/.a.keptkept": (0o600, b"somebody's own"), "/etc/.a.abcd1234": (0o600, b"half")}
    resumed(run, interpreters_over(files=files), Observers(files=files))
    assert files.files == {"/etc/.a.keptkept": (0o600, b"somebody's own"), "/etc/a": (0o600, b"a")}


def test_pair_that_was_issued_whole_is_kept_and_half_of_one_is_issued_again() -> None:
    files, issuer = MemoryFiles(), WishIssuer()
    run = carried_out(
        plan(issue("pair", "/wish")), interpreters_over(files=files, issuer=issuer), Observers(files=files)
    )
    cut(run, 3)
    entries = [json.loads(line)["type"] for line in run.data.splitlines()]
    assert entries == ["plan", "begin", "learned"]
    resumed(run, interpreters_over(files=files, issuer=NoIssuer()), Observers(files=files))
    files.files["/wish"] = (0o600, b"another")
    cut(run, 3)
    with pytest.raises(AssertionError, match="issued again"):
        resumed(run, interpreters_over(files=files, issuer=NoIssuer()), Observers(files=files))


class NoIssuer(WishIssuer):
    def issue(self, request: object) -> dict[str, bytes]:
        raise AssertionError("issued again")


class PromotingMember(OneMember):
    def promote(self, action: PromoteMember) -> None:
        return


def test_outcome_of_a_finished_step_is_restored() -> None:
    files, members = MemoryFiles(), PromotingMember()
    add = AddMember(name="b", peer_url="https://192.0.2.2:2380", outcome="members")
    promote = PromoteMember(peer_url="https://192.0.2.2:2380", timeout_s=1)
    manifest = WriteFile(path="/etcd", content=b"<all>", mode=0o600, outcomes=(OutcomePlaceholder("<all>", "members"),))
    interpreters = interpreters_over(files=files, members=members)
    run = carried_out(plan(add, promote, manifest), interpreters, Observers(files=files))
    cut(run, 6)
    files.files.clear()
    told = resumed(run, interpreters_over(files=files, members=OneMember()), Observers(files=files))
    assert told == ["[phase-2] write /etcd (0600)"]
    assert files.read("/etcd") == b"a=https://192.0.2.1:2380,b=https://192.0.2.2:2380"


END = ReleaseLease(name="lock", namespace="kube-system", holder="n")


def test_lease_is_acquired_again_unless_it_was_released_and_a_learner_is_looked_for() -> None:
    files, leases, members = MemoryFiles(), RecordedLeases(), OneMember()
    add = AddMember(name="b", peer_url="https://192.0.2.2:2380", outcome="members")
    steps = plan(TAKE, add, FILE, END, SECRET)
    interpreters = interpreters_over(files=files, leases=leases, members=members)
    run = carried_out(steps, interpreters, Observers(files=files))
    data = run.data
    cut(run, 5)
    leases.calls.clear()
    members.peers.pop("b")  # the next holder of the lease removed the learner of a dead holder
    resumed(run, interpreters, Observers(files=files))
    assert leases.calls == ["take", "end"]
    assert "b" in members.peers
    run.data = data
    cut(run, 10)
    leases.calls.clear()
    resumed(run, interpreters, Observers(files=files))
    assert leases.calls == []


def test_service_that_runs_is_not_started_again() -> None:
    services = FakeServices()
    start = plan(ControlService(service="kubelet", verb="start"))
    files = MemoryFiles()
    run = carried_out(
        start, interpreters_over(files=files, services=services), Observers(files=files, services=services)
    )
    cut(run, 2)
    services.is_broken = True
    resumed(run, interpreters_over(files=files, services=services), Observers(files=files, services=services))
    services.running.clear()
    cut(run, 2)
    with pytest.raises(GarboardError, match="does not answer"):
        resumed(run, interpreters_over(files=files, services=services), Observers(files=files, services=services))


def test_run_that_cannot_be_undone_keeps_nothing_of_what_it_removes() -> None:
    files = MemoryFiles({"/etc/secret": (0o600, b"former secret")})
    run = carried_out(
        plan(RemoveFile(path="/etc/secret"), EmptyFolder(path="/etc/pki")),
        interpreters_over(files=files),
        Observers(files=files),
        is_undoable=False,
    )
    assert not run.record.is_undoable
    assert b"former secret" not in b"".join(run.contents.values())
    assert run.record.progress.finished.keys() == {0, 1}


def test_run_can_be_undone_down_to_its_point_of_no_return() -> None:
    files = MemoryFiles({"/etc/first": (0o600, b"former first"), "/etc/last": (0o600, b"former last")})
    run = carried_out(
        plan(RemoveFile(path="/etc/first"), EmptyFolder(path="/etc/pki"), RemoveFile(path="/etc/last")),
        interpreters_over(files=files),
        Observers(files=files),
    )
    assert run.record.is_undoable
    undo = plan_undo(run.record.plan(run, CODEC), run.record, Observers(files=files), run.kept)
    Executor(interpreters_over(files=files), observers=Observers(files=files)).execute(undo)
    assert (files.read("/etc/first"), files.read("/etc/last")) == (None, b"former last")
    (note,) = undo.warnings
    assert note.text == (
        "undo ends at the point of no return, empty /etc/pki: nobody can bring back what is in the folder, "
        "and what the run did before that stays"
    )
    cut(run, 5)  # as if it had been killed when the folder was empty
    assert not run.record.is_undoable
    with pytest.raises(UndoRefused, match="has removed what nobody can bring back"):
        plan_undo(run.record.plan(run, CODEC), run.record, Observers(files=files), run.kept)
    cut(run, 3)  # as if it had been killed before the folder was emptied
    assert run.record.is_undoable
    undo = plan_undo(run.record.plan(run, CODEC), run.record, Observers(files=files), run.kept)
    Executor(interpreters_over(files=files), observers=Observers(files=files)).execute(undo)
    assert files.read("/etc/first") == b"former first"
    assert undo.warnings == ()


def test_run_that_was_resumed_after_its_point_of_no_return_keeps_what_it_removes() -> None:
    files = MemoryFiles({"/etc/last": (0o600, b"former last")})
    observers, interpreters = Observers(files=files), interpreters_over(files=files)
    whole = plan(EmptyFolder(path="/etc/pki"), RemoveFile(path="/etc/last"))
    run = carried_out(whole, interpreters, observers)
    cut(run, 3)
    files.files["/etc/last"] = (0o600, b"former last")
    progress = run.record.progress
    Executor(interpreters, recorder=Journal(run, CODEC, observers, progress)).execute(whole, progress)
    Executor(interpreters, observers=observers).execute(plan_undo(whole, run.record, observers, run.kept))
    assert files.read("/etc/last") == b"former last"


def test_run_of_an_earlier_release_is_not_undone_after_its_point_of_no_return() -> None:
    """Its journal has no pre-images of what came later, so that nothing would be restored."""
    files = MemoryFiles({"/etc/last": (0o600, b"former last")})
    whole = plan(EmptyFolder(path="/etc/pki"), RemoveFile(path="/etc/last"))
    run = carried_out(whole, interpreters_over(files=files), Observers(files=files))
    run.data = run.data.replace(b'"keepsAfterLoss":true,', b"")
    assert not run.record.is_undoable
    with pytest.raises(UndoRefused, match="has removed what nobody can bring back"):
        plan_undo(whole, run.record, Observers(files=files), run.kept)


def test_run_that_can_be_undone_keeps_what_it_removes() -> None:
    files = MemoryFiles({"/etc/secret": (0o600, b"former secret")})
    run = carried_out(plan(RemoveFile(path="/etc/secret")), interpreters_over(files=files), Observers(files=files))
    assert run.record.is_undoable
    assert b"former secret" in run.contents.values()
