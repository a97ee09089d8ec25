"""The codec beside the protobuf runtime: equal bytes mean equal values, and what one refuses the other refuses."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet
from hypothesis import example, given
from hypothesis import strategies as st

from garboard.rpc.message import (
    boolean,
    enumeration,
    message,
    nested,
    raw,
    repeated,
    signed,
    string,
    string_map,
    unsigned,
)
from garboard.rpc.wire import BadWire


@dataclass(frozen=True, slots=True)
class Inner:
    name: str = ""
    count: int = 0


@dataclass(frozen=True, slots=True)
class Outer:
    text: str = ""
    data: bytes = b""
    yes: bool = False
    big: int = 0
    small: int = 0
    unsigned32: int = 0
    unsigned64: int = 0
    kind: int = 0
    inner: Inner | None = None
    many: tuple[Inner, ...] = ()
    words: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


INNER = message(Inner, name=string(1), count=signed(2))
OUTER = message(
    Outer,
    text=string(1),
    data=raw(2),
    yes=boolean(3),
    big=signed(4),
    small=signed(5, bits=32),
    unsigned32=unsigned(6, bits=32),
    unsigned64=unsigned(7),
    kind=enumeration(8),
    inner=nested(9, INNER),
    many=repeated(nested(10, INNER)),
    words=repeated(string(200)),
    labels=string_map(300),
)


def oracle_class() -> Any:
    """The same message for the protobuf runtime, written down a second time."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t", syntax="proto3")
    file.enum_type.add(name="Kind").value.add(name="ZERO", number=0)
    inner = file.message_type.add(name="Inner")
    inner.field.add(name="name", number=1, type=kinds.TYPE_STRING, label=1)
    inner.field.add(name="count", number=2, type=kinds.TYPE_INT64, label=1)
    outer = file.message_type.add(name="Outer")
    pair = outer.nested_type.add(name="LabelsEntry")
    pair.options.map_entry = True
    pair.field.add(name="key", number=1, type=kinds.TYPE_STRING, label=1)
    pair.field.add(name="value", number=2, type=kinds.TYPE_STRING, label=1)
    for name, number, kind in (
        ("text", 1, kinds.TYPE_STRING),
        ("data", 2, kinds.TYPE_BYTES),
        ("yes", 3, kinds.TYPE_BOOL),
        ("big", 4, kinds.TYPE_INT64),
        ("small", 5, kinds.TYPE_INT32),
        ("unsigned32", 6, kinds.TYPE_UINT32),
        ("unsigned64", 7, kinds.TYPE_UINT64),
    ):
        outer.field.add(name=name, number=number, type=kind, label=1)
    outer.field.add(name="kind", number=8, type=kinds.TYPE_ENUM, type_name=".t.Kind", label=1)
    outer.field.add(name="inner", number=9, type=kinds.TYPE_MESSAGE, type_name=".t.Inner", label=1)
    outer.field.add(name="many", number=10, type=kinds.TYPE_MESSAGE, type_name=".t.Inner", label=3)
    outer.field.add(name="words", number=200, type=kinds.TYPE_STRING, label=3)
    outer.field.add(name="labels", number=300, type=kinds.TYPE_MESSAGE, type_name=".t.Outer.LabelsEntry", label=3)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Outer"))


Oracle = oracle_class()

inners = st.builds(Inner, st.text(max_size=5), st.integers(-(2**63), 2**63 - 1))
outers = st.builds(
    Outer,
    st.text(max_size=10),
    st.binary(max_size=10),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**64 - 1),
    st.integers(-(2**31), 2**31 - 1),
    st.none() | inners,
    st.lists(inners, max_size=3).map(tuple),
    st.lists(st.text(max_size=5), max_size=3).map(tuple),
    st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=3),
)


def from_oracle(found: Any) -> Outer:
    scalars = ("text", "data", "yes", "big", "small", "unsigned32", "unsigned64", "kind")
    return Outer(
        **{name: getattr(found, name) for name in scalars},
        inner=Inner(found.inner.name, found.inner.count) if found.HasField("inner") else None,
        many=tuple(Inner(each.name, each.count) for each in found.many),
        words=tuple(found.words),
        labels=dict(found.labels),
    )


@given(outers)
def test_runtime_reads_what_we_write(value: Outer) -> None:
    found = Oracle()
    found.ParseFromString(OUTER.encode(value))
    assert from_oracle(found) == value


@given(outers)
def test_we_read_what_the_runtime_writes(value: Outer) -> None:
    found = Oracle()
    found.ParseFromString(OUTER.encode(value))
    assert OUTER.decode(found.SerializeToString()) == value


def agree(data: bytes) -> None:
    """Both refuse the bytes, or both read the same from them."""
    theirs: Outer | None = None
    odd_pairs = False
    try:
        found = Oracle()
        found.ParseFromString(data)
        theirs = from_oracle(found)
        # The C runtime keeps a pair with an unknown field inside as unknown; the specification and Go read the pair.
        odd_pairs = any(each.field_number == 300 for each in UnknownFieldSet(found))
    except DecodeError:
        pass
    try:
        ours: Outer | None = OUTER.decode(data)
    except BadWire:
        ours = None
    if ours is not None and theirs is not None and odd_pairs:
        ours, theirs = replace(ours, labels={}), replace(theirs, labels={})
    assert ours == theirs


@given(st.binary(max_size=40))
@example(b"\x00")
@example(b"\x08\x01")  # a number where text is due: skipped as unknown
@example(b"\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f")  # bits beyond 64
@example(b"\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")  # eleven bytes
@example(b"\x0b\x08\x01\x0c")  # a group
@example(b"\x0b\x08\x01\x14")  # a group that ends as another
@example(b"\x0c")  # the end of no group
@example(b"\x0a\x05ab")  # cut off
@example(b"\x0a\x01\xff")  # not UTF-8
@example(b"\x4a\x02\x10\x01\x4a\x03\x0a\x01a")  # one message in two parts
@example(b"\x4a\x01\x10\x4a\x01\x01")  # two parts that are only whole together
@example(b"\x0e\x00")  # wire type 6
@example(b"\xe2\x12\x00")  # an empty pair in a map
@example(b"\x80\x80\x80\x80\x80\x01\x00")  # a tag of six bytes
@example(b"\x80\x80\x80\x80\x00\x00")
@example(b"\x88\x80\x80\x80\x00\x00")  # a tag longer than it need be
def test_any_bytes_mean_the_same_to_both(data: bytes) -> None:
    agree(data)


@given(outers, st.integers(0, 200), st.integers(0, 255))
def test_damaged_messages_mean_the_same_to_both(value: Outer, place: int, byte: int) -> None:
    data = bytearray(OUTER.encode(value))
    if data:
        data[place % len(data)] = byte
    agree(bytes(data))


def test_deep_groups_are_refused_without_deep_recursion() -> None:
    with pytest.raises(BadWire):
        OUTER.decode(b"\x0b" * 100_000)


def test_table_must_name_every_attribute() -> None:
    with pytest.raises(TypeError, match="count"):
        message(Inner, name=string(1))
