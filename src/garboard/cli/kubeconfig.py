"""`garboard kubeconfig`."""

import sys
from datetime import timedelta
from pathlib import Path

import click

from garboard.cli.certs.options import cert_dir_option, config_option, read_configuration
from garboard.cli.flags import DURATION, STRING_SLICE, joined
from garboard.cli.lazy import LazyCommand, LazyGroup
from garboard.node.credentials import KubeconfigUser, user_kubeconfig


@click.group(
    cls=LazyGroup,
    lazy={"user": LazyCommand("garboard.cli.kubeconfig:user", "Print a kubeconfig for another user.")},
    epilog="Example: garboard kubeconfig user --client-name alice --org dev",
)
def kubeconfig() -> None:
    """Make kubeconfig files."""


@click.command(epilog="Example: garboard kubeconfig user --client-name alice --org dev --config kubeadm.yaml")
@click.option("--client-name", required=True, help="The name of the user.")
@click.option(
    "--org",
    type=STRING_SLICE,
    multiple=True,
    callback=joined,
    metavar="GROUPS",
    help="Groups of the user, separated by commas.",
)
@click.option("--token", help="Authenticate with this token and not with a certificate.")
@click.option(
    "--validity-period",
    type=DURATION,
    default="8760h",
    show_default=True,
    help="How long the certificate holds, from now.",
)
@config_option
@cert_dir_option
def user(
    client_name: str,
    org: tuple[str, ...],
    token: str | None,
    validity_period: timedelta,
    config: Path | None,
    cert_dir: str | None,
) -> None:  # fmt: skip
    """Print a kubeconfig for another user, signed by the cluster's certificate authority."""
    wanted = KubeconfigUser(name=client_name, groups=org, token=token, validity=validity_period)
    document = user_kubeconfig(read_configuration(config), cert_dir, wanted)
    # kubeadm ends its print with an empty line.
    sys.stdout.write(document.decode() + "\n")
