"""A ClusterDeploymentCustomization as its author wrote it to one that can be applied: all that is wrong is found here.

Hive looks at none of this before an installer has run. Operations become those of RFC 6902, selectors are checked, and
every patch knows the lines that it was written on.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from msgspec import UnsetType

from garboard.documents import DocumentPath, Json, Position, read_json
from garboard.errors import BadDocument, InvalidValue
from garboard.fleet.customize.failure import (
    CustomizationFailed,
    CustomizationFailure,
    CustomizationStep,
    FailureReason,
)
from garboard.fleet.customize.glob import BadPattern, check_pattern
from garboard.fleet.documents import (
    ClusterDeploymentCustomization,
    ManifestPatchEntry,
    ManifestSelector,
    PatchEntity,
    WrittenObject,
)
from garboard.model.go import clean_path
from garboard.patches import LabelSelector, Patch, PatchType, Selection, TextPart
from garboard.values import dataclass

_POINTER: Final = re.compile(r"(?:/(?:[^~/]|~[01])*)*")
_OPERATIONS: Final = {
    "add": ("path", "value"),
    "remove": ("path",),
    "replace": ("path", "value"),
    "move": ("from", "path"),
    "copy": ("from", "path"),
    "test": ("path", "value"),
}


@dataclass(frozen=True, slots=True)
class ManifestMatch:
    """Which manifests an entry is for: the clean pattern of their paths, and what they hold; either may be absent."""

    glob: str
    content: Selection | None
    shown: str  # as its author wrote it


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestPatch:
    """One entry of installerManifestPatches; an empty list of patches is no patch."""

    index: int
    match: ManifestMatch
    patch: Patch | None
    may_match_nothing: bool
    where: str

    def __repr__(self) -> str:
        return f"ManifestPatch({self.index}, {self.match.shown})"  # patches may hold secrets


@dataclass(frozen=True, slots=True, kw_only=True)
class Customization:
    """A ClusterDeploymentCustomization that can be applied."""

    name: str
    where: str
    install_config: Patch | None
    manifests: tuple[ManifestPatch, ...]
    is_compat: bool

    def __repr__(self) -> str:
        return f"Customization({self.name})"


class OperationsText(TextPart):
    """The text of a list of PatchEntities, whose values may stand in valueJSON."""

    def position(self, at: DocumentPath) -> Position:
        if at[1:2] == ("value",):
            place = (*self.at, at[0], "valueJSON")
            found = self.whole.value_position(place)
            if found != self.whole.position((*self.at, at[0])):
                return found
        return super().position(at)


def compile_customization(written: WrittenObject[ClusterDeploymentCustomization]) -> Customization:
    """Return what a ClusterDeploymentCustomization says; everything that is wrong with it is refused together."""
    compiler = _Compiler(written)
    spec = written.value.spec
    install_config = compiler.install_config(spec.install_config_patches)
    manifests = [compiler.entry(index, entry) for index, entry in enumerate(spec.installer_manifest_patches)]
    if compiler.failures:
        raise CustomizationFailed(compiler.failures)
    return Customization(
        name=written.value.metadata.name,
        where=written.where(),
        install_config=install_config,
        manifests=tuple(each for each in manifests if each is not None),
        is_compat=spec.compat,
    )


class _Wrong(Exception):
    """What is wrong with a part, at a place in it."""

    def __init__(self, message: str, at: DocumentPath = (), hint: str | None = None, op: int | None = None) -> None:
        super().__init__(message)
        self.at, self.hint, self.op = at, hint, op


class _Escape(_Wrong):
    """A selector that leads out of the work folder."""


class _Compiler:
    """Compiles the lists of one customization, and collects what is wrong."""

    def __init__(self, written: WrittenObject[ClusterDeploymentCustomization]) -> None:
        self.name = written.value.metadata.name
        self.source = written.source
        self.owner = f"{written.value.kind} {written.key}"
        self.failures: list[CustomizationFailure] = []

    def install_config(self, patches: Sequence[PatchEntity]) -> Patch | None:
        at = ("spec", "installConfigPatches")
        problems: list[_Wrong] = []
        operations = _operations(patches, problems)
        for each in problems:
            self._fail(each, at, FailureReason.INSTALL_CONFIG_INVALID)
        return self._json_patch(operations, at) if operations else None

    def entry(self, index: int, entry: ManifestPatchEntry) -> ManifestPatch | None:
        at = ("spec", "installerManifestPatches", index)
        before = len(self.failures)
        match, patch = ManifestMatch("", None, ""), None
        try:
            match = _match(entry.manifest_selector)
        except _Wrong as wrong:
            reason = FailureReason.PATH_ESCAPE if isinstance(wrong, _Escape) else FailureReason.INVALID
            self._fail(wrong, (*at, "manifestSelector"), reason, index, _shown(entry.manifest_selector))
        problems: list[_Wrong] = []
        try:
            patch = self._patch(entry, at, problems)
        except _Wrong as wrong:
            problems.append(wrong)
        for each in problems:
            self._fail(each, at, FailureReason.INVALID, index, match.shown)
        if len(self.failures) > before:
            return None
        where, may_match_nothing = self.source.where(at), entry.on_no_match == "warn"
        return ManifestPatch(index=index, match=match, patch=patch, may_match_nothing=may_match_nothing, where=where)

    def _patch(self, entry: ManifestPatchEntry, at: DocumentPath, problems: list[_Wrong]) -> Patch | None:
        has_patches = not isinstance(entry.patches, UnsetType)
        if has_patches == (not isinstance(entry.patch, UnsetType)):
            raise _Wrong("one of patches and patch is needed, and only one", hint="patches is a list of operations")
        if isinstance(entry.patches, UnsetType):
            return self._inline_patch(entry, at, problems)
        if entry.type != "json":
            raise _Wrong(f"a {entry.type} patch stands in patch, not in patches", ("patches",))
        found: list[_Wrong] = []
        operations = _operations(entry.patches, found)
        problems += [_Wrong(str(each), ("patches", *each.at), each.hint, each.op) for each in found]
        return self._json_patch(operations, (*at, "patches")) if operations else None

    def _json_patch(self, operations: list[Json], at: DocumentPath) -> Patch:
        return Patch(OperationsText.of(self.source, at), PatchType.JSON, operations, self.owner)

    def _inline_patch(self, entry: ManifestPatchEntry, at: DocumentPath, problems: list[_Wrong]) -> Patch:
        """Return a patch that stands in `patch`, as text or as it is."""
        type_, place = PatchType(entry.type), (*at, "patch")
        assert not isinstance(entry.patch, UnsetType)
        if isinstance(entry.patch, str):
            try:
                patch = replace(Patch.from_yaml(self.source.block(place, entry.patch), type_), owner=self.owner)
            except BadDocument as error:
                raise _Wrong(error.message, ("patch",), error.hint) from None
        else:
            patch = Patch(TextPart.of(self.source, place), type_, entry.patch, self.owner)
        wanted: type = list if type_ is PatchType.JSON else dict
        if not isinstance(patch.value, wanted):
            what = "a list of operations" if wanted is list else "a mapping"
            raise _Wrong(f"a {entry.type} patch is {what}", ("patch",))
        if isinstance(patch.value, list):
            for index, operation in enumerate(patch.value):
                found = _wrong_operation(operation)
                if found:
                    problems.append(_Wrong(found, ("patch", index), op=index))
        return patch

    def _fail(
        self, wrong: _Wrong, at: DocumentPath, reason: FailureReason, entry: int | None = None, selector: str = ""
    ) -> None:
        is_install_config = reason is FailureReason.INSTALL_CONFIG_INVALID
        failure = CustomizationFailure(
            reason=reason,
            customization=self.name,
            step=CustomizationStep.INSTALL_CONFIG if is_install_config else CustomizationStep.MANIFESTS,
            message=str(wrong),
            where=self.source.where((*at, *wrong.at)),
            hint=wrong.hint,
            entry=entry,
            selector=selector,
            op=wrong.op,
        )
        self.failures.append(failure)


def _operations(patches: Sequence[PatchEntity], problems: list[_Wrong]) -> list[Json]:
    """Return operations as RFC 6902 writes them; what is wrong with one is added to `problems`."""
    found: list[Json] = []
    for index, entity in enumerate(patches):
        try:
            operation = _operation(entity)
        except _Wrong as wrong:
            problems.append(_Wrong(str(wrong), (index, *wrong.at), wrong.hint, index))
        else:
            found.append(operation)
    return found


def _operation(entity: PatchEntity) -> dict[str, Json]:
    operation: dict[str, Json] = {"op": entity.op}
    if entity.op in ("move", "copy"):
        if not entity.from_:
            raise _Wrong(f"{entity.op} needs from", hint="from is the pointer to what is moved or copied")
        operation["from"] = _pointer(entity.from_, "from")
    operation["path"] = _pointer(entity.path, "path")
    if entity.op in ("add", "replace", "test"):
        operation["value"] = _value(entity)
    return operation


def _value(entity: PatchEntity) -> Json:
    if not entity.value_json:
        return entity.value
    try:
        return read_json(entity.value_json, source="valueJSON")
    except BadDocument as error:
        hint = "valueJSON is JSON as text: valueJSON: '3', '\"text\"', '{\"name\": 1}'"
        raise _Wrong(f"not JSON: {error.message}", ("valueJSON",), hint) from None


def _pointer(text: str, name: str) -> str:
    wrong = _wrong_pointer(text)
    if wrong:
        raise _Wrong(wrong, (name,), "a pointer begins with /; ~1 stands for a slash in a name, ~0 for a tilde")
    return text


def _wrong_pointer(text: str) -> str | None:
    if text and not text.startswith("/"):
        return f"{text!r} does not begin with /"
    return None if _POINTER.fullmatch(text) else f"{text!r} has a ~ that is neither ~0 nor ~1"


def _wrong_operation(operation: Json) -> str | None:
    """Say what is wrong with an operation of RFC 6902 by itself."""
    if not isinstance(operation, dict):
        return "an operation is a mapping"
    name = operation.get("op")
    if not isinstance(name, str) or name not in _OPERATIONS:
        return f"op is one of {', '.join(_OPERATIONS)}"
    missing = [field for field in _OPERATIONS[name] if field not in operation]
    if missing:
        return f"{name} needs {' and '.join(missing)}"
    pointers = (operation[field] for field in _OPERATIONS[name] if field != "value")
    return next((wrong for each in pointers if (wrong := _wrong_pointer_value(each))), None)


def _wrong_pointer_value(pointer: Json) -> str | None:
    return _wrong_pointer(pointer) if isinstance(pointer, str) else "a pointer is text"


def _match(selector: ManifestSelector) -> ManifestMatch:
    content = None
    if selector.group is not None or selector.kind or selector.name or selector.label_selector:
        try:
            labels = LabelSelector.parse(selector.label_selector)
        except InvalidValue as error:
            raise _Wrong(error.message, ("labelSelector",), error.hint) from None
        content = Selection(selector.group, None, selector.kind or None, selector.name or None, None, labels)
    elif not selector.glob:
        raise _Wrong(
            "it selects nothing", hint="name files with glob, or objects with group, kind, name, labelSelector"
        )
    return ManifestMatch(_clean_glob(selector.glob) if selector.glob else "", content, _shown(selector))


def _clean_glob(glob: str) -> str:
    if glob.startswith("/"):
        raise _Escape(f"{glob!r} leads out of the work folder: it is absolute", ("glob",), "write it from there on")
    if ".." in glob.split("/"):
        raise _Escape(f"{glob!r} leads out of the work folder: it has ..", ("glob",), "write it from there on")
    if "\0" in glob:
        raise _Wrong("a pattern cannot hold a NUL", ("glob",))
    cleaned = clean_path(glob)
    try:
        check_pattern(cleaned)
    except BadPattern:
        hint = "close each [ with ], and write a range as [a-z]; a backslash needs a character behind it"
        raise _Wrong(f"{glob!r} is not a pattern of Go's filepath.Glob", ("glob",), hint) from None
    return cleaned


def _shown(selector: ManifestSelector) -> str:
    """Return a selector in one line."""
    named: Iterator[tuple[str, str | None]] = iter(
        (
            ("glob", selector.glob),
            ("group", selector.group),
            ("kind", selector.kind),
            ("name", selector.name),
            ("labelSelector", selector.label_selector),
        )
    )
    return ", ".join(f"{name} {value!r}" for name, value in named if value or (name == "group" and value is not None))
