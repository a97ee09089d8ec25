"""What is compared: one component, as it is declared, on disk, and running."""

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cache

from garboard.documents import DocumentPath, Json, read_yaml
from garboard.manifests import ConfigField, ValueSource
from garboard.patches import Origin, OriginKind, Origins, Patch, PatchSubject, apply_patches, copy_of
from garboard.schema import StructType
from garboard.values import dataclass

OriginOf = Callable[[DocumentPath], Origin]


@dataclass(frozen=True, slots=True)
class DeclaredDocument:
    """A document as it should be, and what decided each of its values."""

    document: Json
    origin: OriginOf = field(repr=False)
    label: str = "a patch of this node"  # what explains a field that only this one has so


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """A document as it was found: on disk with its text, or running."""

    document: Json
    source: str
    text: bytes | None = field(default=None, repr=False)

    @classmethod
    def of_file(cls, path: str, data: bytes) -> "FoundDocument":
        return cls(read_yaml(data, source=path), path, data)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftSubject:
    """One component of a node, or one object of the cluster.

    `patched` has the declared document with each set of patches that may explain it, the one that counts last.
    `written` is what garboard itself wrote there last, if that is known. What is None is not known, and not compared;
    a file that is known not to be there has `is_missing`.
    """

    component: str  # as patch targets are called, or the name of a file or an object
    where: str
    shape: StructType | None = None
    rendered: DeclaredDocument | None = None
    patched: Sequence[DeclaredDocument] = ()
    on_disk: FoundDocument | None = None
    running: FoundDocument | None = None
    written: Json = None
    is_missing: bool = False

    @property
    def declared(self) -> DeclaredDocument | None:
        return self.patched[-1] if self.patched else self.rendered


def rendered_from(
    document: Json, decided_by: Callable[[DocumentPath], ValueSource | None], minor: str
) -> DeclaredDocument:
    """Return a document as it is rendered; what nothing decided is a default of the minor."""

    def origin(at: DocumentPath) -> Origin:
        source = decided_by(at)
        if source is None:
            return Origin(OriginKind.DEFAULT, detail=f"the default of Kubernetes {minor}")
        if isinstance(source, ConfigField):
            return Origin(OriginKind.CONFIG, detail=f"{source.kind} {source}")
        return Origin(OriginKind.HOST, detail=str(source))

    return DeclaredDocument(copy_of(document), origin)


def patched_from(
    rendered: DeclaredDocument, patches: Sequence[Patch], subject: PatchSubject, label: str = "a patch of this node"
) -> DeclaredDocument:
    """Return a declared document with patches; which of them decided a field is found out when it is asked for."""
    document = apply_patches(copy_of(rendered.document), patches, subject).document

    @cache
    def origins() -> Origins:
        applied = apply_patches(copy_of(rendered.document), patches, subject, is_traced=True)
        return Origins(applied, _Base(rendered))

    def origin(at: DocumentPath) -> Origin:
        history = origins().history_at(at)
        if history.causes:
            return history.causes[-1].origin
        return history.origin or rendered.origin(at)

    return DeclaredDocument(document, origin if patches else rendered.origin, label)


class _Base:
    """A rendered document as the origins of patches ask for it."""

    def __init__(self, rendered: DeclaredDocument) -> None:
        self._rendered = rendered

    @property
    def value(self) -> Json:
        return self._rendered.document

    def origin(self, at: DocumentPath) -> Origin:
        return self._rendered.origin(at)
