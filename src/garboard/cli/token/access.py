"""The options that the commands of tokens share."""

from collections.abc import Callable
from typing import TypeVar

import click

from garboard.model.paths import ADMIN_CONF

Command = TypeVar("Command", bound=Callable[..., object])

dry_run_option = click.option("--dry-run", is_flag=True, help="Say what would be done and change nothing.")


def kubeconfig_option(command: Command) -> Command:
    """Add `--kubeconfig`, which says which cluster is meant."""
    option = click.option(
        "--kubeconfig", metavar="FILE",
        help=f"An administrator's kubeconfig.  [default: KUBECONFIG, ~/.kube/config or {ADMIN_CONF}]",
    )  # fmt: skip
    return option(command)
