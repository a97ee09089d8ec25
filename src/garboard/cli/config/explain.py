"""`garboard config explain`."""

from functools import partial
from pathlib import Path

import click

from garboard.cli.config.inputs import config_path, open_config, show_warnings, supported_version, version_option
from garboard.cli.output import OutputFormat, output_option, write_data
from garboard.cli.workflow.node import node_host
from garboard.config.reading import ReadOptions
from garboard.host import list_tree, read_file
from garboard.host.node_machine import NodeMachine
from garboard.host.service_manager import service_manager
from garboard.patches import (
    FieldPath,
    NodeFacts,
    OriginKind,
    PatchFile,
    PatchSet,
    explain_text,
    find_target,
    history_as_json,
    read_patch_tree,
)
from garboard.phases.explaining import Explanation
from garboard.schema import Schema, load_schema


@click.command(
    epilog="Example: garboard config explain kube-apiserver 'spec.containers[0].command[--profiling]'"
    " --config kubeadm.yaml --patches ./patches",
)
@click.argument("target", metavar="TARGET")
@click.argument("fields", metavar="[FIELD]...", nargs=-1)
@click.option("--config", "path", type=config_path, required=True, metavar="FILE", help="The kubeadm configuration.")
@click.option("--patches", "directory", metavar="DIR", help="A patch directory, instead of the configuration's own.")
@version_option
@output_option
def explain(
    target: str,
    fields: tuple[str, ...],
    path: Path,
    directory: str | None,
    kubernetes_version: str,
    output: OutputFormat,
) -> None:
    """Tell where each FIELD of what init renders comes from: a default, a line of the configuration or of a patch.

    TARGET is a word of the patch directory, such as kube-apiserver or kubeletconfiguration. Without FIELD, everything
    is told that the configuration, the machine or a patch decides.
    """
    loaded = open_config(path, ReadOptions(), supported_version(kubernetes_version)).init()
    show_warnings(loaded.warnings)
    release = loaded.config.cluster.release
    schema = load_schema(release)
    name = loaded.config.node_registration.name
    patches = _patches(directory or loaded.config.patches_directory, schema, name)
    host = node_host(NodeMachine(service_manager()))
    origins = Explanation(loaded, host, find_target(target, schema.version), patches, schema).origins
    asked = [(text, origins.history(FieldPath.parse(text))) for text in fields]
    histories = asked or origins.fields_by(OriginKind.PATCH, OriginKind.CONFIG, OriginKind.HOST)
    write_data(
        [history_as_json(field, history) for field, history in histories],
        output,
        text="\n".join(explain_text(field, history) for field, history in histories),
    )


def _patches(directory: str | None, schema: Schema, node: str) -> PatchSet:
    if not directory:
        return PatchSet()
    root = Path(directory)
    files = [PatchFile(each, str(root / each), partial(read_file, root / each)) for each in list_tree(root)]
    return read_patch_tree(files, schema, NodeFacts(node, "control-plane"))
