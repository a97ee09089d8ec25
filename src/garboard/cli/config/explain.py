"""`garboard config explain`."""

from pathlib import Path

import click

from garboard.cli.completing import complete_fields, complete_targets
from garboard.cli.config.inputs import config_path, emulated_version_option, supported_version
from garboard.cli.output import output_option, write_data
from garboard.cli.patch.inputs import node_options
from garboard.cli.patch.rendered import configured_node
from garboard.node.reporter import OutputFormat
from garboard.patches import OriginKind, asked_history, explain_text, find_target, history_as_json
from garboard.phases.rendering import explained


@click.command(
    epilog="Example: garboard config explain kube-apiserver 'spec.containers[0].command[--profiling]'"
    " --config kubeadm.yaml --patches ./patches",
)
@click.argument("target", metavar="TARGET", shell_complete=complete_targets)
@click.argument("fields", metavar="[FIELD]...", nargs=-1, shell_complete=complete_fields)
@click.option("--config", "path", type=config_path, required=True, metavar="FILE", help="The kubeadm configuration.")
@click.option("--patches", "directory", metavar="DIR", help="A patch directory, instead of the configuration's own.")
@node_options
@emulated_version_option
@output_option
def explain(
    target: str,
    fields: tuple[str, ...],
    path: Path,
    directory: str | None,
    node: str | None,
    role: str | None,
    kubernetes_version: str,
    output: OutputFormat,
) -> None:
    """Tell where each FIELD of what init renders comes from: a default, a line of the configuration or of a patch.

    TARGET is a word of the patch directory, such as kube-apiserver or kubeletconfiguration. Without FIELD, everything
    is told that the configuration, the machine or a patch decides. --node and --role say which node it is, whose layers
    of a patch tree apply; by default the control-plane node that the configuration names.
    """
    configured = configured_node(str(path), supported_version(kubernetes_version), node, role)
    schema = configured.rendering.schema
    patches = configured.patches(directory)
    rendered = configured.rendering.one(find_target(target, schema.version))
    origins = explained(rendered, patches, configured.loaded, schema)
    asked = [(text, asked_history(text, origins, schema)) for text in fields]
    histories = asked or origins.fields_by(OriginKind.PATCH, OriginKind.CONFIG, OriginKind.HOST)
    write_data(
        [history_as_json(field, history) for field, history in histories],
        output,
        text="\n".join(explain_text(field, history) for field, history in histories),
    )
