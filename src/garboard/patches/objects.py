"""Patch sets for any objects: a file that lists patches by the objects they select.

apiVersion: garboard.dev/v1alpha1
kind: PatchSet
patches:
- target: {group: apps, kind: Deployment, name: web-*, namespace: shop, labelSelector: tier=front}
  type: strategic
  file: replicas.yaml  # or `patch: |`, with the patch itself below it
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

import msgspec

from garboard.documents import Json, Position, read_yaml, refuse_second_document
from garboard.errors import BadDocument, InvalidValue
from garboard.patches.directory import read_patch_file
from garboard.patches.patch import Patch, PatchType, SourceText
from garboard.patches.tree import API_VERSION

_SELECTOR_TERM = re.compile(
    r"""\s*(?:
        (?P<absent>!\s*(?P<absent_key>[\w./-]+))
      | (?P<key>[\w./-]+)\s*(?:
            (?P<set_op>in|notin)\s*\((?P<values>[^()]*)\)
          | (?P<op>==|=|!=)\s*(?P<value>[\w.-]*)
        )?
    )\s*(?:,|$)""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Requirement:
    """A label that must be there or not, and the values it may have (any, if none are named)."""

    key: str
    is_wanted: bool
    values: frozenset[str] | None = None

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.values is None:
            return (self.key in labels) == self.is_wanted
        return (labels.get(self.key) in self.values) == self.is_wanted


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Labels as Kubernetes selects them: `app=web,tier!=db,env in (a, b),release,!canary`.

    All requirements must hold; an empty selector selects everything.
    """

    requirements: tuple[Requirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "LabelSelector":
        requirements: list[Requirement] = []
        end = 0
        while text[end:].strip():
            found = _SELECTOR_TERM.match(text, end)
            if found is None:
                raise InvalidValue(
                    f"{text!r} is not a label selector: cannot read {text[end:]!r}",
                    hint="write it as app=web,tier!=db,env in (a,b),release,!canary",
                )
            requirements.append(_requirement(found))
            end = found.end()
        return cls(tuple(requirements))

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


def _requirement(found: re.Match[str]) -> Requirement:
    if found["absent"]:
        return Requirement(found["absent_key"], is_wanted=False)
    if found["set_op"]:
        values = frozenset(value.strip() for value in found["values"].split(","))
        return Requirement(found["key"], found["set_op"] == "in", values)
    if found["op"]:
        return Requirement(found["key"], found["op"] != "!=", frozenset([found["value"]]))
    return Requirement(found["key"], is_wanted=True)


class TargetDocument(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    group: str | None = None
    version: str | None = None
    kind: str | None = None
    name: str | None = None
    namespace: str | None = None
    label_selector: str = ""


class EntryDocument(msgspec.Struct, forbid_unknown_fields=True):
    file: str | None = None
    patch: str | None = None  # instead of a file: the patch itself
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
class PatchSetEntry:
    """The patches of one entry, the objects they are for, and where the patch set says so."""

    file: str | None  # None: the patch stands in the patch set itself
    selection: Selection
    patches: tuple[Patch, ...]
    position: Position
    kind_position: Position


@dataclass(frozen=True, slots=True)
class ObjectPatches:
    entries: tuple[PatchSetEntry, ...]

    def for_object(self, document: Json) -> list[PatchSetEntry]:
        return [entry for entry in self.entries if entry.selection.matches(document)]


def read_patch_set(data: bytes, *, source: str, load: Callable[[str], bytes]) -> ObjectPatches:
    """Read a patch set; `load` gives the bytes of a patch file named in it."""
    content = read_yaml(data, source=source)
    text = SourceText(source, data.decode(errors="replace"))  # UTF-16 is read as well, but has no positions
    refuse_second_document(text.text, source=source)
    try:
        document = msgspec.convert(content, PatchSetDocument)
    except msgspec.ValidationError as error:
        raise BadDocument(
            f"{source}: not a patch set: {_said_of_fields(error)}",
            hint="it is a mapping with `patches`, a list of {target, type, file or patch}; a target has group, version,"
            " kind, name, namespace and labelSelector, a type is strategic, merge or json",
        ) from error
    if (document.api_version, document.kind) != (API_VERSION, "PatchSet"):
        raise BadDocument(
            f"{source}: {document.api_version} {document.kind} is not a patch set",
            hint=f"write apiVersion: {API_VERSION} and kind: PatchSet, or leave both out",
        )
    return ObjectPatches(tuple(_entries(document.patches, load, text)))


def _entries(
    entries: Sequence[EntryDocument], load: Callable[[str], bytes], text: SourceText
) -> Iterator[PatchSetEntry]:
    for index, entry in enumerate(entries):
        try:
            yield _entry(entry, load, text, ("patches", index))
        except InvalidValue as error:
            raise InvalidValue(f"{text.where(('patches', index))}: {error.message}", hint=error.hint) from error


def _said_of_fields(error: msgspec.ValidationError) -> str:
    """Return what msgspec found, in the words of this project: `patches[0].target: unknown field 'nam'`."""
    said, _, place = str(error).partition(" - at ")
    said = said.replace("Object contains unknown", "unknown").replace("Object missing required", "missing")
    said = said.replace("Invalid enum value", "unknown value").replace("`", "'")
    path = place.strip("`").removeprefix("$").removeprefix(".")
    return f"{path}: {said}" if path else said


def _entry(
    entry: EntryDocument, load: Callable[[str], bytes], text: SourceText, at: tuple[str | int, ...]
) -> PatchSetEntry:
    target = entry.target
    selection = Selection(
        target.group,
        target.version,
        target.kind,
        target.name,
        target.namespace,
        LabelSelector.parse(target.label_selector),
    )
    kind_position = text.position((*at, "target", "kind"))
    patches = tuple(_patches(entry, load, text, at))
    return PatchSetEntry(entry.file, selection, patches, text.position(at), kind_position)


def _patches(
    entry: EntryDocument, load: Callable[[str], bytes], text: SourceText, at: tuple[str | int, ...]
) -> Sequence[Patch]:
    """Return the patches of an entry; a file is looked for beside the patch set."""
    if entry.file is not None and entry.patch is None:
        shown = str(PurePosixPath(text.name).parent / entry.file)
        return read_patch_file(shown, load(entry.file), entry.type)
    if entry.patch is not None and entry.file is None:
        return [Patch.from_yaml(text.block((*at, "patch"), entry.patch), entry.type)]
    raise InvalidValue(
        "an entry needs either `file` or `patch`, and only one of them",
        hint="name a patch file with `file: web.yaml`, or write the patch below `patch: |`",
    )


def unmatched(patches: ObjectPatches, matched: Sequence[PatchSetEntry]) -> tuple[PatchSetEntry, ...]:
    """Return the entries that no object was selected by."""
    seen = {id(entry) for entry in matched}
    return tuple(entry for entry in patches.entries if id(entry) not in seen)
