"""Linting a whole patch directory: every layer of a tree as its nodes have it, and files that never apply."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from garboard.documents import Position
from garboard.errors import BadDocument
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.patches.check import PatchChecks
from garboard.patches.directory import IgnoredFile, PatchFile, PatchSet, read_directory
from garboard.patches.findings import Finding, Severity, in_reading_order
from garboard.patches.lint import AssumedDocuments, Originals, lint_patches, of_role
from garboard.patches.targets import PatchSubject, targets_of
from garboard.patches.tree import MARKER, ROLES, NodeFacts, read_patch_tree, refuse_dead_layer
from garboard.schema import Schema, suggest

_TOP = Position(1, 1)
_OF_EVERY_ROLE = "KubeletConfiguration"  # the kind that workers have as well


def lint_tree(
    files: Sequence[PatchFile],
    checks: PatchChecks,
    node: NodeFacts,
    originals: Originals = (),
    others: AssumedDocuments | None = None,
) -> list[Finding]:
    """Return every finding about a patch directory; of a tree, all layers are tried unless `node` picks some.

    With `others`, `node` is the one that `originals` are of, and all other nodes are tried on these.
    """
    sound, findings = _readable(files, checks.schema)
    tree = _Tree(sound, checks)
    names = [node.name] if node.name or node.role else tree.names()
    if others is not None:
        findings += tree.lint(node, originals)
        names = [name for name in tree.names() if name is None or name != node.name]
        node, originals = NodeFacts(), others
    for name in names:
        findings += tree.lint_node(name, [node.role] if node.role else tree.roles(name), originals)
    everyone = [NodeFacts(name, role) for name in tree.names() for role in tree.roles(name)]
    findings += _ignored([read_patch_tree(sound, checks.schema, each) for each in everyone], checks.schema)
    return in_reading_order(findings)


@dataclass(frozen=True)
class _Tree:
    """The readable files of a directory, tried as one node after the other has them."""

    files: Sequence[PatchFile]
    checks: PatchChecks
    known: dict[tuple[object, ...], list[Finding]] = field(default_factory=dict)  # nodes mostly have the same patches

    @property
    def is_layered(self) -> bool:
        return any(file.path == MARKER for file in self.files)

    def names(self) -> list[str | None]:
        """Return the nodes that have layers of their own, and None for all others."""
        layers = {tuple(file.path.split("/")[:2]) for file in self.files if file.path.count("/") > 1}
        return [None, *sorted(name for folder, name in layers if folder == "node")] if self.is_layered else [None]

    def roles(self, name: str | None) -> list[str | None]:
        """Return the roles that a node may have: one with patches for the control plane is part of it."""
        if not self.is_layered:
            return [None]
        own = [file for file in self.files if name is not None and file.path.startswith(f"node/{name}/")]
        kinds = {each.target.kind for each in read_directory(own, self.checks.schema, with_args=True).patches}
        return list(ROLES) if kinds <= {_OF_EVERY_ROLE} else [ROLES[0]]

    def lint_node(self, name: str | None, roles: Sequence[str | None], originals: Originals) -> list[Finding]:
        """Return the findings about a node; where its role is not known, those of one role only are warnings."""
        found = {role: self.lint(NodeFacts(name, role), originals) for role in roles}
        if name is None:  # there are nodes of every role
            return [each for findings in found.values() for each in findings]
        shared = set.intersection(*(set(findings) for findings in found.values()))
        rest = [(role, each) for role, findings in found.items() for each in findings if each not in shared]
        told = {each for role in roles for each in self.lint(NodeFacts(None, role), originals)}
        return [*shared, *(_as_doubtful(each, name, role) for role, each in rest if each not in told)]

    def lint(self, node: NodeFacts, originals: Originals) -> list[Finding]:
        """Return the findings about what one node has."""
        patches, mine = read_patch_tree(self.files, self.checks.schema, node), of_role(originals, node.role)
        findings: list[Finding] = []
        for target in targets_of(self.checks.schema.version):
            chosen = patches.for_target(target)
            is_there = target.kind == _OF_EVERY_ROLE or node.role != ROLES[1]
            key = (id(originals), target.name, is_there, *(patch.label for patch in chosen))
            if chosen and key not in self.known:
                subject = PatchSubject.of_target(target, self.checks.schema)
                self.known[key] = lint_patches(chosen, subject, self.checks, mine)
            findings += self.known.get(key, ())
        return findings


def _as_doubtful(finding: Finding, name: str, role: str | None) -> Finding:
    hint = f"it is so if {name} has the role {role}; --node {name} with --role tells which one it has"
    severity = Severity.WARNING if finding.severity is Severity.ERROR else finding.severity
    return replace(finding, severity=severity, hint=f"{finding.hint}; {hint}" if finding.hint else hint)


def _readable(files: Sequence[PatchFile], schema: Schema) -> tuple[list[PatchFile], list[Finding]]:
    """Split off the files that cannot be read, each with a finding: one of them would fail the whole directory."""
    has_marker = any(file.path == MARKER for file in files)
    sound, findings = [], []
    for file in files:
        try:
            if has_marker:
                refuse_dead_layer(file)
            read_directory([file], schema, with_args=has_marker)
            sound.append(file)
        except BadDocument as error:
            findings.append(unreadable(file.shown, error))
    return sound, findings


def unreadable(shown: str, error: BadDocument) -> Finding:
    """Return the finding about a file that cannot be read; its place is in the message, where readers put it."""
    found = re.match(rf"{re.escape(shown)}:(\d+):(\d+): ", error.message)
    position = Position(int(found[1]), int(found[2])) if found else _TOP
    message = error.message[found.end() :] if found else error.message.removeprefix(f"{shown}: ")
    return Finding(shown, position, error.error_class, message, error.hint)


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
        return Finding(file.shown, _TOP, "ignored-file", f"the file is ignored: {file.reason}", hint, severity)
    elsewhere = next((version for version in SUPPORTED_VERSIONS if _is_target(name, version)), None)
    near = suggest(name, [target.name for target in targets_of(schema.version)])
    if elsewhere is None and near is None:
        return Finding(file.shown, _TOP, "ignored-file", f"the file is ignored: {file.reason}", None, Severity.WARNING)
    hint = f"did you mean {near!r}?" if elsewhere is None else f"Kubernetes {elsewhere.as_minor} has it"
    message = f"Kubernetes {schema.version.as_minor} has no patch target {name!r}: the file is ignored"
    return Finding(file.shown, _TOP, "unknown-target", message, hint)


def _is_target(name: str, version: KubernetesVersion) -> bool:
    return name.startswith(tuple(target.name for target in targets_of(version)))
