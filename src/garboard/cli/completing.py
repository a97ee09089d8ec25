"""Completion of values: what a shell offers after an option or for an argument, looked up only when it asks."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from garboard.errors import GarboardError
from garboard.lazy import lazy_module

if TYPE_CHECKING:
    from garboard import documents, host, model, patches, rules, schema
    from garboard.model import minors
    from garboard.patches import rules as patch_rules
    from garboard.phases import workflow
    from garboard.pki import renewal
else:  # nothing here is needed unless a shell asks
    documents = lazy_module("garboard.documents")
    host = lazy_module("garboard.host")
    model = lazy_module("garboard.model")
    minors = lazy_module("garboard.model.minors")
    patches = lazy_module("garboard.patches")
    patch_rules = lazy_module("garboard.patches.rules")
    renewal = lazy_module("garboard.pki.renewal")
    rules = lazy_module("garboard.rules")
    schema = lazy_module("garboard.schema")
    workflow = lazy_module("garboard.phases.workflow")


def complete_targets(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Offer the patch targets of the version that the line names."""
    return _beginning(incomplete, minors.facts_of(_version(ctx)).patch_targets)


def complete_kinds(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Offer the kinds whose fields are known."""
    kinds = schema.load_schema(_version(ctx)).kinds()
    return _beginning(incomplete, sorted({kind.name for kind in kinds}))


def complete_versions(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Offer the reference release of each supported minor."""
    return _beginning(incomplete, map(str, model.SUPPORTED_VERSIONS))


def complete_certificates(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Offer what can be renewed."""
    return _beginning(incomplete, ["all", *(each.name for each in renewal.renewables())])


def complete_phases(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Offer the phases of the workflow that the line runs, also after a comma."""
    flags = getattr(ctx.command, "workflow", None)
    before, comma, last = incomplete.rpartition(",")
    known = [placed.path for placed in workflow.flatten(flags.phases)] if flags else []
    return [f"{before}{comma}{word}" for word in _beginning(last, known)]


def complete_dangers(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Offer the codes that can be accepted, also after a comma."""
    before, comma, last = incomplete.rpartition(",")
    dangers = [code for code, rule in rules.RESULT_RULES.items() if rule.is_acceptable]
    return [f"{before}{comma}{code}" for code in _beginning(last, dangers)]


def complete_codes(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Offer the codes of all rules."""
    return _beginning(incomplete, patch_rules.RULES)


def complete_fields(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Offer the fields of the target that the line names, one level at a time."""
    parent, dot, last = incomplete.rpartition(".")
    types = schema.load_schema(_version(ctx))
    try:
        target = _target(ctx, types)
    except GarboardError:
        return []
    shape = _type_at(target.shape(types), parent) if target is not None else None
    return [f"{parent}{dot}{field}" for field in _beginning(last, sorted(shape.fields))] if shape else []


def _target(ctx: click.Context, types: "schema.Schema") -> "patches.Target | None":
    """Return the target that the line names, or that its manifest is."""
    name, files = ctx.params.get("target"), ctx.params.get("originals")
    if isinstance(name, str):
        return patches.find_target(name, types.version)
    first = files[0] if isinstance(files, tuple) and files else files
    if not isinstance(first, str) or first == "-":
        return None
    return patches.target_of(documents.read_yaml(host.read_file(first), source=first), types.version)


def _type_at(shape: "schema.StructType", path: str) -> "schema.StructType | None":
    """Return the type of a field; elements of lists, which stand in brackets, are all of one type."""
    current: schema.StructType | None = shape
    for part in path.split(".") if path else ():
        field = current.fields.get(part.partition("[")[0]) if current else None
        of = field.of if field and field.kind == "list" else field
        current = of.type if of else None
    return current


def _version(ctx: click.Context) -> "model.KubernetesVersion":
    given = ctx.params.get("version")
    return given if isinstance(given, model.KubernetesVersion) else model.DEFAULT_VERSION


def _beginning(incomplete: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]
