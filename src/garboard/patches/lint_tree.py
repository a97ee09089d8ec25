"""Linting a whole patch directory: every target and every layer, broken and ignored files included."""

import re
from collections.abc import Sequence

from garboard.documents import Json, Position
from garboard.errors import BadDocument
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.patches.check import PatchChecks
from garboard.patches.directory import IgnoredFile, PatchFile, PatchSet, read_directory
from garboard.patches.findings import Finding, Severity, in_reading_order
from garboard.patches.lint import Subject, lint_patches
from garboard.patches.targets import targets_of
from garboard.patches.tree import MARKER, NodeFacts, read_patch_tree
from garboard.schema import Schema, suggest

TOP = Position(1, 1)


def lint_tree(
    files: Sequence[PatchFile], checks: PatchChecks, node: NodeFacts, originals: Sequence[Json] = ()
) -> list[Finding]:
    """Return every finding about a patch directory; of a tree of layers, all unless `node` picks some."""
    schema = checks.schema
    sound, findings = _readable(files, schema)
    everyone = _all_nodes(sound)
    for each in [node] if node.layers() != ("common",) else everyone:
        findings += _lint_set(read_patch_tree(sound, schema, each), checks, originals)
    findings += _ignored([read_patch_tree(sound, schema, each) for each in everyone], schema)
    return in_reading_order(findings)


def _readable(files: Sequence[PatchFile], schema: Schema) -> tuple[list[PatchFile], list[Finding]]:
    """Split off the files that cannot be read, each with a finding: one of them would fail the whole directory."""
    has_marker = any(file.path == MARKER for file in files)
    sound, findings = [], []
    for file in files:
        try:
            read_directory([file], schema, with_args=has_marker)
            sound.append(file)
        except BadDocument as error:
            findings.append(unreadable(file.shown, error))
    return sound, findings


def unreadable(shown: str, error: BadDocument) -> Finding:
    """Return the finding about a file that cannot be read; its place is in the message, where readers put it."""
    found = re.match(rf"{re.escape(shown)}:(\d+):(\d+): ", error.message)
    position = Position(int(found[1]), int(found[2])) if found else TOP
    message = error.message[found.end() :] if found else error.message.removeprefix(f"{shown}: ")
    return Finding(shown, position, error.error_class, message, error.hint)


def _all_nodes(files: Sequence[PatchFile]) -> list[NodeFacts]:
    """Return one node for each layer of the tree, and one that has none but the common layers."""
    if not any(file.path == MARKER for file in files):
        return [NodeFacts()]
    layers = sorted({tuple(file.path.split("/")[:2]) for file in files if file.path.count("/") > 1})
    roles = [NodeFacts(role=name) for folder, name in layers if folder == "role"]
    nodes = [NodeFacts(name=name) for folder, name in layers if folder == "node"]
    return [NodeFacts(), *roles, *nodes]


def _lint_set(patches: PatchSet, checks: PatchChecks, originals: Sequence[Json]) -> list[Finding]:
    findings: list[Finding] = []
    for target in targets_of(checks.schema.version):
        mine = patches.for_target(target)
        if mine:
            findings += lint_patches(mine, Subject.of_target(target, checks.schema, originals), checks)
    return findings


def _ignored(sets: Sequence[PatchSet], schema: Schema) -> list[Finding]:
    """Return findings about files that no node would read."""
    common = set.intersection(*({file.shown for file in each.ignored} for each in sets))
    return [_ignored_finding(file, schema) for file in sets[0].ignored if file.shown in common and _is_meant(file)]


def _is_meant(file: IgnoredFile) -> bool:
    """Tell whether a file looks like a patch; a README beside the patches is none of our business."""
    return file.shown.lower().endswith((".yaml", ".yml", ".json"))


def _ignored_finding(file: IgnoredFile, schema: Schema) -> Finding:
    name = re.split(r"[.+]", file.shown.rpartition("/")[2])[0]
    if _is_target(name, schema.version):
        is_lost = not file.shown.endswith((".yaml", ".json"))
        severity = Severity.ERROR if is_lost else Severity.WARNING
        hint = "rename it to end in .yaml or .json" if is_lost else None
        return Finding(file.shown, TOP, "ignored-file", f"the file is ignored: {file.reason}", hint, severity)
    elsewhere = next((version for version in SUPPORTED_VERSIONS if _is_target(name, version)), None)
    near = suggest(name, [target.name for target in targets_of(schema.version)])
    if elsewhere is None and near is None:
        return Finding(file.shown, TOP, "ignored-file", f"the file is ignored: {file.reason}", None, Severity.WARNING)
    hint = f"did you mean {near!r}?" if elsewhere is None else f"Kubernetes {elsewhere.as_minor} has it"
    message = f"Kubernetes {schema.version.as_minor} has no patch target {name!r}: the file is ignored"
    return Finding(file.shown, TOP, "unknown-target", message, hint)


def _is_target(name: str, version: KubernetesVersion) -> bool:
    return name.startswith(tuple(target.name for target in targets_of(version)))
