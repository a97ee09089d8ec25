"""The conversion vectors: text and what the Go library makes of it."""

import json
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parents[2] / "vectors" / "patches" / "yaml.json"


def vectors(kind: str) -> list[dict[str, Any]]:
    """Return the vectors of one type, `yaml-read` or `yaml-write`."""
    found = json.loads(VECTORS.read_text())["vectors"]
    return [each for each in found if each["type"] == kind]
