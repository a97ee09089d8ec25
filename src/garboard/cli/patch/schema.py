"""`garboard patch schema`."""

import json
import sys

import click

from garboard.cli.completing import complete_kinds, complete_targets
from garboard.cli.patch.inputs import schema_version_option
from garboard.documents import Json
from garboard.errors import BadUsage, as_usage
from garboard.model import KubernetesVersion
from garboard.patches import PatchType, find_target
from garboard.patches.editor_schema import args_schema, operations_schema, patch_schema, patch_set_schema
from garboard.schema import Schema, load_schema


@click.command(epilog="Example: garboard patch schema kube-apiserver --kubernetes-version v1.36.4")
@click.argument("target", required=False, shell_complete=complete_targets)
@click.option(
    "--kind",
    default="",
    metavar="KIND",
    shell_complete=complete_kinds,
    help="A built-in kind instead of a target.",
)
@click.option(
    "--type",
    "type_",
    type=click.Choice([str(each) for each in PatchType]),
    default="strategic",
    show_default=True,
    help="The type of the patches.",
)
@click.option("--patch-set", "is_set", is_flag=True, help="The schema of patch sets.")
@schema_version_option
def schema(target: str | None, kind: str, type_: str, is_set: bool, version: KubernetesVersion) -> None:
    """Print the JSON schema of patches for TARGET, with which an editor completes and checks them.

    Name the file of the schema in the first line of a patch: `# yaml-language-server: $schema=FILE`.
    """
    if sum((target is not None, bool(kind), is_set)) != 1:
        raise BadUsage("one of TARGET, --kind and --patch-set is needed", hint="name a target, such as kube-apiserver")
    found = patch_set_schema() if is_set else _schema(target, kind, PatchType(type_), load_schema(version))
    sys.stdout.write(json.dumps(found, indent=1) + "\n")


def _schema(target: str | None, kind: str, type_: PatchType, types: Schema) -> Json:
    name = target or kind
    title = f"{str(type_).capitalize()} patches for {name} of Kubernetes {types.version.as_minor}"
    known = find_target(target, types.version) if target else None
    if type_ is PatchType.JSON:
        return operations_schema(title)
    if type_ is PatchType.ARGS:
        component = types.component(known.component) if known and known.component else None
        if component is None or known is None or known.kind != "Pod":
            raise BadUsage(
                f"{name} has no flag patches", hint="args patches are for static Pods, such as kube-apiserver"
            )
        return args_schema(component, title)
    with as_usage():
        shape = known.shape(types) if known else types.find_kind(kind).type
    return patch_schema(shape, title, type_)
