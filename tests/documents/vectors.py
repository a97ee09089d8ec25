"""The conversion vectors: text and what the Go library makes of it."""

import json
from pathlib import Path
from typing import Any

from garboard.documents import Json

VECTORS = Path(__file__).parent.parent / "vectors" / "patches" / "yaml.json"


def vectors(kind: str) -> list[dict[str, Any]]:
    """Return the vectors of one type, `yaml-read` or `yaml-write`."""
    found = json.loads(VECTORS.read_text())["vectors"]
    return [each for each in found if each["type"] == kind]


def same(one: Json, other: Json) -> bool:
    """Compare as the vectors mean it: `1` is `1.0`, booleans are no numbers, integers of 64 bits are exact."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other or (max(abs(one), abs(other)) >= 2**63 and float(one) == float(other))
    return one == other
