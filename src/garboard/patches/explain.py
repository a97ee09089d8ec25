"""A field's history as text for people, and as JSON."""

import json
from collections.abc import Iterator, Sequence

from garboard.documents import Json
from garboard.patches.history import Cause, Event, History, Origin, Part
from garboard.patches.json_values import Absent, JsonOrAbsent, same

MAX_SHOWN = 100
MAX_PARTS = 5
CUT_OFF = "…"


def explain_text(name: str, history: History) -> str:
    """Return the history of one field, latest event first: its value, what set it, and what that overrode."""
    lines = [f"{name}: {_shown(history.value)}"]
    if not history.events:
        lines.append("  no patch and no line of the base document sets it")
    writers = history.writers
    lines += [
        f"  {_verb(event, writers)} {_who(event.origin)}{_spelt(event, history)}{_over(event)}"
        for event in reversed(history.events)
    ]
    wrote = [origin.patch for origin in writers]
    for cause in history.causes:
        is_writer = any(cause.patch is each for each in wrote)
        lines += [] if is_writer else [f"  {_dependence(cause)}"]
        lines += [f"  {text}" for text in _parts(cause.parts if is_writer else cause.parts[1:])]
    return "\n".join(lines) + "\n"


def _verb(event: Event, writers: tuple[Origin, ...]) -> str:
    if event.is_removal:
        return "removed by"
    if event.origin not in writers:
        return f"was {_shown(event.after)}, set by"
    return "set by" if event.origin == writers[0] else "set to the same by"


def _dependence(cause: Cause) -> str:
    """Return how a field that other patches wrote depends on a patch."""
    through = f", which writes {cause.through}" if cause.through else ""
    shown = _shown(cause.without)
    would = "not be there" if isinstance(cause.without, Absent) else f"be {shown}"
    if shown.endswith(CUT_OFF):  # most likely it would look the same up to here
        would = "be another"
    failing = ", ".join(patch.label for patch in cause.needed_by)
    because = f", as {failing} would fail" if failing else ""
    return f"depends on {_who(cause.origin)}{through}: without it this would {would}{because}"


def _parts(parts: Sequence[Part]) -> Iterator[str]:
    """Yield where a patch wrote something inside the field."""
    yield from (f"with {_who(part.origin)}, which writes {part.name}" for part in parts[:MAX_PARTS])
    if len(parts) > MAX_PARTS:
        yield f"with {len(parts) - MAX_PARTS} more lines inside it"


def _spelt(event: Event, history: History) -> str:
    """Return how the present value was written, if kubeadm's decoding has given it another spelling."""
    is_present = same(event.after, history.written) and not event.is_removal
    return f" as {_shown(event.after)}" if is_present and not same(event.after, history.value) else ""


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
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}{CUT_OFF}"


def history_as_json(name: str, history: History) -> Json:
    """Return the history of one field as JSON, first event first."""
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
    if cause.parts:
        told["parts"] = [{"field": part.name, **_origin_as_json(part.origin)} for part in cause.parts]
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
