"""kubeadm's patch directory: which file patches what, of which type, in which order.

The grammar is `target[suffix][+patchtype].{yaml|json}`. It is exactly that of kubeadm, whose pattern
is not anchored at its end: `etcdish.yaml` targets etcd, and `+mergeX` means merge.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from garboard.documents import split_documents
from garboard.errors import BadDocument
from garboard.patches.patch import Patch, PatchType, SourceText
from garboard.patches.targets import Target, targets_of
from garboard.schema import Schema


@dataclass(frozen=True, slots=True)
class PatchFile:
    """A file of a patch directory: its path below the directory, how to show it, and how to read it."""

    path: str
    shown: str
    load: Callable[[], bytes]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class IgnoredFile:
    shown: str
    reason: str


@dataclass(frozen=True, slots=True)
class TargetedPatch:
    target: Target
    patch: Patch


@dataclass(frozen=True, slots=True)
class PatchSet:
    """What a directory holds: patches in the order in which they apply, and the files that hold none."""

    patches: tuple[TargetedPatch, ...] = ()
    ignored: tuple[IgnoredFile, ...] = ()

    def for_target(self, target: Target) -> tuple[Patch, ...]:
        return tuple(each.patch for each in self.patches if each.target == target)


def walk_order(files: Iterable[PatchFile]) -> list[PatchFile]:
    """Return files as a lexical walk meets them: byte order in each folder, folders descended into at their place."""
    return sorted(files, key=lambda file: [part.encode("utf-8", "surrogateescape") for part in file.path.split("/")])


def read_directory(files: Sequence[PatchFile], schema: Schema, *, with_args: bool = False) -> PatchSet:
    """Read every file of a patch directory as kubeadm of that minor does; a broken one fails the whole directory.

    `with_args` admits our own type `+args`, which kubeadm would refuse.
    """
    patches: list[TargetedPatch] = []
    ignored: list[IgnoredFile] = []
    for file in walk_order(files):
        meaning = parse_file_name(file, schema, with_args=with_args)
        if isinstance(meaning, IgnoredFile):
            ignored.append(meaning)
            continue
        data = file.load()
        if not data:
            ignored.append(IgnoredFile(file.shown, "the file is empty"))
            continue
        target, type_ = meaning
        patches += [TargetedPatch(target, patch) for patch in read_patch_file(file.shown, data, type_)]
    return PatchSet(tuple(patches), tuple(ignored))


def read_patch_file(shown: str, data: bytes, type_: PatchType) -> list[Patch]:
    """Return the patches of one file, from its first document to its last."""
    documents = split_documents(data, source=shown)
    return [
        Patch.from_yaml(SourceText(shown, document.text, document.line, number), type_)
        for number, document in enumerate(documents, start=1)
    ]


def parse_file_name(
    file: PatchFile, schema: Schema, *, with_args: bool = False
) -> tuple[Target, PatchType] | IgnoredFile:
    """Return what a file name means; an unknown type after `+` is an error for the whole directory."""
    if not re.search(r".+\.(json|yaml)\Z", file.name):
        return IgnoredFile(file.shown, "the file extension must be one of [json yaml]")
    targets = {target.name: target for target in targets_of(schema.version)}
    types = "json|merge|strategic|args" if with_args else "json|merge|strategic"
    found = re.match(rf"({'|'.join(targets)})([^.+\n]*)?(\+)?({types})?", file.name)
    if found is None:
        return IgnoredFile(file.shown, f"unknown target, must be one of [{' '.join(targets)}]")
    name, _, plus, type_name = found.groups()
    if plus and not type_name:
        given = file.name[found.end() :].partition(".")[0]
        raise BadDocument(
            f"{file.shown}: {given!r} after '+' is not a patch type",
            hint="flag patches need a tree: put an empty file garboard.yaml at the top of the directory"
            if given == "args"
            else f"a patch type is one of {types.replace('|', ', ')}, in lower case",
            error_class="bad-file-name",
        )
    return targets[name], PatchType(type_name or PatchType.STRATEGIC)
