"""Taking a value over from a patch into a document: always a copy, so that a patch can be applied again."""

from dataclasses import dataclass, field

from garboard.documents import DocumentPath, Json
from garboard.patches.directives import DIRECTIVE
from garboard.patches.trace import ABSENT, Absent, Container, JsonOrAbsent, Member, Trace


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that the reference lets pass and a careful reader would not: strict mode refuses it."""

    error_class: str
    message: str
    at: DocumentPath
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Taker:
    """Copies patch values into documents and notes each one; `trace` is None when nobody asks about origins."""

    trace: Trace | None = None
    remarks: list[Remark] = field(default_factory=list)

    def remark(self, error_class: str, message: str, at: DocumentPath, *, hint: str | None = None) -> None:
        self.remarks.append(Remark(error_class, message, at, hint))

    def verbatim(self, value: Json, at: DocumentPath) -> Json:
        """Return a copy of `value`, nulls and directives included."""
        taken = copy_of(value)
        if self.trace is not None:
            self.trace.adopt(taken, at)
        return taken

    def pruned(self, value: Json, at: DocumentPath, *, nulls: bool, directives: bool) -> JsonOrAbsent:
        """Return a copy without null members and/or without maps that carry `$patch`; ABSENT if nothing remains."""
        if isinstance(value, dict):
            # Nulls go first: a directive that is null is no directive any more.
            if directives and DIRECTIVE in value and not (nulls and value[DIRECTIVE] is None):
                return ABSENT
            return self._pruned_map(value, at, nulls, directives)
        if isinstance(value, list):
            return self._pruned_list(value, at, nulls, directives)
        return value

    def _pruned_map(self, value: dict[str, Json], at: DocumentPath, nulls: bool, directives: bool) -> Json:
        taken: dict[str, Json] = {}
        for key, member in value.items():
            if nulls and member is None:
                continue
            kept = self.pruned(member, (*at, key), nulls=nulls, directives=directives)
            if not isinstance(kept, Absent):
                taken[key] = kept
        self.brought(taken, at)
        return taken

    def _pruned_list(self, value: list[Json], at: DocumentPath, nulls: bool, directives: bool) -> Json:
        taken: list[Json] = []
        for index, member in enumerate(value):
            kept = self.pruned(member, (*at, index), nulls=nulls, directives=directives)
            if not isinstance(kept, Absent):
                taken.append(kept)
        self.brought(taken, at)
        return taken

    def brought(self, container: Container, at: DocumentPath) -> None:
        """Note where a container that the caller made comes from; what is in it is known already."""
        if self.trace is not None:
            self.trace.adopt_one(container, at)

    def put(self, container: dict[str, Json], key: str, value: Json, at: DocumentPath) -> None:
        """Set a member and note it."""
        if self.trace is not None:
            self.trace.wrote(container, key, at, container.get(key, ABSENT), value)
        container[key] = value

    def drop(self, container: dict[str, Json], key: str, at: DocumentPath) -> None:
        """Remove a member that is there, and note it."""
        before = container.pop(key)
        self.note(container, key, at, before, ABSENT)

    def missed(self, container: dict[str, Json], key: str, at: DocumentPath) -> None:
        """Note and remark on the removal of a member that is not there."""
        self.note(container, key, at, ABSENT, ABSENT)
        self.remark("zero-match", f"null removes {key!r}, which is not there", at)

    def note(
        self, container: Container, member: Member, at: DocumentPath, before: JsonOrAbsent, after: JsonOrAbsent
    ) -> None:
        """Note a write that the caller makes itself."""
        if self.trace is not None:
            self.trace.wrote(container, member, at, before, after)


def as_json(value: JsonOrAbsent) -> Json:
    """Return a value that is known to be there."""
    assert not isinstance(value, Absent)
    return value


def copy_of(value: Json) -> Json:
    """Return a deep copy; several times quicker than copy.deepcopy because JSON has no cycles and few types."""
    if isinstance(value, dict):
        return {key: copy_of(member) if isinstance(member, dict | list) else member for key, member in value.items()}
    if isinstance(value, list):
        return [copy_of(member) if isinstance(member, dict | list) else member for member in value]
    return value
