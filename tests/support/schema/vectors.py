"""Vectors recorded from the Go types of Kubernetes v1.36.4 (`python -m tools.schema.reference`)."""

import json
from pathlib import Path
from typing import Any

from garboard.documents import Json

_FOLDER = Path(__file__).parents[2] / "vectors/schema"


def vectors(name: str) -> list[Any]:
    found: list[Any] = json.loads((_FOLDER / f"{name}.json").read_text())["vectors"]
    return found


def scalar_vectors(scalar: str) -> list[tuple[Json, list[Json] | None]]:
    """Return pairs of a value and a list of what Go writes for it, or None where Go refuses it."""
    return [(value, written) for kind, value, written in vectors("scalars") if kind == scalar]
