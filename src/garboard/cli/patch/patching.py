"""What `apply`, `diff` and `explain` have in common: from options to patched documents."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from garboard.cli.completing import complete_kinds, complete_targets
from garboard.cli.patch.inputs import (
    Original,
    accept_option,
    compat_option,
    node_options,
    only,
    original_option,
    read_manifests,
    read_many,
    read_one,
    read_patches,
    read_single_patch,
    read_text,
    schema_version_option,
    shape_for,
)
from garboard.errors import BadDocument, BadUsage
from garboard.host import read_file
from garboard.lazy import lazy_module
from garboard.model import KubernetesVersion
from garboard.patches import (
    ACCEPT,
    Applied,
    IgnoredFile,
    NodeFacts,
    Patch,
    PatchChecks,
    PatchSetEntry,
    PatchSubject,
    PatchType,
    Severity,
    SourceText,
    Target,
    apply_patches,
    as_decoded,
    check_codes,
    copy_of,
    find_target,
    is_already_patched,
    read_patch_set,
    refuse_errors,
    refuse_other_target,
    target_of,
    unmatched,
    unused_entry,
    with_exceptions,
)
from garboard.schema import Schema, StructType, load_schema

if TYPE_CHECKING:
    from garboard.cli.patch import rendered as configurations
    from garboard.phases.rendering import RenderedTarget
else:  # to render takes more modules than to patch
    configurations = lazy_module("garboard.cli.patch.rendered")

Command = TypeVar("Command", bound=Callable[..., object])


@dataclass(frozen=True)
class PatchRequest:
    """The options of a patching command, as given."""

    originals: tuple[str, ...]
    version: KubernetesVersion
    compat: bool
    config: str | None
    patch: str | None
    patch_file: str | None
    type_: str
    kind: str
    target: str | None
    directory: str | None
    patch_set: str | None
    node: str | None
    role: str | None
    accepted: tuple[str, ...] = ()
    is_live: bool = False

    def __post_init__(self) -> None:
        check_codes(self.accepted, ACCEPT, "--accept")
        if self.config and self.originals:
            raise BadUsage("-f and --config exclude each other", hint="--config renders what -f would name")
        if not self.config and not self.originals:
            raise BadUsage("nothing to patch", hint="name manifests with -f, or render them with --config kubeadm.yaml")
        if self.is_live and not self.config:
            raise BadUsage("--live needs --config", hint="name the configuration that this node was made with")

    @property
    def facts(self) -> NodeFacts:
        return NodeFacts(self.node, self.role)


def patching_options(command: Command) -> Command:
    """Add the options that say what is patched with what."""
    options = (
        original_option,
        click.option("--config", metavar="FILE", help="Render what is patched from this kubeadm configuration."),
        click.option("-p", "--patch", metavar="TEXT", help="One patch, as for `kubectl patch`."),
        click.option("--patch-file", metavar="FILE", help="One patch in a file (- for stdin)."),
        click.option(
            "--type",
            "type_",
            type=click.Choice(["strategic", "merge", "json"], case_sensitive=False),
            default="strategic",
            show_default=True,
            help="The type of -p or --patch-file.",
        ),
        click.option(
            "--kind",
            default="",
            metavar="KIND",
            shell_complete=complete_kinds,
            help="The type of a document that does not name it.",
        ),
        click.option(
            "--target",
            metavar="TARGET",
            shell_complete=complete_targets,
            help="What the document is to kubeadm, such as kube-apiserver; found by itself where it can be.",
        ),
        click.option("--patches", "directory", metavar="DIR", help="A kubeadm patch directory, or a tree of layers."),
        click.option("--patch-set", metavar="FILE", help="A file that lists patches by the objects they select."),
        node_options,
        accept_option,
        compat_option,
        schema_version_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


@dataclass(frozen=True)
class PatchedDocument:
    original: Original
    applied: Applied
    rendered: "RenderedTarget | None" = None  # None: it was read

    def accepting(self, codes: Sequence[str]) -> "PatchedDocument":
        """Return it with the dangers of these codes as notes."""
        findings = tuple(with_exceptions(self.applied.findings, accepted=codes))
        return replace(self, applied=replace(self.applied, findings=findings))

    @property
    def users_patches(self) -> tuple[Patch, ...]:
        """The patches that were applied, without those of the node itself."""
        own = self.rendered.node_patches if self.rendered else ()
        return tuple(patch for patch in self.applied.patches if patch not in own)


@dataclass(frozen=True)
class PatchedDocuments:
    documents: tuple[PatchedDocument, ...]
    ignored: tuple[IgnoredFile, ...] = ()
    is_conversion: bool = False  # nothing was patched: the document only changes its form


def patch_documents(request: PatchRequest, *, is_traced: bool | None = None) -> PatchedDocuments:
    """Patch what the request names; in strict mode errors are refused before anything is returned."""
    wanted = not request.compat if is_traced is None else is_traced
    schema = load_schema(request.version)
    ways = {
        "-p": (request.patch, _with_one_patch),
        "--patch-file": (request.patch_file, _with_one_patch),
        "--patches": (request.directory, _with_directory),
        "--patch-set": (request.patch_set, _with_patch_set),
    }
    given = [name for name, (value, _) in ways.items() if value is not None]
    if request.config and given in ([], ["--patches"]):
        outcome = _with_configuration(request, wanted)
    elif len(given) != 1 or request.config:
        hint = "--config goes with --patches, or alone" if request.config else "see --help for the forms"
        raise BadUsage(f"one of {', '.join(ways)} is needed, and only one", hint=hint)
    else:
        outcome = ways[given[0]][1](request, schema, wanted)
    if request.accepted:
        accepting = tuple(each.accepting(request.accepted) for each in outcome.documents)
        outcome = replace(outcome, documents=accepting)
    if not request.compat:
        refuse_errors([finding for each in outcome.documents for finding in each.applied.findings])
    return outcome


def _with_configuration(request: PatchRequest, is_traced: bool) -> PatchedDocuments:
    """Patch everything that is rendered for a node, or the target that is asked for."""
    assert request.config is not None
    version = configurations.configured_version(request.version)
    node = configurations.configured_node(request.config, version, request.node, request.role, is_here=request.is_live)
    schema = node.rendering.schema
    patch_set, checks = node.patches(request.directory), PatchChecks(schema)
    if request.target:
        rendered = [node.rendering.one(find_target(request.target, schema.version))]
    else:
        rendered = [*node.rendering.everything()]
    documents = []
    for each in rendered:
        original, mine = node.original(each), patch_set.for_target(each.target)
        applied = apply_patches(copy_of(original.value), mine, each.subject(schema), is_traced=is_traced, checks=checks)
        documents.append(PatchedDocument(original, applied, each))
    return PatchedDocuments(tuple(documents), patch_set.ignored)


def _with_one_patch(request: PatchRequest, schema: Schema, is_traced: bool) -> PatchedDocuments:
    type_ = PatchType(request.type_.lower())
    if request.patch_file == "-" and "-" in request.originals:
        raise BadUsage("stdin cannot be both the manifest and the patch", hint="name a file for one of them")
    source = _single_source(request)
    if type_ is PatchType.MERGE and source.text.strip() == "{}":  # kubectl refuses a file without content
        return _converted(request)
    patch = read_single_patch(source, type_, is_first_enough=request.compat)
    documents = []
    checks = PatchChecks(schema)
    for original in read_many(request.originals):
        is_strategic = type_ is PatchType.STRATEGIC
        shape = shape_for(schema, request.kind, original.value, is_required=is_strategic, is_compat=request.compat)
        subject = _subject(original, shape, request, schema)
        applied = apply_patches(original.value, [patch], subject, is_traced=is_traced, is_decoded=False, checks=checks)
        documents.append(PatchedDocument(original, applied.then(as_decoded)))
    return PatchedDocuments(tuple(documents))


def _subject(original: Original, shape: StructType | None, request: PatchRequest, schema: Schema) -> PatchSubject:
    """Return what an object is; if it is a target, its result is judged, though kubectl would not know it."""
    if request.target is not None:
        target: Target | None = _target_of(original, request)
    else:
        target = None if request.kind else target_of(original.value, request.version)
    return PatchSubject(shape, target, schema) if target is not None else PatchSubject(shape)


def _single_source(request: PatchRequest) -> SourceText:
    if request.patch_file is not None:
        return SourceText(request.patch_file, read_text(request.patch_file))
    assert request.patch is not None
    if not request.patch.strip():
        raise BadUsage("-p holds no patch", hint="write it as -p 'spec: {priority: 7}'")  # as kubectl does
    return SourceText("-p", request.patch)


def _converted(request: PatchRequest) -> PatchedDocuments:
    """Return the document as it is: an empty merge patch only converts between YAML and JSON."""
    original = read_one(only(request.originals), as_yaml=True, is_first_enough=request.compat)
    return PatchedDocuments((PatchedDocument(original, Applied(original.value, ())),), is_conversion=True)


def _with_directory(request: PatchRequest, schema: Schema, is_traced: bool) -> PatchedDocuments:
    """Patch every manifest with the patches of its target, which it names itself; with --target there is only one."""
    assert request.directory is not None
    patch_set, checks = read_patches(request.directory, schema, request.facts), PatchChecks(schema)
    documents = []
    is_one = request.target is not None
    originals = [read_one(only(request.originals), as_yaml=True)] if is_one else read_manifests(request.originals)
    for original in originals:
        target = _target_of(original, request)
        mine, subject = patch_set.for_target(target), PatchSubject.of_document(original.value, target, schema)
        applied = apply_patches(copy_of(original.value), mine, subject, is_traced=is_traced, checks=checks)
        if not request.compat and is_already_patched(original.value, applied, subject):
            raise _already_patched(original, target)
        documents.append(PatchedDocument(original, applied))
    return PatchedDocuments(tuple(documents), patch_set.ignored)


def _target_of(original: Original, request: PatchRequest) -> Target:
    if request.target is not None:
        target = find_target(request.target, request.version)
        refuse_other_target(original.value, target, request.version, source=original.source.name)
        return target
    found = target_of(original.value, request.version)
    if found is None:
        raise BadDocument(
            f"{original.source.name} is nothing that kubeadm patches, by its kind and name",
            hint="add --target kube-apiserver; for other objects, list the patches in a --patch-set",
            error_class="wrong-target",
        )
    return found


def _already_patched(original: Original, target: Target) -> BadDocument:
    return BadDocument(
        f"{original.source.name} is already patched: none of the patches for {target.name} changes it",
        hint="compare with what is rendered: --config kubeadm.yaml instead of -f, on the node also with --live; if it"
        " is not patched, look for a misspelt value",
        error_class="no-change",
    )


def _with_patch_set(request: PatchRequest, schema: Schema, is_traced: bool) -> PatchedDocuments:
    assert request.patch_set is not None
    folder = Path(request.patch_set).parent
    patches = read_patch_set(
        read_file(request.patch_set), source=request.patch_set, load=lambda name: read_file(folder / name)
    )
    documents: list[PatchedDocument] = []
    matched: list[PatchSetEntry] = []
    checks = PatchChecks(schema)
    for original in read_many(request.originals):
        entries = patches.for_object(original.value)
        matched += entries
        mine = [patch for entry in entries for patch in entry.patches]
        shape = shape_for(schema, request.kind, original.value)
        subject = _subject(original, shape, request, schema)
        applied = apply_patches(original.value, mine, subject, is_traced=is_traced, is_decoded=False, checks=checks)
        documents.append(PatchedDocument(original, applied))
    if not request.compat:
        refuse_errors([unused_entry(request.patch_set, entry) for entry in unmatched(patches, matched)])
    return PatchedDocuments(tuple(documents))


def report(outcome: PatchedDocuments, request: PatchRequest) -> None:
    """Report on stderr what was done with a patch directory: the patches in the order applied, and the files ignored.

    Findings that do not stop the run are reported as warnings, accepted dangers as notes.
    """
    for ignored in outcome.ignored:
        sys.stderr.write(f"[patches] ignored {ignored.shown}: {ignored.reason}\n")
    if request.directory is not None or request.config is not None:
        for patch in (patch for each in outcome.documents for patch in each.users_patches):
            sys.stderr.write(f"[patches] applied {patch.label} ({patch.type})\n")
    for each in outcome.documents:
        for finding in each.applied.findings:
            if finding.severity is not Severity.ERROR or request.compat:
                word = "note" if finding.severity is Severity.NOTE else "warning"
                sys.stderr.write(f"{word}[{finding.error_class}]: {finding.where}: {finding.message}\n")
