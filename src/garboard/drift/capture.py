"""Differences that shall stay, as patches: for each target what garboard needs to render it as it is on disk.

Flags become flag patches, which name them and so survive another order. A directory for kubeadm, which has no word for
a flag, gets JSON patches that test the command they were made for.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from garboard.documents import Json, write_yaml
from garboard.drift.difference import Difference
from garboard.drift.leaves import FlagStep, LeafPath, LeafStep
from garboard.drift.subject import DriftSubject
from garboard.errors import BadUsage, PatchFailed
from garboard.patches import MARKER, PatchType, Target, capture_patch, copy_of, targets_of
from garboard.patches.args import compile_args
from garboard.patches.fieldpath import Pick
from garboard.patches.json_values import Absent, JsonOrAbsent
from garboard.schema import Schema
from garboard.values import dataclass

_SUFFIX = "~found"  # part of the name for kubeadm; a tilde sorts behind the other patches of the target


@dataclass(frozen=True, slots=True)
class CapturedFile:
    """A patch file: its name, its text, and the differences that it keeps."""

    name: str
    text: str
    keeps: tuple[Difference, ...]


def can_keep(difference: Difference, schema: Schema) -> bool:
    """Say whether a patch can hold a difference: it has a field, of something that this minor patches."""
    return bool(difference.path) and _target(difference.component, schema) is not None


def capture(
    subjects: Iterable[DriftSubject], kept: Sequence[Difference], schema: Schema, *, is_for_kubeadm: bool = False
) -> tuple[CapturedFile, ...]:
    """Return the patches that keep differences; those of one component are in one file, or two if it has flags too.

    They are made for what is declared with the patches that there are, so they come after those. With
    `is_for_kubeadm`, kubeadm can read them as well.
    """
    by_name = {each.component: each for each in subjects}
    files: list[CapturedFile] = []
    for component in dict.fromkeys(each.component for each in kept):
        mine = tuple(each for each in kept if each.component == component)
        target = _target(component, schema)
        if target is None:
            raise BadUsage(
                f"{mine[0].where}: {mine[0].field} cannot be kept: Kubernetes {schema.version.as_minor} has no patches"
                f" for {component}",
                hint="drop it, or store it in the configuration",
                error_class="not-patchable",
            )
        files += _captured(by_name[component], mine, target, schema, is_for_kubeadm=is_for_kubeadm)
    return tuple(files)


def needs_marker(files: Iterable[CapturedFile]) -> bool:
    """Say whether a directory with these files has to be a tree of ours, which the marker file makes it."""
    return any("+args" in each.name for each in files)


def marker_file() -> CapturedFile:
    return CapturedFile(MARKER, "", ())


def _target(component: str, schema: Schema) -> Target | None:
    return next((each for each in targets_of(schema.version) if each.name == component), None)


def _captured(
    subject: DriftSubject, kept: Sequence[Difference], target: Target, schema: Schema, *, is_for_kubeadm: bool
) -> Iterator[CapturedFile]:
    assert subject.declared is not None
    declared = subject.declared.document
    flags = tuple(each for each in kept if _is_main_flag(each.path, target))
    others = tuple(each for each in kept if each not in flags)
    if others:
        wanted = with_fields(declared, {each.path: each.actual.value for each in others})
        type_, patch = _smallest(declared, wanted, target, schema)
        yield CapturedFile(f"{target.name}{_SUFFIX}+{type_}.yaml", write_yaml(patch), others)
    if flags:
        args: dict[str, Json] = {str(each.path[-1]).lstrip("-"): _flag(each.actual.value) for each in flags}
        if is_for_kubeadm:
            operations: Json = [each.operation for each in compile_args(args, copy_of(declared))]
            yield CapturedFile(f"{target.name}{_SUFFIX}-flags+json.yaml", write_yaml(operations), flags)
        else:
            yield CapturedFile(f"{target.name}{_SUFFIX}+args.yaml", write_yaml(args), flags)


def _is_main_flag(path: LeafPath, target: Target) -> bool:
    """Say whether a field is a flag of the component itself, and not of a container beside it."""
    picks = [each.value for each in path if isinstance(each, Pick)]
    return isinstance(path[-1], FlagStep) and "command" in path and picks == [target.name]


def _flag(value: JsonOrAbsent) -> Json:
    return None if isinstance(value, Absent) else value


def _smallest(declared: Json, wanted: Json, target: Target, schema: Schema) -> tuple[PatchType, Json]:
    """Return the smallest strategic patch; where none can say it, such as for a field without a type, a JSON patch."""
    try:
        return PatchType.STRATEGIC, capture_patch(declared, wanted, PatchType.STRATEGIC, target.shape(schema))
    except PatchFailed:
        return PatchType.JSON, capture_patch(declared, wanted, PatchType.JSON, None)


def with_fields(document: Json, values: Mapping[LeafPath, JsonOrAbsent]) -> Json:
    """Return a copy of a document with fields set, or removed; list elements that they need are made, or go."""
    changed = copy_of(document)
    for path, value in values.items():
        changed = _with_field(changed, path, value)
    return changed


def _with_field(holder: Json, path: LeafPath, value: JsonOrAbsent) -> Json:
    if not path:
        return None if isinstance(value, Absent) else copy_of(value)
    step, rest = path[0], path[1:]
    if isinstance(step, FlagStep):
        return _with_flag(holder, step.name, value)
    if isinstance(step, Pick):
        return _with_element(holder, step, rest, value)
    if not rest and _is_command_of_flags(holder, step):
        return _with_words(holder, step, value)
    members = dict(holder) if isinstance(holder, dict) else {}
    if not rest and isinstance(value, Absent):
        members.pop(step, None)
        return members
    below = _with_field(members.get(step), rest, value)
    if isinstance(value, Absent) and below in ({}, [], None):
        members.pop(step, None)
    else:
        members[step] = below
    return members


def _is_command_of_flags(holder: Json, step: LeafStep) -> bool:
    words = holder.get(str(step)) if isinstance(holder, dict) else None
    return step in ("command", "args") and isinstance(words, list) and any(str(each).startswith("-") for each in words)


def _with_words(holder: Json, step: LeafStep, value: JsonOrAbsent) -> Json:
    """Set the words of a command that are no flags, and leave its flags."""
    assert isinstance(holder, dict)
    words = holder[str(step)]
    flags = [each for each in words if str(each).startswith("-")] if isinstance(words, list) else []
    plain = value if isinstance(value, list) else []
    return {**holder, str(step): [*plain, *flags]}


def _with_flag(holder: Json, name: str, value: JsonOrAbsent) -> Json:
    words = [str(each) for each in holder] if isinstance(holder, list) else []
    kept = [each for each in words if each.partition("=")[0] != name]
    values = [] if isinstance(value, Absent) else value if isinstance(value, list) else [value]
    return [*kept, *(name if each is True else f"{name}={each}" for each in values)]


def _with_element(holder: Json, step: Pick, rest: LeafPath, value: JsonOrAbsent) -> Json:
    items = list(holder) if isinstance(holder, list) else []
    place = next((index for index, each in enumerate(items) if _is_it(each, step)), len(items))
    if place == len(items):
        if isinstance(value, Absent):
            return [*items]
        items.append({step.key: int(step.value) if step.value.isdecimal() else step.value})
    below = _with_field(items[place], rest, value)
    is_gone = isinstance(value, Absent) and (not isinstance(below, dict) or set(below) <= {step.key})
    if is_gone:
        del items[place]
    else:
        items[place] = below
    return [*items]


def _is_it(element: Json, step: Pick) -> bool:
    return isinstance(element, dict) and step.key in element and str(element[step.key]) == step.value
