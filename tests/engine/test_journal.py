import json

import pytest

from garboard.engine import (
    AddMember,
    ControlService,
    EmptyFolder,
    EndTurn,
    Executor,
    Eyes,
    Hands,
    Journal,
    Outcome,
    Plan,
    PromoteMember,
    RemoveFile,
    Step,
    TakeTurn,
    WriteFile,
    plan_as_json,
    read_run,
)
from garboard.engine.action import Action
from garboard.errors import GarboardError, NotReady
from tests.engine.actions import FakeServices, MemoryFiles, WishIssuer, issue
from tests.engine.runs import CODEC, MemoryRun, begin, carried_out
from tests.engine.test_execute import OneMember

SECRET = WriteFile(path="/etc/secret", content=b"top secret", mode=0o600, is_secret=True)
FILE = WriteFile(path="/etc/a", content=b"a", mode=0o600)


def plan(*actions: Action) -> Plan:
    return Plan(tuple(Step(action, "because", f"phase-{index}", "n") for index, action in enumerate(actions)))


def test_journal_holds_the_plan_as_a_dry_run_prints_it_and_no_secret() -> None:
    files = MemoryFiles({"/etc/secret": (0o600, b"former secret")})
    steps = plan(SECRET, FILE)
    run = carried_out(steps, Hands(files=files), Eyes(files=files))
    assert run.record.header.masked == plan_as_json(steps)
    assert b"top secret" not in run.data
    assert b"former secret" not in run.data
    assert run.record.plan(run, CODEC) == steps


def test_torn_last_line_is_ignored() -> None:
    files = MemoryFiles()
    run = carried_out(plan(FILE, SECRET), Hands(files=files), Eyes(files=files))
    whole = read_run(run.data, CODEC)
    assert whole is not None
    assert whole.progress.finished.keys() == {0, 1}
    for cut in range(1, len(run.data.splitlines()[-1])):
        torn = read_run(run.data[:-cut], CODEC)
        assert torn is not None
        assert torn.progress.finished.keys() == {0}
        assert torn.progress.unfinished == {1}


def test_run_without_a_plan_is_no_run() -> None:
    assert read_run(b"", CODEC) is None
    assert read_run(b'{"type":"plan","form', CODEC) is None


def test_damaged_line_is_a_failure_in_words() -> None:
    with pytest.raises(NotReady, match="line 1 cannot be read"):
        read_run(b"garbage\n", CODEC)


def test_closed_run_keeps_no_content() -> None:
    run, journal = begin(plan(FILE), Eyes(files=MemoryFiles()))
    journal.close("committed")
    assert run.contents == {}
    assert not run.record.is_open


def test_open_run_tells_where_and_why_it_stopped() -> None:
    run, journal = begin(plan(FILE, SECRET), Eyes(files=MemoryFiles()))
    hands = Hands(files=MemoryFiles())
    Executor(hands, recorder=journal).execute(plan(FILE))
    journal.fail("no space left")
    assert (run.record.next_phase, run.record.failure, run.record.steps) == ("phase-1", "no space left", 2)


def resumed(run: MemoryRun, hands: Hands) -> list[str]:
    """Carry an open run to its end; return what was told."""
    told: list[str] = []
    journal = Journal(run, CODEC, Eyes(files=MemoryFiles()), run.record.progress)
    Executor(hands, told.append, journal).execute(run.record.plan(run, CODEC), run.record.progress)
    return told


def cut(run: MemoryRun, lines: int) -> None:
    """Make the journal end after that many lines, as if the process had been killed then."""
    run.data = b"".join(run.data.splitlines(keepends=True)[:lines])


def test_finished_step_is_not_repeated() -> None:
    files = MemoryFiles()
    run = carried_out(plan(FILE, SECRET), Hands(files=files), Eyes(files=files))
    cut(run, 3)
    files.files["/etc/a"] = (0o600, b"changed since")
    assert resumed(run, Hands(files=files)) == ["[phase-1] write /etc/secret (0600)"]
    assert files.files["/etc/a"] == (0o600, b"changed since")


def test_step_that_was_cut_short_is_repeated_and_its_temporary_file_removed() -> None:
    files = MemoryFiles({"/etc/.a.keptkept": (0o600, b"somebody's own")}, {"/etc": 0o755})
    run = carried_out(plan(FILE), Hands(files=files), Eyes(files=files))
    cut(run, 2)
    files.files = {"/etc/.a.keptkept": (0o600, b"somebody's own"), "/etc/.a.abcd1234": (0o600, b"half")}
    resumed(run, Hands(files=files))
    assert files.files == {"/etc/.a.keptkept": (0o600, b"somebody's own"), "/etc/a": (0o600, b"a")}


def test_pair_that_was_issued_whole_is_kept_and_half_of_one_is_issued_again() -> None:
    files, issuer = MemoryFiles(), WishIssuer()
    run = carried_out(plan(issue("pair", "/wish")), Hands(files=files, issuer=issuer), Eyes(files=files))
    cut(run, 3)
    entries = [json.loads(line)["type"] for line in run.data.splitlines()]
    assert entries == ["plan", "begin", "learned"]
    resumed(run, Hands(files=files, issuer=NoIssuer()))
    files.files["/wish"] = (0o600, b"another")
    cut(run, 3)
    with pytest.raises(AssertionError, match="issued again"):
        resumed(run, Hands(files=files, issuer=NoIssuer()))


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
    manifest = WriteFile(path="/etcd", content=b"<all>", mode=0o600, outcomes=(Outcome("<all>", "members"),))
    hands = Hands(files=files, members=members)
    run = carried_out(plan(add, promote, manifest), hands, Eyes(files=files))
    cut(run, 5)
    files.files.clear()
    told = resumed(run, Hands(files=files, members=OneMember()))
    assert told == ["[phase-2] write /etcd (0600)"]
    assert files.read("/etcd") == b"a=https://192.0.2.1:2380,b=https://192.0.2.2:2380"


TAKE = TakeTurn(name="turn", namespace="kube-system", holder="n", timeout_s=1)
END = EndTurn(name="turn", namespace="kube-system", holder="n")


class Queue:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def take(self, action: TakeTurn) -> None:
        self.calls.append("take")

    def end(self, action: EndTurn) -> None:
        self.calls.append("end")


def test_turn_is_taken_again_unless_it_was_passed_on_and_a_learner_is_looked_for() -> None:
    files, turns, members = MemoryFiles(), Queue(), OneMember()
    add = AddMember(name="b", peer_url="https://192.0.2.2:2380", outcome="members")
    steps = plan(TAKE, add, FILE, END, SECRET)
    hands = Hands(files=files, turns=turns, members=members)
    run = carried_out(steps, hands, Eyes(files=files))
    data = run.data
    cut(run, 5)
    turns.calls.clear()
    members.peers.pop("b")  # whoever had the next turn removed the learner of a dead holder
    resumed(run, hands)
    assert turns.calls == ["take", "end"]
    assert "b" in members.peers
    run.data = data
    cut(run, 10)
    turns.calls.clear()
    resumed(run, hands)
    assert turns.calls == []


def test_service_that_runs_is_not_started_again() -> None:
    services = FakeServices()
    start = plan(ControlService(service="kubelet", verb="start"))
    files = MemoryFiles()
    run = carried_out(start, Hands(files=files, services=services), Eyes(files=files, services=services))
    cut(run, 2)
    services.is_broken = True
    resumed(run, Hands(files=files, services=services))
    services.running.clear()
    cut(run, 2)
    with pytest.raises(GarboardError, match="does not answer"):
        resumed(run, Hands(files=files, services=services))


def test_run_that_cannot_be_undone_keeps_nothing_of_what_it_removes() -> None:
    files = MemoryFiles({"/etc/secret": (0o600, b"former secret")})
    run = carried_out(
        plan(RemoveFile(path="/etc/secret"), EmptyFolder(path="/etc/pki")), Hands(files=files), Eyes(files=files)
    )
    assert not run.record.is_undoable
    assert b"former secret" not in b"".join(run.contents.values())
    assert run.record.progress.finished.keys() == {0, 1}


def test_run_that_can_be_undone_keeps_what_it_removes() -> None:
    files = MemoryFiles({"/etc/secret": (0o600, b"former secret")})
    run = carried_out(plan(RemoveFile(path="/etc/secret")), Hands(files=files), Eyes(files=files))
    assert run.record.is_undoable
    assert b"former secret" in run.contents.values()
