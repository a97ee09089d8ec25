"""Patch sets for any objects: a file that lists patches by the objects they select.

apiVersion: garboard.dev/v1alpha1
kind: PatchSet
patches:
- target: {group: apps, kind: Deployment, name: web-*, namespace: shop, labelSelector: tier=front}
  type: strategic
  file: replicas.yaml
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import msgspec

from garboard.documents import Json, Position, read_yaml, refuse_second_document
from garboard.errors import BadDocument, InvalidValue
from garboard.patches.directory import read_patch_file
from garboard.patches.patch import Patch, PatchType, Source
from garboard.patches.selector import LabelSelector
from garboard.patches.tree import API_VERSION


class TargetDocument(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    group: str | None = None
    version: str | None = None
    kind: str | None = None
    name: str | None = None
    namespace: str | None = None
    label_selector: str = ""


class EntryDocument(msgspec.Struct, forbid_unknown_fields=True):
    file: str
    target: TargetDocument = msgspec.field(default_factory=TargetDocument)
    type: PatchType = PatchType.STRATEGIC


class PatchSetDocument(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """The file as users write it."""

    patches: list[EntryDocument]
    api_version: str = API_VERSION
    kind: str = "PatchSet"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects an entry is for; what is not named matches anything, and names may hold `*` and `?`."""

    group: str | None
    version: str | None
    kind: str | None
    name: str | None
    namespace: str | None
    labels: LabelSelector

    def matches(self, document: Json) -> bool:
        if not isinstance(document, dict) or self.kind not in (None, document.get("kind")):
            return False
        metadata = document.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        return (
            _is_like(self.name, metadata.get("name"))
            and _is_like(self.namespace, metadata.get("namespace"))
            and self._matches_api_version(str(document.get("apiVersion", "")))
            and (not self.labels.requirements or self.labels.matches(_text_members(metadata.get("labels"))))
        )

    def _matches_api_version(self, api_version: str) -> bool:
        group, _, version = api_version.rpartition("/")
        return self.group in (None, group) and self.version in (None, version)


def _is_like(pattern: str | None, value: Json) -> bool:
    return pattern is None or (isinstance(value, str) and fnmatchcase(value, pattern))


def _text_members(labels: Json) -> dict[str, str]:
    return {key: value for key, value in labels.items() if isinstance(value, str)} if isinstance(labels, dict) else {}


@dataclass(frozen=True, slots=True)
class Entry:
    """Patches of one file, the objects they are for, and where the patch set says so."""

    file: str
    selection: Selection
    patches: tuple[Patch, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class ObjectPatches:
    entries: tuple[Entry, ...]

    def for_object(self, document: Json) -> list[Entry]:
        return [entry for entry in self.entries if entry.selection.matches(document)]


def read_patch_set(data: bytes, *, source: str, load: Callable[[str], bytes]) -> ObjectPatches:
    """Read a patch set; `load` gives the bytes of a patch file named in it."""
    content = read_yaml(data, source=source)
    text = Source(source, data.decode(errors="replace"))  # UTF-16 is read as well, but has no positions
    refuse_second_document(text.text, source=source)
    try:
        document = msgspec.convert(content, PatchSetDocument)
    except msgspec.ValidationError as error:
        raise BadDocument(
            f"{source}: not a patch set: {_said_of_fields(error)}",
            hint="it is a mapping with `patches`, a list of {target, type, file}; a target has group, version, kind,"
            " name, namespace and labelSelector, a type is strategic, merge or json",
        ) from error
    if (document.api_version, document.kind) != (API_VERSION, "PatchSet"):
        raise BadDocument(
            f"{source}: {document.api_version} {document.kind} is not a patch set",
            hint=f"write apiVersion: {API_VERSION} and kind: PatchSet, or leave both out",
        )
    return ObjectPatches(tuple(_entries(document.patches, load, text)))


def _entries(entries: Sequence[EntryDocument], load: Callable[[str], bytes], text: Source) -> Iterator[Entry]:
    for index, entry in enumerate(entries):
        position = text.position(("patches", index))
        try:
            yield _entry(entry, load, position)
        except InvalidValue as error:
            where = f"{text.name}:{position.line}:{position.column}"
            raise InvalidValue(f"{where}: {error.message}", hint=error.hint) from error


def _said_of_fields(error: msgspec.ValidationError) -> str:
    """Return what msgspec found, in the words of this project: `patches[0].target: unknown field 'nam'`."""
    said, _, place = str(error).partition(" - at ")
    said = said.replace("Object contains unknown", "unknown").replace("Object missing required", "missing")
    said = said.replace("Invalid enum value", "unknown value").replace("`", "'")
    path = place.strip("`").removeprefix("$").removeprefix(".")
    return f"{path}: {said}" if path else said


def _entry(entry: EntryDocument, load: Callable[[str], bytes], position: Position) -> Entry:
    target = entry.target
    selection = Selection(
        target.group,
        target.version,
        target.kind,
        target.name,
        target.namespace,
        LabelSelector.parse(target.label_selector),
    )
    return Entry(entry.file, selection, tuple(read_patch_file(entry.file, load(entry.file), entry.type)), position)


def unmatched(patches: ObjectPatches, matched: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return the entries that no object was selected by."""
    seen = {id(entry) for entry in matched}
    return tuple(entry for entry in patches.entries if id(entry) not in seen)
