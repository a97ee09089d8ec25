"""Protobuf messages as frozen dataclasses: a table of fields says which number carries which attribute.

    VERSION = message(Version, name=string(2), features=nested(4, FEATURES), labels=string_map(5))
    VERSION.encode(Version(name="x")), VERSION.decode(data)

Fields that are not in the table are skipped; an attribute that did not arrive keeps the default of its dataclass, which
must be proto3's ("", 0, False, (), None for a message).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from garboard.rpc import wire
from garboard.rpc.wire import BadWire, Buffer, WireField

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Field:
    """How one attribute travels. `encode` gives the bytes of a value without its tag."""

    number: int
    wire_type: int
    encode: Callable[[Any], bytes]
    decode: Callable[[Any], Any]
    is_repeated: bool = False
    is_map: bool = False
    schema: "Message[Any] | None" = None


def string(number: int) -> Field:
    return Field(number, wire.LENGTH, str.encode, _decode_text)


def raw(number: int) -> Field:
    return Field(number, wire.LENGTH, bytes, bytes)


def boolean(number: int) -> Field:
    return Field(number, wire.VARINT, wire.encode_varint, bool)


def unsigned(number: int, *, bits: int = 64) -> Field:
    mask = (1 << bits) - 1
    return Field(number, wire.VARINT, wire.encode_varint, lambda value: value & mask)


def signed(number: int, *, bits: int = 64) -> Field:
    """int32 and int64 (not the zigzag kind)."""
    half = 1 << (bits - 1)
    return Field(number, wire.VARINT, _encode_signed, lambda value: ((value + half) & (2 * half - 1)) - half)


def enumeration(number: int) -> Field:
    """An enum as its number: a value that a newer peer invented must not break us."""
    return signed(number, bits=32)


def nested(number: int, schema: "Message[Any]") -> Field:
    return Field(number, wire.LENGTH, schema.encode, schema.decode, schema=schema)


def string_map(number: int) -> Field:
    """map<string, string>, which travels as repeated pairs."""
    return Field(number, wire.LENGTH, _encode_pair, _decode_pair, is_map=True)


def repeated(field: Field) -> Field:
    """Strings, bytes and messages, one after another."""
    if field.wire_type != wire.LENGTH or field.is_map:
        raise TypeError("only length-delimited fields are repeated here; packed numbers have no user yet")
    return replace(field, is_repeated=True)


class Message(Generic[T]):
    """The table of one message; make it with `message`."""

    def __init__(self, cls: type[T], table: Mapping[str, Field]) -> None:
        attributes = {each.name for each in fields(cls)}  # type: ignore[arg-type]  # every T is a dataclass
        if attributes != set(table):
            raise TypeError(f"{cls.__name__} and its table differ in {sorted(attributes ^ set(table))}")
        self.cls = cls
        self.table = MappingProxyType(dict(table))
        self._by_number = {field.number: (name, field) for name, field in table.items()}

    def encode(self, value: T) -> bytes:
        parts: list[bytes] = []
        for name, field in self.table.items():
            for item in _occurrences(field, getattr(value, name)):
                data = field.encode(item)
                parts.append(wire.encode_tag(field.number, field.wire_type))
                if field.wire_type == wire.LENGTH:
                    parts.append(wire.encode_varint(len(data)))
                parts.append(data)
        return b"".join(parts)

    def decode(self, data: Buffer) -> T:
        """The message in these bytes. Raises `BadWire`, never anything else."""
        found: dict[str, Any] = {}
        raws: dict[str, bytes] = {}
        for item in wire.read_fields(data):
            name, field = self._by_number.get(item.number, ("", None))
            if field is None or field.wire_type != item.wire_type:
                continue
            value = field.decode(item.value)
            if field.schema is not None and not field.is_repeated:
                # The same message twice means both merged, which is what their bytes in a row mean.
                raws[name] = raws.get(name, b"") + _bytes_of(item)
                value = field.decode(raws[name]) if name in found else value
            _store(found, name, field, value)
        return self.cls(**{name: _freeze(value) for name, value in found.items()})


def message(cls: type[T], /, **table: Field) -> Message[T]:
    """The schema of a dataclass; every attribute must be in the table."""
    return Message(cls, table)


def _occurrences(field: Field, value: Any) -> Any:
    if field.is_repeated:
        return value
    if field.is_map:
        return value.items()
    if field.schema is not None:
        return () if value is None else (value,)
    return (value,) if value else ()


def _store(found: dict[str, Any], name: str, field: Field, value: Any) -> None:
    if field.is_repeated:
        found.setdefault(name, []).append(value)
    elif field.is_map:
        found.setdefault(name, {}).update([value])
    else:
        found[name] = value


def _freeze(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return MappingProxyType(value) if isinstance(value, dict) else value


def _bytes_of(item: WireField) -> bytes:
    assert not isinstance(item.value, int)
    return bytes(item.value)


def _encode_signed(value: int) -> bytes:
    return wire.encode_varint(wire.from_signed(value))


def _decode_text(value: memoryview) -> str:
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError as error:
        raise BadWire("a protobuf string is not UTF-8") from error


def _encode_pair(pair: tuple[str, str]) -> bytes:
    return b"".join(wire.encode_bytes(number, text.encode()) for number, text in enumerate(pair, start=1) if text)


def _decode_pair(data: memoryview) -> tuple[str, str]:
    pair = ["", ""]
    for item in wire.read_fields(data):
        if item.number in (1, 2) and item.wire_type == wire.LENGTH:
            assert not isinstance(item.value, int)
            pair[item.number - 1] = _decode_text(item.value)
    return pair[0], pair[1]
