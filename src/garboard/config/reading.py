"""Which API versions a minor reads, and one document decoded into the current shape (that of v1beta4)."""

from collections.abc import Iterable
from typing import NoReturn

from garboard.config.component_configs import COMPONENT_KINDS
from garboard.config.problems import InvalidConfiguration, Notes
from garboard.config.sources import KUBEADM_GROUP, ConfigDocument, GroupVersionKind
from garboard.config.strict import decode_strictly
from garboard.config.v1beta3 import cluster_to_v1beta4, node_to_v1beta4
from garboard.documents import Json, read_json
from garboard.errors import BadDocument
from garboard.model.minors import MINORS, MinorFacts
from garboard.schema import StructType, load_schema, suggest
from garboard.values import dataclass

KINDS = (
    *(f"{name}Configuration" for name in ("Init", "Cluster", "Join", "Reset", "Upgrade")),
    *COMPONENT_KINDS,
)
V1BETA3 = f"{KUBEADM_GROUP}/v1beta3"
_MIGRATE = "'kubeadm config migrate --old-config old-config-file --new-config new-config-file'"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How forgiving reading is; the defaults are those of init and join."""

    is_strict: bool = False  # unknown fields, repeated keys and foreign documents are refused
    allows_deprecated: bool = False  # no warning about a deprecated API version
    allows_experimental: bool = False
    migrates: bool = False  # also read v1beta3 where the minor does not any more
    detects_cri: bool = True


def check_known(documents: Iterable[ConfigDocument], facts: MinorFacts, options: ReadOptions) -> None:
    """Refuse documents of kinds that kubeadm has never heard of."""
    unknown = [
        document
        for document in documents
        if document.gvk.api_version not in facts.config_api.removed and type_of(document.gvk, facts, options) is None
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
    # All the kinds end alike; only what stands before that tells them apart.
    stems = {known.removesuffix("Configuration"): known for known in KINDS}
    stem = kind.removesuffix("Configuration").removesuffix("Config")
    near = stem if stem in stems else suggest(stem, stems)
    return f"{where}: did you mean {stems[near]}?" if near else f"{where}: the kinds are {', '.join(KINDS)}"


def check_supported(document: ConfigDocument, facts: MinorFacts, options: ReadOptions, notes: Notes) -> None:
    """Refuse API versions that the minor does not read, and warn about those that it will not read much longer."""
    api, gvk = facts.config_api, document.gvk
    named = f'"{gvk.api_version}" (kind: "{gvk.kind}")'
    if options.migrates and gvk.api_version == V1BETA3:
        return
    if gvk.api_version in api.removed:
        raise BadDocument(
            f"your configuration file uses an old API spec: {named}. Please use kubeadm "
            f"{api.removed[gvk.api_version]} instead and run {_MIGRATE}, "
            "which will write the new, similar spec using a newer API version.",
            hint=_hint_for_removed(document),
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


def _hint_for_removed(document: ConfigDocument) -> str | None:
    if document.gvk.api_version != V1BETA3:
        return None
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
    document: ConfigDocument, facts: MinorFacts, options: ReadOptions, notes: Notes, *, is_used: bool = True
) -> dict[str, Json] | None:
    """Check one document and decode it; a kind that is unknown gives nothing, and a warning or an error.

    One that is not used is only warned about, whatever is wrong in it.
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


def check_json(document: ConfigDocument) -> None:
    """Refuse a document that begins like JSON and is YAML's flow style, which kubeadm takes for broken JSON."""
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


def warn_ignored(document: ConfigDocument, notes: Notes) -> None:
    notes.warn(f"[config] WARNING: Ignored configuration document with GroupVersionKind {document.gvk}")
