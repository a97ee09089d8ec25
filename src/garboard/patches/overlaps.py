"""Two patches that write the same field: which of them wins, and where the other one stands."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from garboard.documents import DocumentPath, Json, Position
from garboard.patches.apply import Applied
from garboard.patches.fieldpath import IDENTIFYING_KEYS, show_path
from garboard.patches.findings import Finding, Related, Severity
from garboard.patches.json_values import ABSENT, Absent, same
from garboard.patches.patch import Patch, PatchType
from garboard.patches.trace import BASE, Creation, Item, Member, Trace, Write

# What names an object may stand in every patch for it.
HEADERS = (("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"))


def find_overlaps(applied: Applied) -> list[Finding]:
    """Return a warning for every field that two patches of a traced run wrote."""
    assert applied.trace is not None, "overlaps need a traced run"
    findings = []
    for loser, winner in _overlaps(applied.trace):
        if winner.at not in HEADERS and not _is_only_a_key(winner):
            findings.append(_finding(applied.patches, loser, winner))
    return findings


def _is_only_a_key(write: Write) -> bool:
    """Tell whether a write only repeats the key of the list element that the patch is about."""
    is_key = len(write.at) > 1 and isinstance(write.at[-2], int) and write.at[-1] in IDENTIFYING_KEYS
    return is_key and same(write.before, write.after)


def _overlaps(trace: Trace) -> Iterator[tuple[Write, Write]]:
    for creation, member, writes in trace.written():
        before = _at_creation(creation, member, writes)
        for write in writes:
            if write.before is ABSENT and write.after is ABSENT:
                continue
            if before is not None and before.patch != write.patch:
                yield before, write
            elif isinstance(write.before, dict | list):
                yield from (
                    (inner, write) for inner in _writes_inside(write.before, trace) if inner.patch < write.patch
                )
            before = write


def _at_creation(creation: Creation | None, member: Member, writes: Sequence[Write]) -> Write | None:
    """Return the writing of a member together with its container, if a patch created both."""
    if creation is None or creation.patch == BASE or isinstance(writes[0].before, Absent):
        return None
    at = creation.at if isinstance(member, Item) else (*creation.at, member)
    return Write(creation.patch, at, ABSENT, writes[0].before)


def _writes_inside(value: Json, trace: Trace) -> Iterator[Write]:
    """Yield the last write by a patch of every member that stands below `value`."""
    if isinstance(value, dict | list):
        for member in trace.members(value):
            last = trace.writes(value, member)[-1]
            if not last.is_removal:
                yield last
        for child in value.values() if isinstance(value, dict) else value:
            yield from _writes_inside(child, trace)


def _finding(patches: Sequence[Patch], loser: Write, winner: Write) -> Finding:
    is_same = same(loser.after, winner.after)
    return overlap_finding(
        PatchPlace(patches[loser.patch], loser.at),
        PatchPlace(patches[winner.patch], winner.at),
        is_same,
        winner.is_removal,
    )


@dataclass(frozen=True, slots=True)
class PatchPlace:
    """A place in a patch that writes a field."""

    patch: Patch
    at: DocumentPath

    @property
    def position(self) -> Position:
        return self.patch.source.position(self.at)

    @property
    def field(self) -> str:
        """The field as a reader of the patch would name it."""
        if self.patch.type is PatchType.ARGS:
            return f"--{str(self.at[0]).lstrip('-')}" if self.at else "the command"
        if self.patch.type is PatchType.JSON and self.at and isinstance(self.patch.value, list):
            operation = self.patch.value[int(self.at[0])]
            return str(operation.get("path")) if isinstance(operation, dict) else "."
        return show_path(self.at, self.patch.value)


def overlap_finding(loser: PatchPlace, winner: PatchPlace, is_same: bool, is_removal: bool) -> Finding:
    """Return the warning about one field that two patches write."""
    verb = "removes" if is_removal else "sets"
    outcome = "both say the same" if is_same else f"this one is applied later and wins: it {verb} the field"
    where = f"{loser.patch.source.name}:{loser.position.line}:{loser.position.column}"
    is_override = not is_same and _folder(loser) != _folder(winner)
    return Finding(
        winner.patch.source.name,
        winner.position,
        "overlapping-patches",
        f"{winner.field} is written by {where} as well; {outcome}",
        "fine if the later folder is meant to win; if not, say it in one place"
        if is_override
        else "say it in one place",
        Severity.WARNING,
        (Related(loser.patch.source.name, loser.position, "written here first"),),
    )


def _folder(place: PatchPlace) -> str:
    return place.patch.source.name.rpartition("/")[0]
