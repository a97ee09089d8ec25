"""What `garboard patch lint` reads: directories, single files and patch sets, each to its findings."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from garboard.cli.patch.inputs import patch_files, read_many
from garboard.documents import Json
from garboard.errors import BadDocument, BadUsage
from garboard.host import read_file
from garboard.model import KubernetesVersion
from garboard.patches import (
    Finding,
    IgnoredFile,
    NodeFacts,
    PatchChecks,
    PatchFile,
    PatchType,
    Subject,
    find_target,
    in_reading_order,
    lint_objects,
    lint_patches,
    lint_tree,
    parse_file_name,
    read_patch_file,
    read_patch_set,
    unreadable,
)
from garboard.schema import load_schema


@dataclass(frozen=True)
class LintRequest:
    """The options of `lint`, as given."""

    paths: tuple[str, ...]
    originals: tuple[str, ...]
    target: str | None
    kind: str
    type_: str | None
    patch_set: str | None
    node: str | None
    role: str | None

    def __post_init__(self) -> None:
        if not self.paths and self.patch_set is None:
            raise BadUsage("nothing to lint", hint="name a patch directory, patch files, or a --patch-set")
        if self.target and self.kind:
            raise BadUsage("--target and --kind exclude each other", hint="a target has its kind already")


@dataclass(frozen=True)
class LintInputs:
    """What the request names, read once: stdin has nothing to give a second time."""

    request: LintRequest
    directories: tuple[str, ...]
    contents: dict[str, bytes]
    originals: tuple[Json, ...]

    @classmethod
    def read(cls, request: LintRequest) -> Self:
        directories = tuple(path for path in request.paths if path != "-" and Path(path).is_dir())
        contents = {path: read_file(path) for path in request.paths if path not in directories}
        return cls(request, directories, contents, tuple(each.value for each in read_many(request.originals)))

    def lint(self, version: KubernetesVersion) -> list[Finding]:
        """Return the findings about everything, against one version."""
        checks = PatchChecks(load_schema(version))
        node = NodeFacts(self.request.node, self.request.role)
        findings: list[Finding] = []
        for path in self.directories:
            findings += lint_tree(patch_files(path), checks, node, self.originals)
        for path in self.contents:
            findings += self._lint_file(path, checks)
        if self.request.patch_set is not None:
            findings += self._lint_patch_set(self.request.patch_set, checks)
        return in_reading_order(findings)

    def lint_towards(self, version: KubernetesVersion, to: KubernetesVersion) -> list[Finding]:
        """Return the findings against `to`, telling which of them are new there."""
        known = {(each.file, each.position, each.error_class) for each in self.lint(version)}
        return [
            each if (each.file, each.position, each.error_class) in known else _as_new(each, version)
            for each in self.lint(to)
        ]

    def _lint_file(self, path: str, checks: PatchChecks) -> list[Finding]:
        file = PatchFile(Path(path).name, path, lambda: self.contents[path])
        subject, type_ = _subject(file, self.request, checks, self.originals)
        try:
            patches = read_patch_file(path, file.load(), type_)
        except BadDocument as error:
            return [unreadable(path, error)]
        return lint_patches(patches, subject, checks)

    def _lint_patch_set(self, path: str, checks: PatchChecks) -> list[Finding]:
        folder = Path(path).parent
        patches = read_patch_set(read_file(path), source=path, load=lambda name: read_file(folder / name))
        return lint_objects(patches, checks, source=path, originals=self.originals)


def _as_new(finding: Finding, version: KubernetesVersion) -> Finding:
    return replace(finding, message=f"{finding.message} (Kubernetes {version.as_minor} accepts it)")


def _subject(
    file: PatchFile, request: LintRequest, checks: PatchChecks, originals: Sequence[Json]
) -> tuple[Subject, PatchType]:
    """Return what a single patch file is for, and its type: as told, else as its name says."""
    schema = checks.schema
    suffix = re.search(r"\+(json|merge|strategic|args)", file.name)
    type_ = PatchType(request.type_ or (suffix[1] if suffix else PatchType.STRATEGIC))
    if request.target:
        return Subject.of_target(find_target(request.target, schema.version), schema, originals), type_
    if request.kind:
        kind = schema.find_kind(request.kind)
        mine = tuple(each for each in originals if isinstance(each, dict) and each.get("kind") == kind.name)
        return Subject(kind.type, None, mine), type_
    meaning = parse_file_name(file, schema, with_args=True)
    if isinstance(meaning, IgnoredFile):
        raise BadUsage(
            f"{file.shown}: the name does not tell what the patch is for",
            hint="add --target kube-apiserver or --kind Deployment; a list of patches by object is a --patch-set",
        )
    target, named_type = meaning
    return Subject.of_target(target, schema, originals), PatchType(request.type_ or named_type)
