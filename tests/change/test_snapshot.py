"""Snapshots are saved and read again; what is none is refused."""

import pytest

from garboard.change.snapshot import ClusterSnapshot, read_snapshot, snapshot_text
from garboard.errors import BadDocument
from tests.support.change.snapshots import f1, f2, f3, f4


@pytest.mark.parametrize("snapshot", [f1(), f2(is_seen=True), f3(), f4(is_seen=True)], ids=["F1", "F2", "F3", "F4"])
def test_what_is_saved_is_what_was_seen(snapshot: ClusterSnapshot) -> None:
    text = snapshot_text(snapshot)
    assert read_snapshot(text.encode(), source="saved.json") == snapshot
    assert snapshot_text(read_snapshot(text.encode(), source="saved.json")) == text


def test_what_was_not_looked_at_is_not_what_is_not_there() -> None:
    assert f1().nodes[0].manifests is None
    assert f1(is_seen=True).nodes[1].manifests == {}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        b'{"apiVersion":"v1","kind":"Pod"}',
        b'{"apiVersion":"change.garboard.dev/v2","kind":"ClusterSnapshot"}',
        b'{"apiVersion":"change.garboard.dev/v1alpha1","kind":"ClusterSnapshot","secret":1}',
        b'{"apiVersion":"change.garboard.dev/v1alpha1","kind":"ClusterSnapshot","nodes":[{"name":1}]}',
        b'{"kind":' + b"[" * 100_000,
    ],
)
def test_what_is_no_snapshot_is_refused(text: bytes) -> None:
    with pytest.raises(BadDocument) as refused:
        read_snapshot(text, source="saved.json")
    assert refused.value.error_class == "bad-snapshot"
    assert refused.value.message.startswith("saved.json is ")
