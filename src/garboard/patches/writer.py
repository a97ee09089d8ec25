"""How the patch engine writes a patch's values into a document: always copies, so that a patch can be applied again."""

from dataclasses import dataclass, field

from garboard.documents import DocumentPath, Json
from garboard.patches.json_values import ABSENT, Absent, Container, JsonOrAbsent, copy_of
from garboard.patches.strategic_fields import DIRECTIVE
from garboard.patches.trace import Member, Trace


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that kubeadm and kubectl let pass and strict mode refuses."""

    error_class: str
    message: str
    at: DocumentPath
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class DocumentWriter:
    """Writes values of one patch into a document.

    Each write is recorded in `trace`, unless nobody asks about origins and it is None.
    """

    trace: Trace | None = None
    remarks: list[Remark] = field(default_factory=list)

    def remark(self, error_class: str, message: str, at: DocumentPath, *, hint: str | None = None) -> None:
        self.remarks.append(Remark(error_class, message, at, hint))

    def copy(self, value: Json, at: DocumentPath) -> Json:
        """Return a copy of `value`, nulls and directives included."""
        copied = copy_of(value)
        if self.trace is not None:
            self.trace.record_tree(copied, at)
        return copied

    def copy_pruned(self, value: Json, at: DocumentPath, *, nulls: bool, directives: bool) -> JsonOrAbsent:
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
        copied: dict[str, Json] = {}
        for key, member in value.items():
            if nulls and member is None:
                continue
            kept = self.copy_pruned(member, (*at, key), nulls=nulls, directives=directives)
            if not isinstance(kept, Absent):
                copied[key] = kept
        self.record_container(copied, at)
        return copied

    def _pruned_list(self, value: list[Json], at: DocumentPath, nulls: bool, directives: bool) -> Json:
        copied: list[Json] = []
        for index, member in enumerate(value):
            kept = self.copy_pruned(member, (*at, index), nulls=nulls, directives=directives)
            if not isinstance(kept, Absent):
                copied.append(kept)
        self.record_container(copied, at)
        return copied

    def record_container(self, container: Container, at: DocumentPath) -> None:
        """Record where a container that the caller made comes from; its members are recorded already."""
        if self.trace is not None:
            self.trace.record_container(container, at)

    def set(self, container: dict[str, Json], key: str, value: Json, at: DocumentPath) -> None:
        """Set a member."""
        if self.trace is not None:
            self.trace.record_write(container, key, at, container.get(key, ABSENT), value)
        container[key] = value

    def remove(self, container: dict[str, Json], key: str, at: DocumentPath) -> None:
        """Remove a member that is there."""
        before = container.pop(key)
        self.record(container, key, at, before, ABSENT)

    def remove_absent(self, container: dict[str, Json], key: str, at: DocumentPath) -> None:
        """Record the removal of a member that is not there, with a remark."""
        self.record(container, key, at, ABSENT, ABSENT)
        self.remark("zero-match", f"null removes {key!r}, which is not there", at)

    def record(
        self, container: Container, member: Member, at: DocumentPath, before: JsonOrAbsent, after: JsonOrAbsent
    ) -> None:
        """Record a write that the caller makes itself."""
        if self.trace is not None:
            self.trace.record_write(container, member, at, before, after)
