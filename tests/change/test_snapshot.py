"""Snapshots are saved and read again; what is none is refused."""

import builtins
import copy
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from garboard.change.observations import observations
from garboard.change.snapshot import (
    API_VERSION,
    KIND,
    ClusterSnapshot,
    NodeEndpoint,
    NodeSettings,
    SnapshotNode,
    Snapshotted,
    contents_of,
    read_snapshot,
    snapshot_text,
)
from garboard.errors import BadDocument
from tests.support.change.snapshots import f1, f2, f3, f4


@pytest.mark.parametrize("snapshot", [f1(), f2(is_seen=True), f3(), f4(is_seen=True)], ids=["F1", "F2", "F3", "F4"])
def test_what_is_saved_is_what_was_seen(snapshot: ClusterSnapshot) -> None:
    text = snapshot_text(snapshot)
    assert read_snapshot(text.encode(), source="saved.json") == snapshot
    assert snapshot_text(read_snapshot(text.encode(), source="saved.json")) == text


_TEXTS = st.sampled_from(["", "a", "ü\n"])


def _values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Return values of a type of the snapshot; parts have fields left out, or given as an equal of their default."""
    if isinstance(kind, type) and issubclass(kind, Snapshotted):
        types, fields = get_type_hints(kind), msgspec.structs.fields(kind)
        own = {each.name: _values_of(types[each.name]) for each in fields}
        for each in fields:
            if isinstance(each.default, Snapshotted | int):
                own[each.name] |= st.builds(_another, st.just(each.default))
        needed = {each.name: own[each.name] for each in fields if each.required}
        return st.fixed_dictionaries(needed, optional={k: v for k, v in own.items() if k not in needed}).map(
            lambda given: kind(**given)
        )
    match get_origin(kind), get_args(kind):
        case builtins.list, (of,):
            return st.lists(_values_of(of), max_size=2)
        case builtins.dict, (_, of):
            return st.dictionaries(_TEXTS, _values_of(of), max_size=2)
        case _, (of, _):
            return st.none() | _values_of(of)
        case _:
            pass
    return {str: _TEXTS, bool: st.booleans(), int: st.integers(0, 2**40)}[kind]


def _another(value: Any) -> Any:
    """Return an equal of a value that is another object, as reading makes it."""
    return value if isinstance(value, bool) else int(str(value)) if isinstance(value, int) else copy.deepcopy(value)


@given(_values_of(ClusterSnapshot))
@settings(suppress_health_check=list(HealthCheck), deadline=None, max_examples=60)
def test_equal_snapshots_give_equal_texts_and_equal_observations(drawn: ClusterSnapshot) -> None:
    snapshot = msgspec.structs.replace(drawn, api_version=API_VERSION, kind=KIND)
    text = snapshot_text(snapshot)
    for again in (read_snapshot(text.encode(), source="saved.json"), copy.deepcopy(snapshot)):
        assert again == snapshot
        assert snapshot_text(again) == text
        assert observations(again) == observations(snapshot)


def test_default_is_left_out_whoever_made_it() -> None:
    found = SnapshotNode(
        name="cp1", settings=NodeSettings(), endpoint=NodeEndpoint(advertise_address="192.0.2.1", bind_port=int("6443"))
    )
    assert contents_of(found) == {"name": "cp1", "endpoint": {"advertiseAddress": "192.0.2.1"}}


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
