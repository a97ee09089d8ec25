"""A field's history for people and for programs."""

import json

from garboard.documents import Json
from garboard.patches.origin import Cause, Event, History, Origin
from garboard.patches.trace import Absent, JsonOrAbsent

MAX_SHOWN = 100


def explain_text(name: str, history: History) -> str:
    """Return the story of one field, latest first: its value, who set it, and what that overrode."""
    lines = [f"{name}: {_shown(history.value)}"]
    if not history.events:
        lines.append("  no patch and no line of the base document sets it")
    writers = history.writers
    lines += [f"  {_verb(event, writers)} {_who(event.origin)}{_over(event)}" for event in reversed(history.events)]
    wrote = [origin.patch for origin in writers]
    lines += [f"  {_dependence(cause)}" for cause in history.causes if not any(cause.patch is each for each in wrote)]
    return "\n".join(lines) + "\n"


def _verb(event: Event, writers: tuple[Origin, ...]) -> str:
    if event.is_removal:
        return "removed by"
    if event.origin not in writers:
        return f"was {_shown(event.after)}, set by"
    return "set by" if event.origin == writers[0] else "set to the same by"


def _dependence(cause: Cause) -> str:
    """Return what a patch has to do with a field that others wrote."""
    through = f", which writes {cause.through}" if cause.through else ""
    would = "not be there" if isinstance(cause.without, Absent) else f"be {_shown(cause.without)}"
    failing = ", ".join(patch.label for patch in cause.needed_by)
    because = f", as {failing} would fail" if failing else ""
    return f"depends on {_who(cause.origin)}{through}: without it this would {would}{because}"


def _who(origin: Origin) -> str:
    if origin.position is None:
        return origin.detail
    return f"{origin.where} ({origin.detail or origin.kind})"


def _over(event: Event) -> str:
    return "" if isinstance(event.before, Absent) else f", over {_shown(event.before)}"


def _shown(value: JsonOrAbsent) -> str:
    if isinstance(value, Absent):
        return "not there"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def history_as_json(name: str, history: History) -> Json:
    """Return the story of one field as data, first event first."""
    told: dict[str, Json] = {
        "field": name,
        "isPresent": not isinstance(history.value, Absent),
        "origin": _origin_as_json(history.origin) if history.origin else None,
        "causedBy": [_cause_as_json(cause) for cause in history.causes],
        "events": [_event_as_json(event) for event in history.events],
    }
    if not isinstance(history.value, Absent):
        told["value"] = history.value
    return told


def _origin_as_json(origin: Origin) -> dict[str, Json]:
    told: dict[str, Json] = {"kind": str(origin.kind)}
    if origin.position is not None:
        told |= {"file": origin.file, "line": origin.position.line, "column": origin.position.column}
    if origin.patch is not None:
        told |= {"type": str(origin.patch.type), "document": origin.patch.source.document}
    elif origin.detail:
        told["detail"] = origin.detail
    return told


def _cause_as_json(cause: Cause) -> Json:
    told: dict[str, Json] = {"patch": cause.patch.label, **_origin_as_json(cause.origin)}
    if cause.through:
        told["through"] = cause.through
    if not isinstance(cause.without, Absent):
        told["without"] = cause.without
    if cause.needed_by:
        told["neededBy"] = [patch.label for patch in cause.needed_by]
    return told


def _event_as_json(event: Event) -> Json:
    told: dict[str, Json] = {"by": _origin_as_json(event.origin), "action": "remove" if event.is_removal else "set"}
    if not isinstance(event.before, Absent):
        told["before"] = event.before
    if not isinstance(event.after, Absent):
        told["after"] = event.after
    return told
