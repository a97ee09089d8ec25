"""What is recorded of changes decides what may begin, what is left, and from where each node sets out."""

from dataclasses import replace

import msgspec
import pytest

from garboard.change.outcomes import ChangeInProgress
from garboard.change.record import documents_of, refuse_unfinished
from garboard.errors import BadUsage
from garboard.phases.change_record import ChangeRecord, NodeState
from garboard.phases.revision import ChangeState
from tests.support.change.rollouts import begun, reported, rollout
from tests.support.change.snapshots import f2

FLAG = "scheduler.extraArgs[v]=1"


def flag(state: ChangeState = "rolling") -> ChangeRecord:
    return begun(rollout(f2(), FLAG), state)


def test_before_the_first_change_nothing_is_recorded_and_anything_may_begin() -> None:
    record = ChangeRecord()
    refuse_unfinished(record)
    assert (record.is_finished, record.current, record.settled, record.next_number, record.states) == (
        True, None, 0, 0, ()
    )  # fmt: skip


def test_every_node_with_something_to_do_is_told_with_its_command() -> None:
    assert flag().states == (
        NodeState("cp1", "done"),
        NodeState("cp2", "pending", "garboard change node --yes"),
        NodeState("cp3", "pending", "garboard change node --yes"),
    )


def test_a_first_node_that_was_cut_short_is_resumed() -> None:
    record = replace(flag("canary"), reports={})
    assert record.states[0] == NodeState("cp1", "pending", "garboard change resume")


def test_a_report_of_another_revision_says_nothing() -> None:
    record = flag()
    assert record.target is not None
    other = msgspec.structs.replace(record.target, revision=7)
    assert [each.state for each in reported(record, other, "done", "cp2").states] == ["done", "pending", "pending"]


def test_a_node_that_failed_is_left() -> None:
    record = flag()
    assert record.target is not None
    record = reported(record, record.target, "failed", "cp2")
    assert [(each.node, each.state) for each in record.left] == [("cp2", "failed"), ("cp3", "pending")]
    with pytest.raises(ChangeInProgress, match=r"revision 1 by alice, begun .*, is rolling; left are cp2, cp3") as told:
        refuse_unfinished(record)
    assert told.value.exit_code == 15


@pytest.mark.parametrize("state", ["pending", "canary"])
def test_a_change_whose_first_node_is_at_work_is_unfinished_whatever_nodes_say(state: ChangeState) -> None:
    record = flag(state)
    assert record.target is not None
    record = reported(record, record.target, "done", "cp1", "cp2", "cp3")
    assert not record.is_finished


def test_a_change_that_all_nodes_have_is_finished_before_anybody_has_written_so() -> None:
    record = flag()
    assert record.target is not None
    record = reported(record, record.target, "done", "cp2", "cp3")
    assert (record.is_finished, record.current, record.settled) == (True, 1, 1)
    refuse_unfinished(record)


def test_an_unconfirmed_change_is_unfinished() -> None:
    record = flag("committed")
    assert record.is_finished
    assert record.target is not None
    waiting = replace(record, target=msgspec.structs.replace(record.target, confirm_within_seconds=60))
    with pytest.raises(ChangeInProgress, match="waits to be confirmed"):
        refuse_unfinished(waiting)
    assert waiting.target is not None
    confirmed = replace(waiting, target=msgspec.structs.replace(waiting.target, confirmed=True))
    refuse_unfinished(confirmed)


def test_what_was_taken_back_leaves_its_parent() -> None:
    record = flag("reverted")
    assert (record.is_finished, record.current, record.settled) == (True, 0, 0)


def test_an_unfinished_change_leaves_nodes_with_what_all_had_before() -> None:
    record = flag()
    assert (record.current, record.settled) == (1, 0)


def test_a_revision_that_is_not_kept_is_told_with_those_that_are() -> None:
    with pytest.raises(BadUsage, match="keeps no revision 9; it has 0, 1"):
        flag().require(9)


def test_documents_are_those_of_the_cluster_unless_they_are_to_change() -> None:
    snapshot = f2()
    assert documents_of(snapshot) == {name: snapshot.stored_text(name) for name in snapshot.config_maps}
    assert documents_of(snapshot, {"kube-proxy": "x"})["kube-proxy"] == "x"
