"""`garboard kubeconfig`."""

import sys
from datetime import timedelta

import click

from garboard.cli.certs.options import (
    bind_port_option,
    cert_dir_option,
    endpoint_option,
    now,
    read_address,
    split_commas,
)
from garboard.cli.duration import DURATION
from garboard.cli.lazy import LazyCommand, LazyGroup
from garboard.errors import BadUsage, GarboardError


@click.group(
    cls=LazyGroup,
    lazy={"user": LazyCommand("garboard.cli.kubeconfig:user", "Print a kubeconfig for another user.")},
    epilog="Example: garboard kubeconfig user --client-name alice --org dev --control-plane-endpoint api.example.com",
)
def kubeconfig() -> None:
    """Make kubeconfig files."""


@click.command(
    epilog="Example: garboard kubeconfig user --client-name alice --org dev --control-plane-endpoint api.example.com"
)
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
@click.option("--apiserver-advertise-address", "address", metavar="IP", help="The address of an API server.")
@bind_port_option
@endpoint_option
@click.option("--cluster-name", default="kubernetes", show_default=True, help="What the cluster is called in it.")
@cert_dir_option
def user(
    client_name: str,
    org: tuple[str, ...],
    token: str | None,
    validity_period: timedelta,
    address: str | None,
    port: int,
    endpoint: str | None,
    cluster_name: str,
    cert_dir: str,
) -> None:
    """Print a kubeconfig for another user, signed by the cluster's certificate authority."""
    from garboard.host import HostFolder
    from garboard.pki import KeyAlgorithm
    from garboard.pki.credentials import Cluster, issue_kubeconfig, token_kubeconfig
    from garboard.pki.keys import SystemKeys
    from garboard.pki.kubeconfig_spec import client_request
    from garboard.pki.store import observe_pair

    ca = observe_pair(HostFolder(cert_dir), "ca").as_signer()
    if ca is None:
        raise GarboardError(
            f"the certificate authority in {cert_dir} cannot be used: ca.crt and ca.key must both be there",
            hint="pass --cert-dir if the certificates live elsewhere",
            error_class="bad-authority",
        )
    cluster = Cluster(cluster_name, _server(endpoint, address, port))
    if token:
        document = token_kubeconfig(client_name, token, cluster, ca.certificate)
    else:
        request = client_request(client_name, split_commas(org), not_after=now() + validity_period)
        document = issue_kubeconfig(request, cluster, ca, KeyAlgorithm.RSA_2048, SystemKeys())
    # kubeadm ends its print with an empty line.
    sys.stdout.write(document.to_bytes().decode() + "\n")


def _server(endpoint: str | None, address: str | None, port: int) -> str:
    from garboard.pki import Endpoint

    if endpoint:
        return Endpoint.parse(endpoint).url(port)
    if address:
        return Endpoint(str(read_address(address))).url(port)
    raise BadUsage(
        "the kubeconfig needs the address of an API server",
        hint="pass --control-plane-endpoint api.example.com, or --apiserver-advertise-address 10.0.0.1",
    )
