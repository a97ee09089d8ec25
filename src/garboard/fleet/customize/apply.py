"""Customizations applied to what an installer has written: a tree in, a tree out, and nothing if anything fails.

Each entry looks for its manifests when its turn has come, so it sees what the entries before it have made of them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NoReturn, Protocol

from garboard.documents import Json
from garboard.errors import BadDocument, PatchFailed
from garboard.fleet.customize.compile import Customization, ManifestPatch
from garboard.fleet.customize.failure import (
    CustomizationFailed,
    CustomizationFailure,
    CustomizationStep,
    FailureReason,
)
from garboard.fleet.customize.tree import (
    DocumentPlace,
    Irregular,
    LeavesTree,
    ManifestDocument,
    ManifestTree,
    is_protected,
)
from garboard.patches import Finding, Patch, PatchSubject, PatchType, Severity, apply_patches, copy_of
from garboard.schema import Schema
from garboard.values import dataclass

# What RFC 6902 lets pass and `garboard patch` refuses: a value that is there already, an object of another kind.
_HARMLESS: Final = frozenset(("no-change", "kind-change"))
Redact = Callable[[str], str]


class TypeSource(Protocol):
    """Gives the types that strategic patches merge by, which take time to load."""

    def __call__(self) -> Schema: ...


@dataclass(frozen=True, slots=True)
class CustomizedTree:
    """The tree after all customizations, and what was doubtful about them."""

    tree: ManifestTree
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rules:
    """How patches are applied, whoever wrote them."""

    schema: TypeSource
    redact: Redact = str


def customize(tree: ManifestTree, customizations: Iterable[Customization], rules: Rules) -> CustomizedTree:
    """Apply customizations in their order; the first failure ends it, and the tree that was given is as it was."""
    warnings: list[str] = []
    for customization in customizations:
        for entry in customization.manifests:
            run = _EntryRun(tree, customization, entry, rules)
            tree = run.applied()
            warnings += run.warnings
    return CustomizedTree(tree, tuple(dict.fromkeys(warnings)))


class _EntryRun:
    """One entry on one tree."""

    def __init__(self, tree: ManifestTree, customization: Customization, entry: ManifestPatch, rules: Rules) -> None:
        self.tree, self.customization, self.entry, self.rules = tree, customization, entry, rules
        self.warnings: list[str] = []

    def applied(self) -> ManifestTree:
        places = self._places()
        if not places and not self.entry.may_match_nothing:
            hint = "compare it with the names of the files, or allow it with onNoMatch: warn"
            self._fail(FailureReason.NO_MATCH, "no manifest matches", hint=hint)
        if not places:
            self.warnings.append(f"{self.entry.where}: {self.customization.name}: no manifest matches, as allowed")
        patch = self.entry.patch
        if patch is None or not places:
            return self.tree
        changed: dict[str, list[ManifestDocument]] = {}
        for place in places:
            documents = changed.setdefault(place.file, list(self.tree.documents(place.file)))
            documents[place.index] = self._patched(documents[place.index], place, patch)
        return self.tree.with_patched({file: tuple(documents) for file, documents in changed.items()})

    def _places(self) -> Sequence[DocumentPlace]:
        match = self.entry.match
        if not match.glob:
            assert match.content is not None
            try:
                return self.tree.select(match.content)
            except BadDocument as error:
                self._fail(FailureReason.IO, f"a manifest cannot be parsed: {error.message}", hint=error.hint)
        places = [place for file in self._files() for place in self._documents_of(file)]
        if match.content is None:
            return places
        content = match.content
        return [each for each in places if content.matches(self.tree.documents(each.file)[each.index].value)]

    def _files(self) -> Iterator[str]:
        """Yield the files that the pattern matches, each of them one that may be patched."""
        try:
            found = self.tree.glob(self.entry.match.glob)
        except LeavesTree as error:
            self._fail(FailureReason.PATH_ESCAPE, f"{error} is a symbolic link, which is not followed", str(error))
        for path in found:
            entry = self.tree.entry(path)
            if isinstance(entry, Irregular):
                reason = FailureReason.PATH_ESCAPE if entry.is_link else FailureReason.IO
                self._fail(reason, f"not a regular file: {entry.what}", path)
            if entry is None:
                hint = "end the pattern with the names of files, such as manifests/*.yaml"
                self._fail(FailureReason.IO, "it is a folder", path, hint=hint)
            if is_protected(path):
                hint = "patch manifests below manifests/ or openshift/; installConfigPatches patch the install config"
                self._fail(FailureReason.PROTECTED, "it belongs to the installer and is no manifest", path, hint=hint)
            yield path

    def _documents_of(self, file: str) -> Iterator[DocumentPlace]:
        try:
            documents = self.tree.documents(file)
        except BadDocument as error:
            self._fail(FailureReason.IO, f"it cannot be parsed: {error.message}", file, hint=error.hint)
        if not documents:
            self._fail(FailureReason.IO, "it is empty", file)
        yield from (DocumentPlace(file, index) for index in range(len(documents)))

    def _patched(self, document: ManifestDocument, place: DocumentPlace, patch: Patch) -> ManifestDocument:
        if document.value is None:
            self._fail(FailureReason.IO, "it is empty", place.file)
        try:
            value, doubts = apply_strictly(document.value, patch, self.rules, is_compat=self.customization.is_compat)
        except PatchFailed as error:
            self._fail_in(patch, error, place.file)
        self.warnings += [f"{each.where}: {place.file}: {each.message}" for each in doubts]
        return ManifestDocument(value, document.source, (*document.patches, patch))

    def _fail_in(self, patch: Patch, error: PatchFailed, file: str) -> NoReturn:
        where, op = patch.where(error.at), failed_operation(patch, error)
        message = error.message.removeprefix(f"{where}: ")
        self._fail(FailureReason.FAILED, message, file, hint=error.hint, where=where, op=op)

    def _fail(
        self,
        reason: FailureReason,
        message: str,
        file: str = "",
        *,
        hint: str | None = None,
        where: str = "",
        op: int | None = None,
    ) -> NoReturn:
        redact = self.rules.redact
        failure = CustomizationFailure(
            reason=reason,
            customization=self.customization.name,
            step=CustomizationStep.MANIFESTS,
            message=redact(message),
            where=where or self.entry.where,
            hint=redact(hint) if hint else None,
            entry=self.entry.index,
            selector=self.entry.match.shown,
            file=file,
            op=op,
        )
        raise CustomizationFailed([failure]) from None


class _Refused(PatchFailed):
    """A finding that strict mode refuses."""


def apply_strictly(document: Json, patch: Patch, rules: Rules, *, is_compat: bool) -> tuple[Json, tuple[Finding, ...]]:
    """Return a document patched, which stays as it was, and what is doubtful about it.

    What RFC 6902 does not allow is refused; with `is_compat` a `replace` may add what is not there.
    """
    is_strategic = patch.type is PatchType.STRATEGIC
    shape = None
    if is_strategic and isinstance(document, dict):
        named = document.get("apiVersion"), document.get("kind")
        shape = rules.schema().type_of(str(named[0]), str(named[1]))
    applied = apply_patches(copy_of(document), [patch], PatchSubject(shape), is_traced=True, is_decoded=False)
    findings = [each for each in applied.findings if not (is_compat and _is_lenient_replace(each, patch))]
    for each in findings:
        if each.severity is Severity.ERROR and each.error_class not in _HARMLESS:
            raise _Refused(f"{each.where}: {each.message}", error_class=each.error_class, at=each.at, hint=each.hint)
    return applied.document, tuple(each for each in findings if each.error_class in _HARMLESS)


def _is_lenient_replace(finding: Finding, patch: Patch) -> bool:
    index = finding.at[0] if finding.at else None
    operation = patch.value[index] if isinstance(patch.value, list) and isinstance(index, int) else None
    return finding.error_class == "path-missing" and isinstance(operation, dict) and operation.get("op") == "replace"


def failed_operation(patch: Patch, error: PatchFailed) -> int | None:
    """Return the number of the operation of a JSON patch that failed."""
    index = error.at[0] if error.at and patch.type is PatchType.JSON else None
    return index if isinstance(index, int) else None
