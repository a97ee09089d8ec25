"""The record of a coordinator, as it is read after a kill or from a damaged disk."""

import pytest

from garboard.engine import ClusterPlan, NodePart
from garboard.errors import NotReady
from garboard.node.coordinator_record import CoordinatorRecord, PartRecord, RecordJournal, read_record
from garboard.node.via import RemoteRun, RemoteStatus
from tests.support.engine.runs import CODEC, MemoryRun

PLAN = ClusterPlan((NodePart(node="cp1", words=("change",)), NodePart(node="cp2", words=("change",), stdin=b"s3cret")))
BEFORE = RemoteStatus({"1-init": RemoteRun("1-init", "init", "open", 9, 3, "the disk is full")})


def begun() -> tuple[MemoryRun, RecordJournal]:
    store = MemoryRun()
    journal = RecordJournal(store, CODEC)
    journal.begin("change apply", PLAN)
    return store, journal


def read(store: MemoryRun) -> CoordinatorRecord:
    found = read_record(store.lines())
    assert found is not None
    return found


def test_last_line_of_a_part_counts() -> None:
    store, journal = begun()
    assert [part.state for part in read(store).parts] == ["pending", "pending"]
    for part in (PartRecord("running", before=BEFORE), PartRecord("failed", "2-change", "it ended", BEFORE)):
        journal.note(0, part)
        assert read(store).parts == (part, PartRecord())
    assert read(store).left == ("cp1", "cp2")
    journal.note(0, PartRecord("done", "2-change"))
    assert read(store).left == ("cp2",)


def test_plan_is_kept_until_the_record_is_closed_and_its_secrets_are_in_no_line() -> None:
    store, journal = begun()
    assert read(store).plan(store, CODEC) == PLAN
    assert b"s3cret" not in store.lines()
    journal.close()
    assert not read(store).is_open
    assert store.contents == {}


def test_torn_line_is_ignored() -> None:
    store, journal = begun()
    whole = len(store.data)
    journal.note(0, PartRecord("running", before=BEFORE))
    for length in range(whole, len(store.data)):
        assert read_record(store.data[:length]) == read_record(store.data[:whole])
    assert read_record(store.data[: whole - 1]) is None


@pytest.mark.parametrize(
    "line",
    [b"7", b"\0", b'{"type":"part","index":9}', b'{"type":"part","index":"0"}', b'{"type":"cluster-plan","format":9}'],
)
def test_damaged_line_is_named(line: bytes) -> None:
    store, _ = begun()
    with pytest.raises(NotReady, match="line 2 of a coordinator's record cannot be read") as caught:
        read_record(store.data + line + b"\n")
    assert caught.value.error_class == "bad-journal"
