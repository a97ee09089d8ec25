"""Comparing a component with what is declared: every field that is not the same everywhere, once, with what it is."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from garboard.documents import equal, marshal_yaml
from garboard.drift.difference import NOT_LOOKED_AT, Difference, DriftKind, Seen
from garboard.drift.leaves import KUBELET_FLAGS, Leaf, LeafPath, leaves_of, same_meaning
from garboard.drift.subject import DeclaredDocument, DriftSubject, FoundDocument
from garboard.drift.surroundings import (
    REGISTERED,
    RELEASE,
    STARTUP_THRESHOLD,
    TIMEOUT,
    is_other_release,
    surrounding_of,
)
from garboard.patches import Origin, OriginKind
from garboard.values import dataclass

_KUBELET = "KubeletConfiguration "
_Leaves = Mapping[LeafPath, Leaf]


@dataclass(frozen=True, slots=True)
class _Sides:
    """The leaves of a component in each place; None is a place that was not looked at."""

    rendered: _Leaves | None
    patched: tuple[_Leaves, ...]
    on_disk: _Leaves | None
    running: _Leaves | None
    written: _Leaves | None

    @property
    def declared(self) -> _Leaves | None:
        return self.patched[-1] if self.patched else self.rendered

    def paths(self) -> list[LeafPath]:
        known = (self.rendered, *self.patched, self.on_disk, self.running)
        return list(dict.fromkeys(path for each in known if each is not None for path in each))


def compare_all(subjects: Iterable[DriftSubject]) -> tuple[Difference, ...]:
    """Return every difference of several components of one node."""
    known = tuple(subjects)
    found = [each for subject in known for each in compare(subject)]
    return tuple(_with_one_timeout(found, known))


def compare(subject: DriftSubject) -> tuple[Difference, ...]:
    """Return every difference of one component; none if it is everywhere as it is declared."""
    if subject.is_missing:
        return (_missing(subject),)
    sides = _sides(subject)
    found = [each for path in sides.paths() if (each := _difference(subject, sides, path)) is not None]
    if not any(each.kind is not DriftKind.STALE for each in found) and _is_respelt(subject):
        found.append(_respelling(subject))
    return tuple(found)


def _sides(subject: DriftSubject) -> _Sides:
    def leaves(side: DeclaredDocument | FoundDocument | None) -> _Leaves | None:
        return None if side is None else leaves_of(side.document, subject.shape)

    return _Sides(
        rendered=leaves(subject.rendered),
        patched=tuple(leaves_of(each.document, subject.shape) for each in subject.patched),
        on_disk=leaves(subject.on_disk),
        running=leaves(subject.running),
        written=None if subject.written is None else leaves_of(subject.written, subject.shape),
    )


def _difference(subject: DriftSubject, sides: _Sides, path: LeafPath) -> Difference | None:
    judged = _judged(subject, sides, path)
    if judged is None:
        return None
    kind, reason = judged
    return Difference(
        component=subject.component,
        where=subject.where,
        path=path,
        kind=kind,
        rendered=_declared_value(subject.rendered, sides.rendered, path),
        declared=_declared_value(subject.declared, sides.declared, path),
        on_disk=_found_value(subject.on_disk, sides.on_disk, path),
        running=_found_value(subject.running, sides.running, path),
        reason=reason,
    )


def _judged(subject: DriftSubject, sides: _Sides, path: LeafPath) -> tuple[DriftKind, str] | None:
    """Return what a field is; nothing if it is the same everywhere."""
    on_disk, running = sides.on_disk, sides.running
    found = running if on_disk is None else on_disk
    judged = None
    if found is not None and sides.declared is not None:
        judged = _judged_as_declared(subject, sides, path, found.get(path))
    elif on_disk is not None and sides.written is not None:
        judged = _judged_as_written(on_disk.get(path), sides.written.get(path))
    if on_disk is None:
        # The API server writes down every default.
        return None if judged and judged[0] is DriftKind.COSMETIC else judged
    if judged and judged[0] not in (DriftKind.PATCH, DriftKind.COSMETIC):
        return judged
    if running is not None and not same_meaning(running.get(path), on_disk.get(path)):
        return DriftKind.STALE, "the component has not been started since"
    return judged


def _judged_as_written(leaf: Leaf | None, written: Leaf | None) -> tuple[DriftKind, str] | None:
    """Judge a file of which it is only known what was written there last."""
    return None if same_meaning(leaf, written) else (DriftKind.HAND_EDIT, "it is not as it was written last")


def _judged_as_declared(
    subject: DriftSubject, sides: _Sides, path: LeafPath, leaf: Leaf | None
) -> tuple[DriftKind, str] | None:
    declared, rendered = sides.declared or {}, sides.rendered or {}
    if same_meaning(leaf, declared.get(path)):
        if sides.rendered is not None and not same_meaning(leaf, rendered.get(path)):
            return DriftKind.PATCH, f"{subject.declared.label if subject.declared else ''} has it so"
        if not _is_spelt_alike(leaf, declared.get(path)):
            return DriftKind.COSMETIC, "it means the same"
        return None
    for document, leaves in zip(subject.patched, sides.patched[:-1], strict=False):
        if same_meaning(leaf, leaves.get(path)) and not same_meaning(leaf, rendered.get(path)):
            return DriftKind.PATCH, f"{document.label} has it so"
    if sides.patched and same_meaning(leaf, rendered.get(path)):
        return DriftKind.PENDING, "a patch that is not on disk yet"
    surrounding = _surrounding(subject.component, path, leaf, declared.get(path))
    if surrounding and not _is_configured(subject, sides, path):
        return DriftKind.ENVIRONMENTAL, surrounding
    if sides.written is not None and same_meaning(leaf, sides.written.get(path)):
        return DriftKind.PENDING, "the configuration has changed since the file was written"
    if sides.written is None and same_meaning(leaf, None) and _is_asked_for(subject, declared.get(path)):
        return DriftKind.PENDING, "the configuration has it, and what was rendered before has not"
    return DriftKind.HAND_EDIT, "neither the configuration nor a patch has it so"


def _surrounding(component: str, path: LeafPath, leaf: Leaf | None, declared: Leaf | None) -> str:
    if leaf is not None and declared is not None and is_other_release(component, path, leaf.value, declared.value):
        return RELEASE
    if component == KUBELET_FLAGS and declared is None:
        return REGISTERED
    return surrounding_of(component, path)


def _is_spelt_alike(left: Leaf | None, right: Leaf | None) -> bool:
    if left is None or right is None:
        return left is right
    return equal(left.value, right.value)


def _is_configured(subject: DriftSubject, sides: _Sides, path: LeafPath) -> bool:
    """Say whether the configuration or a patch names the very field, so that surroundings do not decide it."""
    declared, leaves = subject.declared, sides.declared
    leaf = leaves.get(path) if leaves is not None else None
    if declared is None or leaf is None:
        return False
    origin = declared.origin(leaf.at)
    is_named = any(word in origin.detail for word in (".extra", ".imageTag"))
    return origin.kind is OriginKind.PATCH or (origin.kind is OriginKind.CONFIG and is_named)


def _is_asked_for(subject: DriftSubject, leaf: Leaf | None) -> bool:
    """Say whether the user's configuration asks for a field: nothing is lost if it comes."""
    if leaf is None or subject.declared is None:
        return False
    origin = subject.declared.origin(leaf.at)
    return origin.kind is OriginKind.CONFIG and (".extra" in origin.detail or _KUBELET in origin.detail)


def _declared_value(side: DeclaredDocument | None, leaves: _Leaves | None, path: LeafPath) -> Seen:
    if side is None or leaves is None:
        return NOT_LOOKED_AT
    leaf = leaves.get(path)
    if leaf is None:
        return Seen(source="not declared")
    return Seen(leaf.value, _told(side.origin(leaf.at)))


def _told(origin: Origin) -> str:
    if origin.position is None:
        return origin.detail
    return f"{origin.where} ({origin.detail})" if origin.detail else origin.where


def _found_value(side: FoundDocument | None, leaves: _Leaves | None, path: LeafPath) -> Seen:
    if side is None or leaves is None:
        return NOT_LOOKED_AT
    leaf = leaves.get(path)
    return Seen(source=side.source) if leaf is None else Seen(leaf.value, side.source)


def _missing(subject: DriftSubject) -> Difference:
    return Difference(
        component=subject.component,
        where=subject.where,
        path=(),
        kind=DriftKind.HAND_EDIT,
        on_disk=Seen(source=subject.where),
        reason="it is not there",
    )


def _is_respelt(subject: DriftSubject) -> bool:
    """Say whether the file has another text than the program that wrote it would give it."""
    found, declared = subject.on_disk, subject.declared
    if found is None:
        return False
    if found.text is not None and found.text.decode("utf-8", "replace") != marshal_yaml(found.document, source=""):
        return not _is_no_yaml(subject)
    return declared is not None and not equal(found.document, declared.document)


def _is_no_yaml(subject: DriftSubject) -> bool:
    return subject.where.endswith(".env")


def _respelling(subject: DriftSubject) -> Difference:
    assert subject.on_disk is not None
    return Difference(
        component=subject.component,
        where=subject.where,
        path=(),
        kind=DriftKind.COSMETIC,
        on_disk=Seen(source=subject.on_disk.source),
        reason="comments, order or spelling",
    )


def _with_one_timeout(found: Sequence[Difference], subjects: Sequence[DriftSubject]) -> Iterator[Difference]:
    """Yield the differences; a startup threshold that not all components of the node share was set by hand."""
    timed = [each for each in found if each.reason == TIMEOUT]
    values = {repr(each.on_disk.value if each.on_disk.is_known else each.running.value) for each in timed}
    patched = {each.component for each in found if each.path[-2:] == STARTUP_THRESHOLD and each.reason != TIMEOUT}
    probed = {each.component for each in subjects if _probes(each)} - patched
    is_shared = len(values) == 1 and {each.component for each in timed} == probed
    for each in found:
        if each.reason == TIMEOUT and not is_shared:
            each = replace(each, kind=DriftKind.HAND_EDIT, reason="the other components of this node have another one")
        yield each


def _probes(subject: DriftSubject) -> bool:
    found = subject.on_disk or subject.running
    return found is not None and any(
        path[-2:] == STARTUP_THRESHOLD for path in leaves_of(found.document, subject.shape)
    )
