"""What `garboard patch lint` reads: directories, single files and patch sets, each to its findings."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from garboard.cli.patch.inputs import patch_files, read_many
from garboard.documents import Json
from garboard.errors import BadDocument, BadUsage
from garboard.host import is_folder, read_file
from garboard.lazy import lazy_module
from garboard.model import KubernetesVersion
from garboard.patches import (
    AssumedDocuments,
    Finding,
    IgnoredFile,
    NodeFacts,
    PatchChecks,
    PatchFile,
    PatchSubject,
    PatchType,
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
from garboard.schema import Schema, load_schema

if TYPE_CHECKING:
    from garboard.cli.patch import rendered as configurations
else:  # to render takes more modules than to lint
    configurations = lazy_module("garboard.cli.patch.rendered")


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
    config: str | None

    def __post_init__(self) -> None:
        if not self.paths and self.patch_set is None and self.config is None:
            raise BadUsage("nothing to lint", hint="name a patch directory, patch files, or a --patch-set")
        if self.config and self.originals:
            raise BadUsage("-f and --config exclude each other", hint="--config renders what -f would name")
        if self.target and self.kind:
            raise BadUsage("--target and --kind exclude each other", hint="a target has its kind already")


@dataclass(frozen=True)
class LintInputs:
    """What the request names, read once: stdin cannot be read a second time."""

    request: LintRequest
    directories: tuple[str, ...]
    contents: dict[str, bytes]
    originals: tuple[Json, ...]
    version: KubernetesVersion
    configured: NodeFacts | None = None  # the node of the configuration, if there is one
    notes: list[str] = field(default_factory=list)  # what is not judged

    @classmethod
    def read(cls, request: LintRequest, version: KubernetesVersion) -> Self:
        """Read everything; where a configuration is named, it decides about the version and what is tried."""
        paths, facts = request.paths, None
        originals = tuple(each.value for each in read_many(request.originals))
        if request.config is not None:
            resolved = configurations.configured_version(version)
            node = configurations.configured_node(request.config, resolved, request.node, request.role, is_here=False)
            originals = tuple(node.original(each).value for each in node.rendering.everything())
            version = node.rendering.schema.version
            paths, facts = paths or _named_directory(node, request), node.facts
        directories = tuple(path for path in paths if path != "-" and is_folder(path))
        contents = {path: read_file(path) for path in paths if path not in directories}
        return cls(request, directories, contents, originals, version, facts)

    def lint(self, version: KubernetesVersion) -> list[Finding]:
        """Return the findings about everything, against one version."""
        checks = PatchChecks(load_schema(version))
        node = self.configured or NodeFacts(self.request.node, self.request.role)
        is_picked = bool(self.request.node or self.request.role)
        # What one node of a configuration has stands for what its other nodes have.
        others = AssumedDocuments(self.originals) if self.configured and not is_picked else None
        findings: list[Finding] = []
        tried = self.originals or self._assumed(version)
        for path in self.directories:
            findings += lint_tree(patch_files(path), checks, node, tried, others)
        for path in self.contents:
            findings += self._lint_file(path, checks, tried)
        for each in (tried, others):
            if isinstance(each, AssumedDocuments):
                self.notes.extend(note for note in each.unjudged if note not in self.notes)
        if self.request.patch_set is not None:
            findings += self._lint_patch_set(self.request.patch_set, checks)
        return in_reading_order(findings)

    def _assumed(self, version: KubernetesVersion) -> AssumedDocuments | tuple[Json, ...]:
        """Return what kubeadm renders by default, for patches that are tried on nothing else."""
        return () if not self.is_default else self._rendered(version)

    @property
    def is_default(self) -> bool:
        """Whether the patches are tried on what kubeadm renders by default, because nothing else is named."""
        return not (self.originals or self.request.kind) and bool(self.directories or self.contents)

    def _rendered(self, version: KubernetesVersion) -> AssumedDocuments:
        return AssumedDocuments(configurations.default_documents(version)).for_role(self.request.role)

    def lint_towards(self, version: KubernetesVersion, to: KubernetesVersion) -> list[Finding]:
        """Return the findings against `to`, saying which of them are new there."""
        known = {(each.file, each.position, each.error_class) for each in self.lint(version)}
        return [
            each if (each.file, each.position, each.error_class) in known else _as_new(each, version)
            for each in self.lint(to)
        ]

    def _lint_file(self, path: str, checks: PatchChecks, tried: AssumedDocuments | tuple[Json, ...]) -> list[Finding]:
        file = PatchFile(Path(path).name, path, lambda: self.contents[path])
        subject, type_ = _subject(file, self.request, checks.schema)
        try:
            patches = read_patch_file(path, file.load(), type_)
        except BadDocument as error:
            return [unreadable(path, error)]
        is_assumed = isinstance(tried, AssumedDocuments)
        return lint_patches(patches, subject, checks, tried if is_assumed else self._originals_for_file(checks.schema))

    def _originals_for_file(self, schema: Schema) -> Sequence[Json]:
        """Return the manifests to try a single patch file on: only those of its kind, if that is given."""
        if not self.request.kind:
            return self.originals
        kind = schema.find_kind(self.request.kind).name
        return [each for each in self.originals if isinstance(each, dict) and each.get("kind") == kind]

    def _lint_patch_set(self, path: str, checks: PatchChecks) -> list[Finding]:
        folder = Path(path).parent
        patches = read_patch_set(read_file(path), source=path, load=lambda name: read_file(folder / name))
        return lint_objects(patches, checks, source=path, originals=self.originals)


def _named_directory(node: "configurations.ConfiguredNode", request: LintRequest) -> tuple[str, ...]:
    """Return the patch directory that a configuration names itself."""
    found = node.loaded.config.patches_directory
    if not found and request.patch_set is None:
        raise BadUsage(
            f"{node.file} names no patch directory", hint="name one, or set patches.directory in InitConfiguration"
        )
    return (found,) if found else ()


def _as_new(finding: Finding, version: KubernetesVersion) -> Finding:
    return replace(finding, message=f"{finding.message} (Kubernetes {version.as_minor} accepts it)")


def _subject(file: PatchFile, request: LintRequest, schema: Schema) -> tuple[PatchSubject, PatchType]:
    """Return what a single patch file is for, and its type: as the options say, else as its name says."""
    suffix = re.search(r"\+(json|merge|strategic|args)", file.name)
    type_ = PatchType(request.type_ or (suffix[1] if suffix else PatchType.STRATEGIC))
    if request.target:
        return PatchSubject.of_target(find_target(request.target, schema.version), schema), type_
    if request.kind:
        return PatchSubject(schema.find_kind(request.kind).type), type_
    meaning = parse_file_name(file, schema, with_args=True)
    if isinstance(meaning, IgnoredFile):
        raise BadUsage(
            f"{file.shown}: the name does not tell what the patch is for",
            hint="add --target kube-apiserver or --kind Deployment; a list of patches by object is a --patch-set",
        )
    target, named_type = meaning
    return PatchSubject.of_target(target, schema), PatchType(request.type_ or named_type)
