"""Random documents and scalars: mostly right, with the slips that people and patches make."""

import copy
import random

from garboard.documents import Json
from garboard.schema import FieldType, StructType

_DEPTH = 6
_STRINGS = ["", "a", "x-1", "10.0.0.1", "with space", "ünïcode", "true", "1"]
_WHOLE: list[Json] = [
    0,
    1,
    -1,
    5,
    80,
    255,
    256,
    65536,
    2**31 - 1,
    2**31,
    -(2**31),
    2**63 - 1,
    2**63,
    80.0,
    1.5,
    1e20,
    1e22,
    True,
    "1",
]
_ODD_QUANTITIES: list[Json] = ["", "1 Gi", " 1Gi ", "abc", "1gi", "100000000000000000001", 2, 0.5, 1e-7, 1e21, -3, True]
_QUANTITIES: list[Json] = [
    *["0", "1", "500m", "0.5", "1Gi", "1024Mi", "1.5Gi", "1e3", "1E3", "100e-3", "12e6", "1000k", "+5", "005"],
    *["1.500", "-2", "0.0000000001", "1.1Ki", "8Ei", "1000E"],
    *_ODD_QUANTITIES,
]
_SUFFIXES = [
    *["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "K", "mi"],
    *["e3", "e-3", "E6", "e+2", "e-9", "e-10", "e-30", "e99", "e"],
]
_ODD_TIMES: list[Json] = ["0001-01-01T00:00:00Z", "now", "", 5]
_TIMES: list[Json] = ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05+02:00", "2026-01-02T03:04:05.678Z", *_ODD_TIMES]
_MICRO_TIMES: list[Json] = [
    "2026-01-02T03:04:05.678901Z",
    "2026-01-02T03:04:05.678901-07:30",
    "2026-01-02T03:04:05Z",
    "",
]
_DURATIONS: list[Json] = ["0s", "90s", "1h", "1h30m0.5s", "100ms", "15us", "1.5h", "-3m", "5", "", "1d", 5]
_BYTES: list[Json] = ["", "QQ==", "QUI=", "QUJD", "QR==", "Q", "QUJD=", "a b", "QU\nJD", [65, 66], 5]
_ANY: list[Json] = ["x", 1, None, {"a": None, "b": [1, 2.5]}, [None, {}], True]
_TEXTS: dict[str, list[Json]] = {
    "string": [*_STRINGS, *_STRINGS, *_STRINGS, 1, True],
    "bool": [True, False, True, False, "true", 1],
    "quantity": [*_QUANTITIES],
    "time": [*_TIMES],
    "microTime": [*_MICRO_TIMES],
    "duration": [*_DURATIONS],
    "durationOrNanoseconds": [*_DURATIONS, 10**9, 1.5],
    "bytes": [*_BYTES],
    "intOrString": ["80", "http", "50%", "", *_WHOLE],
    "float32": [0, 1, 0.1, 1.5, 1e10, 16777217, 3.4e39, "1", True],
    "float64": [0, 1, 0.1, 1.5, 1e10, 2**53 + 1, 1e22, "1"],
}


class Documents:
    """A source of documents; equal seeds give equal documents.

    `slips` is how often a value may be one that the field refuses: without slips most documents decode, with many of
    them most do not.
    """

    def __init__(self, seed: int, slips: float) -> None:
        self._random = random.Random(seed)
        self._slips = slips

    def document(self, api_version: str, kind: str, type_: StructType) -> dict[str, Json]:
        return {**self._struct(type_, 0), "apiVersion": api_version, "kind": kind}

    def _struct(self, type_: StructType, depth: int) -> dict[str, Json]:
        fields = list(type_.fields.items())
        chosen = self._random.sample(fields, min(len(fields), self._random.randint(0, 7)))
        members = {name: self._value(field, depth) for name, field in chosen if name not in ("apiVersion", "kind")}
        if self._random.random() < 0.1:
            members[self._random.choice(["unknown", "NAME", "$patch"])] = self._any()
        return members

    def _value(self, field: FieldType, depth: int) -> Json:
        roll = self._random.random()
        if roll < 0.05:
            return None
        if roll < 0.05 + self._slips / 4:
            return self._any()
        if field.kind == "scalar":
            return self._scalar(field.scalar)
        if field.kind == "any" or depth > _DEPTH:
            return self._any() if field.kind == "any" else None
        if field.kind == "struct" and field.type is not None:
            return self._struct(field.type, depth + 1)
        return self._container(field, depth)

    def _container(self, field: FieldType, depth: int) -> Json:
        if field.of is None:
            raise AssertionError("a container without an element")
        count = self._random.randint(0, 2)
        if field.kind == "list":
            return [self._value(field.of, depth + 1) for _ in range(count)]
        return {self._random.choice(_STRINGS): self._value(field.of, depth + 1) for _ in range(count)}

    def _any(self) -> Json:
        return copy.deepcopy(self._random.choice(_ANY))  # no part of a document stands in it twice

    def _scalar(self, scalar: str) -> Json:
        choices = _TEXTS.get(scalar, _WHOLE)
        good = choices[: max(1, len(choices) // 3)]
        return self._random.choice(choices if self._random.random() < self._slips else good)


class Scalars:
    """A source of scalars near the edges of what Kubernetes reads; equal seeds give equal scalars."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def quantity(self) -> Json:
        pick, roll = self._random, self._random.random()
        if roll < 0.1:
            return self._letters("0123456789+-.eEinumkKMGTP ", 6)
        if roll < 0.2:
            return pick.choice([0.5, 1e-7, 1.5e-9, 1e21, 3.0, -2.5, pick.random(), pick.random() * 1e12, 2**64, 7])
        whole = self._digits([0, 1, 1, 2, 3, 4, 6, 10, 17, 18, 19, 20, 25])
        if pick.random() < 0.4:
            whole = (
                whole[:-3] + "000" if pick.random() < 0.5 else str(pick.choice([1, 3, 5]) * 2 ** pick.randint(0, 70))
            )
        fraction = "" if pick.random() < 0.5 else "." + self._digits([0, 1, 2, 3, 3, 5, 9, 10, 12])
        suffix = pick.choice(_SUFFIXES)
        return pick.choice(["", "", "", "+", "-"]) + whole + fraction + suffix

    def duration(self) -> Json:
        pick = self._random
        if pick.random() < 0.2:
            return self._letters("0123456789+-.hmsunµd ", 7)
        parts = [
            self._digits([0, 1, 1, 1, 1, 2, 2, 3, 3, 6, 12, 19])
            + pick.choice(["", "", "", "", ".", ".5", ".123456789123456789123456"])
            + pick.choice(["h", "m", "s", "ms", "us", "µs", "ns", "μs"])
            for _ in range(pick.randint(1, 3))
        ]
        return pick.choice(["", "", "-", "+"]) + "".join(parts)

    def time(self) -> Json:
        pick = self._random
        month, day = pick.choice([1, 1, 2, 12, 12, 13]), pick.choice([1, 1, 1, 29, 31])
        date = f"{pick.choice([0, 1, 1970, 2024, 9999]):04}-{month:02}-{day:02}"
        hour = pick.choice(["00", "5", "05", "23", "23", "24"])
        clock = f"{pick.choice('TTTTTTTTTTt ')}{hour}:{pick.choice([0, 1, 30, 59, 60]):02}:{pick.choice([0, 7, 59]):02}"
        fraction = pick.choice(["", "", ".5", ".123456", ".123456", ".1234567891", ",123456", ".000000", "."])
        zones = ["Z", "Z", "Z", "Z", "+00:00", "-07:30", "+24:00", "+25:00", "+01:60", "z", "", "+0100"]
        return date + clock + fraction + pick.choice(zones)

    def _letters(self, letters: str, most: int) -> str:
        return "".join(self._random.choices(letters, k=self._random.randint(0, most)))

    def _digits(self, lengths: list[int]) -> str:
        return "".join(self._random.choices("00123456789", k=self._random.choice(lengths)))
