"""`garboard kubeconfig`."""

import sys
from datetime import timedelta
from pathlib import Path

import click

from garboard.cli.certs.options import cert_dir_option, config_option, now, read_configuration
from garboard.cli.duration import DURATION
from garboard.cli.lazy import LazyCommand, LazyGroup
from garboard.errors import GarboardError
from garboard.model.go_flags import split_list


@click.group(
    cls=LazyGroup,
    lazy={"user": LazyCommand("garboard.cli.kubeconfig:user", "Print a kubeconfig for another user.")},
    epilog="Example: garboard kubeconfig user --client-name alice --org dev",
)
def kubeconfig() -> None:
    """Make kubeconfig files."""


@click.command(epilog="Example: garboard kubeconfig user --client-name alice --org dev --config kubeadm.yaml")
@click.option("--client-name", required=True, help="The name of the user.")
@click.option("--org", multiple=True, metavar="GROUPS", help="Groups of the user, separated by commas.")
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
    from garboard.host import HostFolder
    from garboard.pki.credentials import Cluster, issue_kubeconfig, token_kubeconfig
    from garboard.pki.inputs import inputs_of
    from garboard.pki.keys import SystemKeys
    from garboard.pki.kubeconfig_spec import client_request
    from garboard.pki.store import observe_pair

    configuration = read_configuration(config)
    inputs = inputs_of(configuration)
    folder = cert_dir or configuration.cluster.certificates_dir
    ca = observe_pair(HostFolder(folder), "ca").as_signer()
    if ca is None:
        raise GarboardError(
            f"the certificate authority in {folder} cannot be used: ca.crt and ca.key must both be there",
            hint="pass --cert-dir if the certificates live elsewhere",
            error_class="bad-authority",
        )
    cluster = Cluster(inputs.cluster_name, inputs.control_plane_url)
    if token:
        document = token_kubeconfig(client_name, token, cluster, ca.certificate)
    else:
        groups = tuple(part for text in org for part in split_list(text))
        request = client_request(client_name, groups, not_after=now() + validity_period)
        document = issue_kubeconfig(request, cluster, ca, inputs.key_algorithm, SystemKeys())
    # kubeadm ends its print with an empty line.
    sys.stdout.write(document.to_bytes().decode() + "\n")
