"""Which objects the fake API server lists and watches for a selection."""

from typing import Any

from garboard.kube.aio import ObjectSelection
from garboard.patches import LabelSelector


def selects(selection: ObjectSelection, content: dict[str, Any]) -> bool:
    metadata = content["metadata"]
    if selection.namespace and metadata.get("namespace") != selection.namespace:
        return False
    if selection.labels and not LabelSelector.parse(selection.labels).matches(metadata.get("labels") or {}):
        return False
    return all(_has_field(content, term) for term in selection.fields.split(",") if term)


def _has_field(content: dict[str, Any], term: str) -> bool:
    name, _, value = term.replace("==", "=").partition("=")
    is_wanted = not name.endswith("!")
    found: Any = content
    for part in name.rstrip("!").split("."):
        found = found.get(part, "") if isinstance(found, dict) else ""
    return bool(found == value) == is_wanted
