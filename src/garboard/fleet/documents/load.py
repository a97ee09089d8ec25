"""Files to a set of fleet documents: read, typed, checked as Hive's admission does, and indexed by name."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Generic, TypeAlias, TypeVar

import msgspec

from garboard.documents import DocumentPath, Json
from garboard.errors import BadDocument
from garboard.fleet.documents.checks import object_problems
from garboard.fleet.documents.kinds import (
    API_VERSION,
    KINDS,
    OTHER_KINDS,
    ClusterClaim,
    ClusterDeployment,
    ClusterDeploymentCustomization,
    ClusterImageSet,
    ClusterPool,
    ConfigMapObject,
    FleetObject,
    HiveObject,
    NamedObject,
    SecretObject,
)
from garboard.fleet.documents.problems import DocumentProblem, InvalidFleetDocuments, problem_at
from garboard.fleet.documents.reading import ReadDocument, read_documents
from garboard.patches import SourceText
from garboard.patches.json_values import value_at
from garboard.schema import suggest
from garboard.values import dataclass

ObjectT = TypeVar("ObjectT", bound=HiveObject | NamedObject)

_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_FIELD: Final = re.compile(r"Object (?:contains unknown|missing required) field `(.*?)`")


@dataclass(frozen=True, slots=True)
class ObjectKey:
    """Namespace and name of an object; the namespace is empty for kinds that have none."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class WrittenObject(Generic[ObjectT]):
    """An object and the text that it stands in; the text may be that of a Secret and is not shown."""

    value: ObjectT
    source: SourceText

    def __repr__(self) -> str:
        return f"WrittenObject({self.value.kind} {self.value.metadata.name})"

    @property
    def key(self) -> ObjectKey:
        metadata = self.value.metadata
        return ObjectKey(metadata.namespace if self.value.is_namespaced else "", metadata.name)

    def where(self, *at: str | int) -> str:
        return self.source.where(at)


@dataclass(frozen=True, slots=True)
class FleetDocuments:
    """Everything that the files say, by kind and name; and what stood in them that nothing here reads."""

    deployments: Mapping[ObjectKey, WrittenObject[ClusterDeployment]]
    customizations: Mapping[ObjectKey, WrittenObject[ClusterDeploymentCustomization]]
    pools: Mapping[ObjectKey, WrittenObject[ClusterPool]]
    image_sets: Mapping[ObjectKey, WrittenObject[ClusterImageSet]]
    claims: Mapping[ObjectKey, WrittenObject[ClusterClaim]]
    secrets: Mapping[ObjectKey, WrittenObject[SecretObject]]
    config_maps: Mapping[ObjectKey, WrittenObject[ConfigMapObject]]
    ignored: tuple[str, ...] = ()


_Found: TypeAlias = dict[type[FleetObject], dict[ObjectKey, WrittenObject[FleetObject]]]


def load_documents(files: Iterable[tuple[str, bytes]]) -> FleetDocuments:
    """Return the documents of files (name and bytes); everything that is wrong with them is refused together."""
    problems: list[DocumentProblem] = []
    ignored: list[str] = []
    found: _Found = {kind: {} for kind in KINDS.values()}
    for name, data in files:
        for read in read_documents(data, file=name):
            if isinstance(read, DocumentProblem):
                problems.append(read)
                continue
            outcome = _typed(read)
            if isinstance(outcome, str):
                ignored.append(outcome)
            elif isinstance(outcome, DocumentProblem):
                problems.append(outcome)
            else:
                problems += _taken(WrittenObject(outcome, read.source), found[type(outcome)])
    if problems:
        raise InvalidFleetDocuments(problems)
    return _indexed(found, tuple(ignored))


def _indexed(found: _Found, ignored: tuple[str, ...]) -> FleetDocuments:
    if not any(found.values()):
        raise BadDocument(
            "the files hold no document of a fleet",
            hint=f"name files with ClusterDeployments or ClusterPools of {API_VERSION}",
        )

    def of(kind: type[ObjectT]) -> Mapping[ObjectKey, WrittenObject[ObjectT]]:
        return found[kind]  # type: ignore[index,return-value]  # they are kept by their own kind

    return FleetDocuments(
        deployments=of(ClusterDeployment),
        customizations=of(ClusterDeploymentCustomization),
        pools=of(ClusterPool),
        image_sets=of(ClusterImageSet),
        claims=of(ClusterClaim),
        secrets=of(SecretObject),
        config_maps=of(ConfigMapObject),
        ignored=ignored,
    )


def _taken(
    written: WrittenObject[FleetObject], others: dict[ObjectKey, WrittenObject[FleetObject]]
) -> Iterator[DocumentProblem]:
    """Add an object to those of its kind, and yield what is wrong with it."""
    first = others.setdefault(written.key, written)
    if first is not written:
        message = f"{written.value.kind} {written.key} stands in these files twice; first at {first.where()}"
        yield DocumentProblem(written.where(), message, "remove one of the two, or give it another name or namespace")
    yield from object_problems(written.value, written.source)


def _typed(read: ReadDocument) -> FleetObject | DocumentProblem | str:
    """Return an object of its type, a problem, or in words what it is if nothing here reads it."""
    tree, source = read.value, read.source
    if not isinstance(tree, dict):
        return DocumentProblem(source.where(), "not an object", "an object is a mapping with apiVersion and kind")
    api_version, kind = tree.get("apiVersion"), tree.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        missing = "kind" if isinstance(api_version, str) else "apiVersion"
        return DocumentProblem(source.where(), f"{missing} is missing", "an object has apiVersion, kind and metadata")
    repeated = next(iter(source.repeated_keys), None)
    if repeated is not None:
        name, at = repeated
        return DocumentProblem(f"{source.name}:{at.line}:{at.column}", f"the key {name!r} stands here a second time")
    known = KINDS.get((api_version, kind))
    if known is None:
        return _unknown(api_version, kind, source)
    while True:
        try:
            return msgspec.convert(tree, known)
        except msgspec.ValidationError as error:
            if not _drop_null(tree, error):
                return _misshapen(error, tree, source)


def _drop_null(tree: Json, error: msgspec.ValidationError) -> bool:
    """Remove the null that an error is about, as an API server does where a field cannot be null."""
    said, _, place = str(error).partition(" - at ")
    if not said.endswith("got `null`"):
        return False
    *path, last = _path(place.strip("`")) or ("",)
    holder = value_at(tree, tuple(path))
    return isinstance(holder, dict) and holder.pop(str(last), tree) is None


def _unknown(api_version: str, kind: str, source: SourceText) -> DocumentProblem | str:
    """Return what an object of another kind is, or a problem if one of ours was probably meant."""
    group, _, version = api_version.rpartition("/")
    ours = {name for _, name in KINDS} | OTHER_KINDS
    if group == API_VERSION.partition("/")[0] and (kind not in ours or version != "v1"):
        near = suggest(kind, ours) if kind not in ours else f"{API_VERSION} {kind}"
        hint = f"did you mean {near!r}?" if near else f"the kinds are {', '.join(name for _, name in KINDS)}"
        return DocumentProblem(source.where(("kind",)), f"{api_version} has no {kind}", hint)
    meant = next((api for api, name in KINDS if name == kind), None)
    if meant is not None and api_version in ("v1", "hive.openshift.io"):
        hint = f"write apiVersion: {meant}"
        return DocumentProblem(source.where(("apiVersion",)), f"{kind} is of {meant}, not of {api_version}", hint)
    return f"{source.where()}: {api_version} {kind}"


def _misshapen(error: msgspec.ValidationError, tree: Json, source: SourceText) -> DocumentProblem:
    """Return what msgspec found as a problem at its line."""
    said, _, place = str(error).partition(" - at ")
    at = _path(place.strip("`"))
    named = _FIELD.match(said)
    if named and "missing" in said:
        return problem_at(source, at, f"the field {named[1]!r} is missing")
    if named:
        return problem_at(source, (*at, named[1]), "there is no such field", _hint_for(named[1], at, tree))
    is_value = at[-1:] == ("value",) and said.startswith("Expected `str`")
    hint = "`value` is text; write other JSON as text in valueJSON, such as valueJSON: '3'" if is_value else None
    return problem_at(source, at, said[:1].lower() + said[1:].replace("`", ""), hint)


def _path(text: str) -> DocumentPath:
    """Return the path that msgspec writes as `$.spec.inventory[0].name`."""
    steps = _STEP.findall(text.removeprefix("$"))
    return tuple(name or (int(index) if index.isdigit() else 0) for name, index in steps)


def _hint_for(name: str, at: DocumentPath, tree: Json) -> str | None:
    struct = _struct_at(tree, at)
    near = suggest(name, struct) if struct else None
    return f"did you mean {near!r}?" if near else f"the fields are {', '.join(sorted(struct))}" if struct else None


def _struct_at(tree: Json, at: DocumentPath) -> tuple[str, ...]:
    """Return the names of the fields that the struct at a path has."""
    members = tree if isinstance(tree, dict) else {}
    api_version, kind = members.get("apiVersion"), members.get("kind")
    type_ = msgspec.inspect.type_info(KINDS[str(api_version), str(kind)])
    for step in at:
        options = type_.types if isinstance(type_, msgspec.inspect.UnionType) else (type_,)
        type_ = next((each for each in options if not isinstance(each, msgspec.inspect.NoneType)), type_)
        if isinstance(type_, msgspec.inspect.StructType):
            type_ = next((each.type for each in type_.fields if each.encode_name == step), type_)
        elif isinstance(type_, msgspec.inspect.ListType):
            type_ = type_.item_type
    options = type_.types if isinstance(type_, msgspec.inspect.UnionType) else (type_,)
    structs = [each for each in options if isinstance(each, msgspec.inspect.StructType)]
    return tuple(each.encode_name for struct in structs for each in struct.fields)
