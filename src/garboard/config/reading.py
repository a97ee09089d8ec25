"""Which API versions a minor reads, and one document decoded into the current shape (that of v1beta4)."""

import json
from collections.abc import Iterable, Iterator
from typing import NoReturn

from garboard.config.component_configs import COMPONENT_KINDS
from garboard.config.decoding import Decoded, decode, path_text
from garboard.config.problems import ConfigNotes, InvalidConfiguration, PartialDocument
from garboard.config.sources import KUBEADM_GROUP, ConfigDocument, GroupVersionKind
from garboard.config.tunnel_document import TUNNEL_KIND
from garboard.config.v1beta3 import cluster_to_v1beta4, node_to_v1beta4
from garboard.documents import DocumentPath, Json, locate, read_json
from garboard.errors import BadDocument
from garboard.model.go import go_quote
from garboard.model.minors import MINORS, MinorFacts
from garboard.schema import StructType, load_schema, suggest
from garboard.values import dataclass

KINDS = (
    *(f"{name}Configuration" for name in ("Init", "Cluster", "Join", "Reset", "Upgrade")),
    *COMPONENT_KINDS,
)
COMPONENT_GROUPS = {api.partition("/")[0]: api for api in COMPONENT_KINDS.values()}
V1BETA3 = f"{KUBEADM_GROUP}/v1beta3"
_MIGRATE = "`garboard config migrate --old-config old-config-file --new-config new-config-file`"
_PAIRS = ("extraArgs", "kubeletExtraArgs", "extraEnvs")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How strictly documents are read; the defaults are those of init and join."""

    is_strict: bool = False  # unknown fields, repeated keys and foreign documents are refused
    allows_deprecated: bool = False  # no warning about a deprecated API version
    allows_experimental: bool = False
    migrates: bool = False  # also read v1beta3 where the minor does not any more
    detects_cri: bool = True


def check_known(documents: Iterable[ConfigDocument], facts: MinorFacts, options: ReadOptions) -> None:
    """Refuse documents of kinds that kubeadm does not know, but for our own beside the one that it belongs to."""
    found = tuple(documents)
    known = {TUNNEL_KIND} if any(each.gvk.kind == "JoinConfiguration" for each in found) else set()
    unknown = [
        document
        for document in found
        if document.gvk not in known
        and document.gvk.api_version not in facts.config_api.removed
        and type_of(document.gvk, facts, options) is None
    ]
    if unknown:
        listed = ", ".join(document.gvk.as_go_literal for document in unknown)
        raise BadDocument(
            f"unknown configuration APIs: []schema.GroupVersionKind{{{listed}}}", hint=_hint_for_unknown(unknown[0])
        )


def _hint_for_unknown(document: ConfigDocument) -> str:
    kind, where = document.gvk.kind, f"{document.source.file}:{document.source.line}"
    if kind in KINDS:
        return f"{where}: {kind} has another apiVersion, see `garboard config print init-defaults`"
    # All kinds end in Configuration, so only what stands before it is compared.
    stems = {known.removesuffix("Configuration"): known for known in KINDS}
    stem = kind.removesuffix("Configuration").removesuffix("Config")
    near = stem if stem in stems else suggest(stem, stems)
    return f"{where}: did you mean {stems[near]}?" if near else f"{where}: the kinds are {', '.join(KINDS)}"


def check_supported(document: ConfigDocument, facts: MinorFacts, options: ReadOptions, notes: ConfigNotes) -> None:
    """Refuse API versions that the minor does not read, and warn about those that are deprecated."""
    api, gvk = facts.config_api, document.gvk
    named = f'"{gvk.api_version}" (kind: "{gvk.kind}")'
    if options.migrates and gvk.api_version == V1BETA3:
        return
    if gvk.api_version in api.removed:
        raise BadDocument(
            f"your configuration file uses an old API spec: {named}, which kubeadm read until "
            f"{api.removed[gvk.api_version]}{document.source.where(('apiVersion',))}",
            hint=_hint_for_removed(document, api.removed[gvk.api_version]),
            error_class="removed-api",
        )
    if gvk.api_version in api.deprecated and not options.allows_deprecated:
        notes.warn(
            f"your configuration file uses a deprecated API spec: {named}. Please use {_MIGRATE}, "
            "which will write the new, similar spec using a newer API version."
        )
    if gvk.api_version in api.experimental and not options.allows_experimental:
        raise BadDocument(
            f"experimental API spec: {named} is not allowed. "
            "You can use the --allow-experimental-api flag if the command supports it.",
            error_class="experimental-api",
        )


def _hint_for_removed(document: ConfigDocument, until: str) -> str:
    if document.gvk.api_version != V1BETA3:
        return f"convert it with `kubeadm config migrate` of kubeadm {until}"
    return f"`garboard config migrate --old-config {document.source.file}` converts it"


def type_of(gvk: GroupVersionKind, facts: MinorFacts, options: ReadOptions) -> StructType | None:
    """Return the Go type of a kind that kubeadm of the minor has registered."""
    if not gvk.is_kubeadm and COMPONENT_KINDS.get(gvk.kind) != gvk.api_version:
        return None
    references = [facts.reference]
    if options.migrates and gvk.api_version == V1BETA3:
        references += [other.reference for other in MINORS.values()]
    found = (load_schema(reference).type_of(gvk.api_version, gvk.kind) for reference in references)
    return next((type_ for type_ in found if type_ is not None), None)


def verify(
    document: ConfigDocument, facts: MinorFacts, options: ReadOptions, notes: ConfigNotes, *, is_used: bool = True
) -> dict[str, Json] | None:
    """Check one document and decode it; for an unknown kind, return None with a warning, or raise.

    Problems in a document that is not used are only warnings, unless reading is strict.
    """
    check_supported(document, facts, options, notes)
    type_ = type_of(document.gvk, facts, options)
    if type_ is None:
        message = f"unknown configuration {document.gvk.as_go_literal}"
        if options.is_strict:
            raise InvalidConfiguration(document.source.file, [message])
        notes.warn(message)
        return None
    try:
        return decode_strictly(document, type_, notes, is_fatal=options.is_strict)
    except InvalidConfiguration as error:
        if is_used or options.is_strict:
            raise
        notes.warn("; ".join(error.problems))
        return None


def decode_strictly(
    document: ConfigDocument, type_: StructType, notes: ConfigNotes, *, is_fatal: bool
) -> dict[str, Json]:
    """Decode a document. Values of a wrong type are always refused, other findings only where they are fatal."""
    decoded = decode(document.tree, type_)
    prefix = f"error unmarshaling configuration {document.gvk.as_go_literal}: "
    findings, where = [*_findings(document, decoded)], document.source.where
    if decoded.mismatches or (findings and is_fatal):
        pairs = zip(decoded.mismatches, decoded.mismatched, strict=True)
        lines = [f"{prefix}{text}{where(path)}" for text, path in pairs]
        lines += [f"{prefix}strict decoding error: {text}{where(path)}" for text, path in findings if is_fatal]
        partial = PartialDocument(decoded.tree, tuple(decoded.mismatched))
        raise InvalidConfiguration(document.source.file, lines, hint=_hint(document, decoded), partial=partial)
    if findings:
        notes.warn(f"{prefix}strict decoding error: {', '.join(text for text, _ in findings)}")
    return decoded.tree


def _hint(document: ConfigDocument, decoded: Decoded) -> str | None:
    """Return the fields that were probably meant, and the form that arguments have had since v1beta4."""
    hints: list[str] = []
    for path in decoded.mismatched:
        members = _members_at(document.tree, path)
        if path and path[-1] in _PAIRS and members:
            hints.append(f"write {path_text(path)} as a list of names and values: [{_as_pairs(members)}]")
    hints += [f"did you mean {' and '.join(map(repr, decoded.meant))}?"] if decoded.meant else []
    return "; ".join(hints) or None


def _members_at(tree: Json, path: DocumentPath) -> dict[str, Json]:
    for step in path:
        tree = tree.get(str(step)) if isinstance(tree, dict) else None
    return tree if isinstance(tree, dict) else {}


def _as_pairs(members: dict[str, Json]) -> str:
    """Return a mapping as the list of names and values that v1beta4 has for arguments and environments."""
    texts = {name: "" if isinstance(value, dict | list) or value is None else value for name, value in members.items()}
    shown = {name: str(text).lower() if isinstance(text, bool) else str(text) for name, text in texts.items()}
    return ", ".join(f"{{name: {name}, value: {json.dumps(text)}}}" for name, text in shown.items())


def _findings(document: ConfigDocument, decoded: Decoded) -> Iterator[tuple[str, DocumentPath]]:
    repeated = [*repeated_keys(document.source.text)]
    if repeated:
        yield "yaml: unmarshal errors:" + "".join(f"\n  {line}" for line in repeated), ()
    for path in decoded.unknown:
        yield f"unknown field {go_quote(path_text(path))}", path


def repeated_keys(text: str) -> Iterator[str]:
    """Yield every key that a mapping sets more than once, with the line in its document, as go-yaml does."""
    for name, at in locate(text).keys_set_again():
        yield f"line {at.line}: key {go_quote(name)} already set in map"


def check_json(document: ConfigDocument) -> None:
    """Refuse a document in YAML's flow style that begins with `{`, which kubeadm takes for broken JSON."""
    source = document.source
    if not source.text.lstrip().startswith("{"):
        return
    try:
        read_json(source.text, source=source.file, line=source.line)
    except BadDocument as error:
        raise BadDocument(
            f"couldn't get version/kind; json parse error: {error.message}",
            hint="a document that begins with { must be JSON: put its names into quotes, or write it over lines",
        ) from error


def check_component_version(document: ConfigDocument) -> None:
    supported = COMPONENT_GROUPS[document.gvk.group]
    if document.gvk.api_version != supported:
        raise BadDocument(
            f'{document.source.file}: unsupported apiVersion "{document.gvk.api_version}" of {document.gvk.kind}'
            f"{document.source.where(('apiVersion',))}",
            hint=f"convert the document to {supported} by hand",
        )


def refuse_kind(document: ConfigDocument) -> NoReturn:
    gvk = document.gvk
    raise BadDocument(f'no kind "{gvk.kind}" is registered for version "{gvk.api_version}"')


def in_current_shape(document: ConfigDocument, tree: dict[str, Json] | None) -> dict[str, Json]:
    """Convert a decoded kubeadm document to the shape of v1beta4; it must be of an API version that is known."""
    check_json(document)
    if tree is None:
        refuse_kind(document)
    if document.gvk.api_version != V1BETA3:
        return tree
    return cluster_to_v1beta4(tree) if document.gvk.kind == "ClusterConfiguration" else node_to_v1beta4(tree)


def warn_ignored(document: ConfigDocument, notes: ConfigNotes) -> None:
    notes.warn(f"[config] WARNING: Ignored configuration document with GroupVersionKind {document.gvk}")
