"""Journals of every format, as the code of that format wrote them, are read by today's code.

A run of an earlier release must stay resumable. `format-1` was written by the release that named types by their
classes; `format-2` names them by tags, and its schema says what a journal may hold: a change of it is a change of the
format, or a field that readers of the same format can do without.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from garboard.engine import (
    AcquireLease,
    AddMember,
    AwaitGate,
    ControlLink,
    ControlTimer,
    ControlUnitFile,
    Executor,
    Issue,
    Journal,
    Observers,
    Outcomes,
    Plan,
    ReleaseLease,
    RemoveFile,
    RunRecord,
    ShowMessage,
    WriteFile,
    plan_as_json,
    plan_undo,
    read_run,
    traits_of,
)
from garboard.engine.codec import FORMAT_1
from garboard.engine.execute import has_lapsed
from garboard.engine.file_content import content_with
from garboard.errors import NotReady
from garboard.host.runs import RunFolder
from garboard.node.interpreters import interpreters_over
from garboard.node.runs import plan_codec
from tests.support.engine.actions import Diary, FakeServices, MemoryFiles
from tests.support.engine.golden_journals import CLUSTER_PLAN, LATER, LATEST, PROXY, SIGNED, TUNNEL, UPGRADE, schema_of
from tests.support.engine.runs import MemoryRun
from tests.support.node.edges import EveryEdge

JOURNALS = Path(__file__).parents[1] / "vectors" / "journals"
RUNS = sorted(path for path in JOURNALS.glob("format-*/*") if path.is_dir())
CODEC = plan_codec()
CLUSTER_PLAN_FILE = JOURNALS / "format-2/cluster-plan.json"


def run_named(ending: str, form: str = "format-1") -> tuple[RunFolder, RunRecord]:
    folder = RunFolder(next(path for path in RUNS if path.parent.name == form and path.name.endswith(ending)))
    record = read_run(folder.lines(), CODEC)
    assert record is not None
    return folder, record


@pytest.mark.parametrize("path", RUNS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_run_is_read_with_its_plan(path: Path) -> None:
    folder = RunFolder(path)
    record = read_run(folder.lines(), CODEC)
    assert record is not None
    assert record.header.run == path.name
    if record.is_open:
        plan = record.plan(folder, CODEC)
        assert len(plan.steps) == record.steps
        # What is kept today says the same, value for value.
        assert CODEC.plan_from_bytes(CODEC.plan_to_bytes(plan)) == plan


@pytest.mark.parametrize("form", ["format-1", "format-2"])
def test_open_init_is_where_it_stopped(form: str) -> None:
    folder, record = run_named("0001-init", form)
    plan = record.plan(folder, CODEC)
    assert (record.state, record.failure) == ("open", "the disk is full")
    assert (len(record.progress.finished), set(record.progress.begun) - set(record.progress.finished)) == (20, {20})
    assert record.header.cluster == "made"
    assert record.is_undoable
    issued = next(index for index, step in enumerate(plan.steps) if isinstance(step.action, Issue))
    assert record.progress.facts[issued]
    assert any(isinstance(step.action, AwaitGate) for step in plan.steps)


@pytest.mark.parametrize("form", ["format-1", "format-2"])
def test_open_join_knows_its_member_and_its_lease(form: str) -> None:
    folder, record = run_named("0002-join", form)
    plan = record.plan(folder, CODEC)
    actions = [step.action for step in plan.steps]
    acquired = next(index for index, each in enumerate(actions) if isinstance(each, AcquireLease))
    added = next(index for index, each in enumerate(actions) if isinstance(each, AddMember))
    assert any(isinstance(each, ReleaseLease) for each in actions)
    # The process has gone: its Lease and its learner may have gone, too, and both steps are repeated.
    assert has_lapsed(acquired, plan, record.progress)
    assert has_lapsed(added, plan, record.progress)
    assert "node-1=" in record.progress.finished[added]["initial-cluster"]


@pytest.mark.parametrize("form", ["format-1", "format-2"])
def test_run_of_every_action_can_be_planned_back(form: str) -> None:
    folder, record = run_named("0003-init", form)
    plan = record.plan(folder, CODEC)
    assert isinstance(plan.steps[-1].action, ShowMessage)
    undo = plan_undo(plan, record, Observers(files=MemoryFiles()), folder.kept)
    contents = [step.action.content for step in undo.steps if isinstance(step.action, WriteFile)]
    assert b"former" in contents


@pytest.mark.parametrize("form", ["format-1", "format-2"])
def test_vectors_hold_every_kind_of_action_of_their_time(form: str) -> None:
    found = {
        traits_of(step.action).tag
        for path in RUNS
        if path.parent.name == form
        and (record := read_run(RunFolder(path).lines(), CODEC)) is not None
        and record.is_open
        for step in record.plan(RunFolder(path), CODEC).steps
    }
    assert found >= set(FORMAT_1.values())


def _tags_in(value: object) -> Iterator[str]:
    """Yield the tags of all values in JSON that a codec has written."""
    if isinstance(value, dict):
        if "before" in value:  # a pre-image stands in its entry without a tag, as the reader knows what it is
            yield "before"
        if isinstance(value.get("$"), str):
            yield value["$"]
        yield from (tag for each in value.values() for tag in _tags_in(each))
    elif isinstance(value, list):
        yield from (tag for each in value for tag in _tags_in(each))


def test_vectors_hold_every_tag_of_the_schema() -> None:
    """A tag that is added gets a run of its own beside those of `golden_journals`, which later code has to read."""
    found: set[str] = set()
    for path in RUNS:
        if path.parent.name == "format-2":
            run = RunFolder(path)
            for line in run.lines().splitlines():
                found.update(_tags_in(json.loads(line)))
            record = read_run(run.lines(), CODEC)
            assert record is not None
            if record.is_open:
                found.update(_tags_in(json.loads(run.kept(record.header.sha256))))
    found.update(_tags_in(json.loads(CLUSTER_PLAN_FILE.read_text())))
    never_written = {"datetime"}  # no value has a moment among its members, and format 1 had none either
    assert set(schema_of(CODEC)) - found == never_written


def test_what_format_2_got_later_is_read_value_for_value() -> None:
    folder, record = run_named("0007-init", "format-2")
    assert record.plan(folder, CODEC) == LATER
    timers = next(index for index, step in enumerate(LATER.steps) if isinstance(step.action, ControlTimer))
    assert record.progress.begun[timers].enabled_timers == ("garboard-revert",)


def test_what_format_2_got_last_is_read_value_for_value() -> None:
    folder, record = run_named("0008-init", "format-2")
    assert record.plan(folder, CODEC) == LATEST
    assert CODEC.decode(json.loads(CLUSTER_PLAN_FILE.read_text())) == CLUSTER_PLAN


def test_file_that_may_have_no_way_back_is_read_value_for_value() -> None:
    folder, record = run_named("00011-upgrade", "format-2")
    assert record.plan(folder, CODEC) == UPGRADE


def test_change_with_kube_proxy_is_read_value_for_value() -> None:
    folder, record = run_named("00012-change", "format-2")
    assert record.plan(folder, CODEC) == PROXY


def test_change_with_a_certificate_signed_elsewhere_is_read_value_for_value() -> None:
    folder, record = run_named("00013-change", "format-2")
    assert record.plan(folder, CODEC) == SIGNED


def test_run_through_a_tunnel_is_read_value_for_value() -> None:
    folder, record = run_named("0009-join", "format-2")
    assert record.plan(folder, CODEC) == TUNNEL
    found = {type(step.action): record.progress.begun[index] for index, step in enumerate(TUNNEL.steps)}
    assert found[ControlUnitFile].enabled_services == ("konnectivity-agent",)
    assert found[ControlLink].addresses == ("10.255.0.1",)


def test_reset_of_format_1_still_ends_all_other_runs() -> None:
    _, record = run_named("0004-reset")
    assert record.header.supersedes
    assert not record.is_undoable


def test_closed_run_is_only_history() -> None:
    folder, record = run_named("0006-init")
    assert (record.state, list(folder.path.glob("kept/*"))) == ("committed", [])


@pytest.mark.parametrize(
    ("ending", "state"), [("0001-change", "unconfirmed"), ("0002-change", "confirmed"), ("0003-change", "reverted")]
)
def test_run_that_waited_to_be_confirmed_is_read_with_its_end(ending: str, state: str) -> None:
    folder, record = run_named(ending, "format-2-confirmation")
    assert (record.state, record.header.confirm_within_s) == (state, 600.0)
    assert record.until == datetime(2026, 11, 15, 12, 10, tzinfo=UTC)
    assert (record.is_open, record.is_closed) == (False, state != "unconfirmed")
    assert bool(list(folder.path.glob("kept/*"))) == (state == "unconfirmed")


def test_run_that_waits_to_be_confirmed_can_be_planned_back() -> None:
    folder, record = run_named("0001-change", "format-2-confirmation")
    files = MemoryFiles({"/etc/former": (0o600, b"new"), "/etc/absent": (0o600, b"new")}, {"/etc": 0o755})
    undo = plan_undo(record.plan(folder, CODEC), record, Observers(files=files), folder.kept)
    assert [step.action for step in undo.steps[:2]] == [
        RemoveFile(path="/etc/absent"),
        WriteFile(path="/etc/former", content=b"former", mode=0o640, is_secret=True),
    ]


def _with(entry: str, **members: object) -> bytes:
    lines = [json.loads(line) for line in entry.splitlines()]
    return b"".join(json.dumps({**line, **members}).encode() + b"\n" for line in lines)


def test_fields_that_are_not_known_are_left_out() -> None:
    folder, record = run_named("0004-reset")
    lines = folder.lines().decode()
    later = read_run(_with(lines, inventedLater={"x": 1}), CODEC)
    assert later == record
    first, *rest = (json.loads(line) for line in lines.splitlines())
    begun = next(line for line in rest if line["type"] == "begin")
    begun["before"] = {**begun["before"], "inventedLater": 1}
    mixed = b"".join(json.dumps(line).encode() + b"\n" for line in (first, *rest))
    assert read_run(mixed, CODEC) == record
    plan = json.loads(folder.kept(record.header.sha256))
    plan["of"]["steps"]["of"][0]["of"]["inventedLater"] = 1
    plan["of"]["steps"]["of"][0]["of"]["action"]["of"]["inventedLater"] = 1
    assert CODEC.plan_from_bytes(json.dumps(plan).encode()) == record.plan(folder, CODEC)


def test_closed_run_of_another_format_is_history_and_an_open_one_is_named() -> None:
    lines = (run_named("0006-init")[0]).lines()
    entries = [json.loads(line) for line in lines.splitlines()]
    entries[0]["format"] = 99
    later = b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)
    record = read_run(later, CODEC)
    assert record is not None
    assert (record.state, record.header.command) == ("committed", "init")
    with pytest.raises(NotReady, match="it is in format 99, and this garboard knows 1 and 2"):
        read_run(b"\n".join(later.splitlines()[:-1]) + b"\n", CODEC)


def test_schema_of_the_journal_is_the_one_that_was_agreed() -> None:
    agreed = json.loads((JOURNALS / "format-2" / "schema.json").read_text())
    assert schema_of(CODEC) == agreed, "a journal holds something else: see docs/decisions/journal-tags.md"


def test_plan_of_today_is_shown_like_the_one_of_format_1() -> None:
    """But for the three tags that have new words."""
    folder, record = run_named("0003-init")
    words = {"take-turn": "acquire-lease", "end-turn": "release-lease", "tell": "show-message"}
    masked = json.dumps(record.header.masked)
    for former, now in words.items():
        masked = masked.replace(f'"type": "{former}"', f'"type": "{now}"')
    plan: Plan = record.plan(folder, CODEC)
    assert plan_as_json(plan) == json.loads(masked)


class AddedMember(EveryEdge):
    def add(self, action: AddMember) -> Outcomes:
        return {action.outcome: f"{action.name}={action.peer_url}"}


@pytest.mark.parametrize("form", ["format-1", "format-2"])
def test_open_run_is_carried_to_its_end(form: str) -> None:
    folder, record = run_named("0002-join", form)
    plan, progress = record.plan(folder, CODEC), record.progress
    every, diary, files, members = EveryEdge(), Diary(), MemoryFiles(), AddedMember()
    # The file of etcd's members, which was finished, is as it is to be; so it is not repeated with the learner.
    outcomes: Outcomes = {}
    for index, step in enumerate(plan.steps):
        if isinstance(step.action, AddMember):
            outcomes = members.add(step.action)
        elif index in progress.finished and isinstance(step.action, WriteFile) and step.action.outcomes:
            files.files[step.action.path] = (0o600, content_with(step.action, outcomes))
    interpreters = interpreters_over(
        files=files, issuer=every, services=FakeServices(), objects=every, pods=every, members=members,
        runtime=every, leases=every, waiter=every, display=every, sealer=every, is_serving=bool,
        is_learner=bool,
    )  # fmt: skip
    Executor(interpreters, recorder=diary, observers=Observers(files=files)).execute(plan, progress)
    ended = {int(line.split()[1]) for line in diary.lines if line.startswith("end ")}
    # The Lease and the learner of a process that has gone are looked after again, and so are gates: what was well may
    # have died since. Nothing else is repeated.
    repeated = AcquireLease | AddMember | AwaitGate
    again = {index for index, step in enumerate(plan.steps) if isinstance(step.action, repeated)}
    assert ended == (set(range(len(plan.steps))) - set(progress.finished)) | again


def test_run_of_format_1_that_was_taken_up_is_read_with_what_was_added() -> None:
    """It cannot go back to the release that began it: what is added has tags."""
    folder, record = run_named("0001-init")
    store = MemoryRun(data=folder.lines())
    journal = Journal(store, CODEC, Observers(files=MemoryFiles()), record.progress)
    plan = record.plan(folder, CODEC)
    journal.begin(21, plan.steps[21])
    journal.end(21, plan.steps[21], {})
    again = read_run(store.lines(), CODEC)
    assert again is not None
    assert set(again.progress.finished) == {*record.progress.finished, 21}
