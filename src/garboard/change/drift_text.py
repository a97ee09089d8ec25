"""The drift of a cluster as text for people, and as JSON for programs."""

from collections import Counter
from collections.abc import Iterator

from garboard.change.drifting import ClusterDrift, ComparedNode
from garboard.change.snapshot import API_VERSION
from garboard.documents import Json
from garboard.drift import Difference, DriftKind, differences_as_json, differences_as_text

KIND = "DriftReport"


def drift_as_json(drift: ClusterDrift, notes: tuple[str, ...]) -> Json:
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "drift": drift.has_drift,
        "nodes": [{"node": each.node, **_compared(each)} for each in drift.nodes],
        "objects": _compared(drift.objects),
        "notSeen": [*notes],
    }


def _compared(part: ComparedNode) -> dict[str, Json]:
    return {
        "compared": [each.where for each in part.subjects],
        "differences": differences_as_json(part.differences),
    }


def drift_as_text(drift: ClusterDrift, notes: tuple[str, ...], *, shows_explained: bool) -> str:
    return "".join(f"{line}\n" for line in _lines(drift, notes, shows_explained=shows_explained))


def _lines(drift: ClusterDrift, notes: tuple[str, ...], *, shows_explained: bool) -> Iterator[str]:
    for part in (*drift.nodes, drift.objects):
        text = differences_as_text(_shown(part, shows_explained=shows_explained), shows_explained=shows_explained)
        if text:
            yield f"Node {part.node}" if part.node else "Objects of the cluster"
            yield from (f"  {line}" for line in text.splitlines())
            yield ""
    counts = Counter(each.kind for part in (*drift.nodes, drift.objects) for each in part.differences)
    compared = sum(len(part.subjects) for part in (*drift.nodes, drift.objects))
    shown = ", ".join(f"{counts[kind]} {kind}" for kind in DriftKind if counts[kind])
    yield f"{compared} files and objects compared: {shown or 'no difference'}"
    if not shows_explained and (counts[DriftKind.COSMETIC] or counts[DriftKind.ENVIRONMENTAL]):
        yield "What is explained is not drift; --all shows it"
    if drift.has_drift:
        yield "Record hand edits: garboard change drift --adopt; plan to take them out: garboard change drift --correct"
    yield from (f"not looked at: {each}" for each in notes)


def _shown(part: ComparedNode, *, shows_explained: bool) -> tuple[Difference, ...]:
    if shows_explained:
        return part.differences
    return tuple(each for each in part.differences if each.is_drift)
