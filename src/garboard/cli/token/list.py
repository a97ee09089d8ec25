"""`garboard token list`."""

import json
import sys

import click

from garboard.cli.output import OutputFormat, output_option
from garboard.cli.token.access import find_kubeconfig, kubeconfig_option


@click.command("list", epilog="Example: garboard token list --output json")
@kubeconfig_option
@output_option
def list_tokens(kubeconfig: str | None, output: OutputFormat) -> None:
    """Show the tokens of the cluster, and how long each of them holds."""
    from datetime import UTC, datetime

    from garboard.cli.config.inputs import show_warnings
    from garboard.documents import write_yaml
    from garboard.manifests.objects import KUBE_SYSTEM
    from garboard.phases.tokens import SELECTOR, stored_tokens, tokens_as_text

    with find_kubeconfig(kubeconfig).connect() as cluster:
        tokens, warnings = stored_tokens(cluster.selected("Secret", KUBE_SYSTEM, SELECTOR))
    show_warnings(warnings)
    if output == "text":
        sys.stdout.write(tokens_as_text(tokens, datetime.now(UTC)))
    elif output == "json":
        # One document after the other, indented as kubeadm does: scripts that read its answer read this one.
        sys.stdout.write("".join(json.dumps(each.document(), indent=4) + "\n" for each in tokens))
    else:
        sys.stdout.write("---\n".join(write_yaml(each.document()) for each in tokens))
