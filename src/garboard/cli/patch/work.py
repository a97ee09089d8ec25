"""What `apply`, `diff` and `explain` have in common: from options to patched documents."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import click

from garboard.cli.patch.inputs import (
    Original,
    compat_option,
    node_options,
    only,
    original_option,
    read_many,
    read_one,
    read_patches,
    read_single_patch,
    read_text,
    shape_for,
    version_option,
)
from garboard.errors import BadUsage
from garboard.host import read_file
from garboard.model import KubernetesVersion
from garboard.patches import (
    Applied,
    Entry,
    IgnoredFile,
    NodeFacts,
    PatchChecks,
    PatchType,
    Severity,
    Source,
    as_decoded,
    find_target,
    patch_object,
    patch_target,
    read_patch_set,
    refuse_errors,
    refuse_other_target,
    unmatched,
    unused_entry,
)
from garboard.schema import Schema, load_schema

Command = TypeVar("Command", bound=Callable[..., object])


@dataclass(frozen=True)
class Request:
    """The options of a patching command, as given."""

    originals: tuple[str, ...]
    version: KubernetesVersion
    compat: bool
    patch_file: str | None
    type_: str
    kind: str
    target: str | None
    directory: str | None
    patch_set: str | None
    node: str | None
    role: str | None

    @property
    def facts(self) -> NodeFacts:
        return NodeFacts(self.node, self.role)


def patching_options(command: Command) -> Command:
    """Add the options that say what is patched with what."""
    options = (
        original_option,
        click.option("--patch-file", metavar="FILE", help="One patch, as for `kubectl patch` (- for stdin)."),
        click.option(
            "--type",
            "type_",
            type=click.Choice(["strategic", "merge", "json"], case_sensitive=False),
            default="strategic",
            show_default=True,
            help="The type of --patch-file.",
        ),
        click.option("--kind", default="", metavar="KIND", help="The type of a document that does not name it."),
        click.option("--target", metavar="TARGET", help="What the document is to kubeadm, such as kube-apiserver."),
        click.option("--patches", "directory", metavar="DIR", help="A kubeadm patch directory, or a tree of layers."),
        click.option("--patch-set", metavar="FILE", help="A file that lists patches by the objects they select."),
        node_options,
        compat_option,
        version_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


@dataclass(frozen=True)
class Patched:
    original: Original
    applied: Applied


@dataclass(frozen=True)
class Outcome:
    documents: tuple[Patched, ...]
    ignored: tuple[IgnoredFile, ...] = ()
    is_conversion: bool = False  # nothing was patched: the document only changes its form


def patch_documents(request: Request, *, is_watched: bool | None = None) -> Outcome:
    """Patch what the request names; in strict mode findings are refused before anything is handed out."""
    wanted = not request.compat if is_watched is None else is_watched
    schema = load_schema(request.version)
    ways = {
        "--patch-file": (request.patch_file, _with_one_patch),
        "--patches": (request.directory, _with_directory),
        "--patch-set": (request.patch_set, _with_patch_set),
    }
    given = [name for name, (value, _) in ways.items() if value is not None]
    if len(given) != 1:
        raise BadUsage(f"one of {', '.join(ways)} is needed, and only one", hint="see --help for the three forms")
    outcome = ways[given[0]][1](request, schema, wanted)
    if not request.compat:
        refuse_errors([finding for each in outcome.documents for finding in each.applied.findings])
    return outcome


def _with_one_patch(request: Request, schema: Schema, is_watched: bool) -> Outcome:
    assert request.patch_file is not None
    type_ = PatchType(request.type_.lower())
    if request.patch_file == "-" and "-" in request.originals:
        raise BadUsage("stdin cannot be both the manifest and the patch", hint="name a file for one of them")
    source = Source(request.patch_file, read_text(request.patch_file))
    if type_ is PatchType.MERGE and source.text.strip() in ("", "{}"):
        return _converted(request)
    patch = read_single_patch(source, type_, is_first_enough=request.compat)
    documents = []
    checks = PatchChecks(schema)
    for original in read_many(request.originals):
        is_strategic = type_ is PatchType.STRATEGIC
        shape = shape_for(schema, request.kind, original.value, is_required=is_strategic, is_compat=request.compat)
        applied = patch_object(original.value, [patch], shape, is_watched=is_watched, checks=checks)
        documents.append(Patched(original, applied.then(as_decoded)))
    return Outcome(tuple(documents))


def _converted(request: Request) -> Outcome:
    """An empty merge patch only converts between YAML and JSON, whatever the document is."""
    original = read_one(only(request.originals), as_yaml=True, is_first_enough=request.compat)
    return Outcome((Patched(original, Applied(original.value, ())),), is_conversion=True)


def _with_directory(request: Request, schema: Schema, is_watched: bool) -> Outcome:
    if request.target is None or request.directory is None:
        raise BadUsage(
            "--patches needs --target, to know which of its patches are meant", hint="add --target kube-apiserver"
        )
    target = find_target(request.target, request.version)
    original = read_one(only(request.originals), as_yaml=True)
    refuse_other_target(original.value, target, request.version, source=original.source.name)
    patch_set = read_patches(request.directory, schema, request.facts)
    applied = patch_target(original.value, patch_set.for_target(target), target, schema, is_watched=is_watched)
    return Outcome((Patched(original, applied),), patch_set.ignored)


def _with_patch_set(request: Request, schema: Schema, is_watched: bool) -> Outcome:
    assert request.patch_set is not None
    folder = Path(request.patch_set).parent
    patches = read_patch_set(
        read_file(request.patch_set), source=request.patch_set, load=lambda name: read_file(folder / name)
    )
    documents: list[Patched] = []
    matched: list[Entry] = []
    checks = PatchChecks(schema)
    for original in read_many(request.originals):
        entries = patches.for_object(original.value)
        matched += entries
        mine = [patch for entry in entries for patch in entry.patches]
        shape = shape_for(schema, request.kind, original.value)
        applied = patch_object(original.value, mine, shape, is_watched=is_watched, checks=checks)
        documents.append(Patched(original, applied))
    if not request.compat:
        refuse_errors([unused_entry(request.patch_set, entry) for entry in unmatched(patches, matched)])
    return Outcome(tuple(documents))


def report(outcome: Outcome, request: Request) -> None:
    """Tell on stderr what a patch directory came to: the patches in the order applied, and the files ignored.

    Findings that do not stop the run are told as warnings.
    """
    for ignored in outcome.ignored:
        sys.stderr.write(f"[patches] ignored {ignored.shown}: {ignored.reason}\n")
    if request.directory is not None:
        for patch in (patch for each in outcome.documents for patch in each.applied.patches):
            sys.stderr.write(f"[patches] applied {patch.label} ({patch.type})\n")
    for each in outcome.documents:
        for finding in each.applied.findings:
            if finding.severity is Severity.WARNING or request.compat:
                sys.stderr.write(f"warning[{finding.error_class}]: {finding.where}: {finding.message}\n")
