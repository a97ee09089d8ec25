"""What `garboard patch lint` reads: directories, single files and patch sets, each to its findings."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

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


def lint_all(request: LintRequest, version: KubernetesVersion) -> list[Finding]:
    """Return the findings about everything that the request names, against one version."""
    checks = PatchChecks(load_schema(version))
    originals = [original.value for original in read_many(request.originals)]
    findings: list[Finding] = []
    for path in request.paths:
        if path != "-" and Path(path).is_dir():
            findings += lint_tree(patch_files(path), checks, NodeFacts(request.node, request.role), originals)
        else:
            findings += _lint_file(path, request, checks, originals)
    if request.patch_set is not None:
        folder = Path(request.patch_set).parent
        patches = read_patch_set(
            read_file(request.patch_set), source=request.patch_set, load=lambda name: read_file(folder / name)
        )
        findings += lint_objects(patches, checks, source=request.patch_set, originals=originals)
    return in_reading_order(findings)


def lint_towards(request: LintRequest, version: KubernetesVersion, to: KubernetesVersion) -> list[Finding]:
    """Return the findings against `to`, telling which of them are new there."""
    known = {(each.file, each.position, each.error_class) for each in lint_all(request, version)}
    return [
        each if (each.file, each.position, each.error_class) in known else _as_new(each, version)
        for each in lint_all(request, to)
    ]


def _as_new(finding: Finding, version: KubernetesVersion) -> Finding:
    return replace(finding, message=f"{finding.message} (Kubernetes {version.as_minor} accepts it)")


def _lint_file(path: str, request: LintRequest, checks: PatchChecks, originals: Sequence[Json]) -> list[Finding]:
    file = PatchFile(Path(path).name, path, partial(read_file, path))
    subject, type_ = _subject(file, request, checks, originals)
    try:
        patches = read_patch_file(path, file.load(), type_)
    except BadDocument as error:
        return [unreadable(path, error)]
    return lint_patches(patches, subject, checks)


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
            hint="add --target kube-apiserver, or --kind Deployment",
        )
    target, named_type = meaning
    return Subject.of_target(target, schema, originals), PatchType(request.type_ or named_type)
