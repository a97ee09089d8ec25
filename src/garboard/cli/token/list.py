"""`garboard token list`."""

import json
import sys
from datetime import UTC, datetime

import click

from garboard.cli.config.inputs import show_warnings
from garboard.cli.output import output_option
from garboard.cli.token.access import kubeconfig_option
from garboard.documents import write_yaml
from garboard.node.reporter import OutputFormat
from garboard.node.tokens import find_kubeconfig, read_tokens
from garboard.phases.tokens import tokens_as_text


@click.command("list", epilog="Example: garboard token list --output json")
@kubeconfig_option
@output_option
def list_tokens(kubeconfig: str | None, output: OutputFormat) -> None:
    """Show the tokens of the cluster, and how long each of them holds."""
    tokens, warnings = read_tokens(find_kubeconfig(kubeconfig))
    show_warnings(warnings)
    if output == "text":
        sys.stdout.write(tokens_as_text(tokens, datetime.now(UTC)))
    elif output == "json":
        # One document after the other, indented as kubeadm does: scripts that read its answer read this one.
        sys.stdout.write("".join(json.dumps(each.document(), indent=4) + "\n" for each in tokens))
    else:
        sys.stdout.write("---\n".join(write_yaml(each.document()) for each in tokens))
