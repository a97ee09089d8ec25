"""What several certificate commands share: where files are, and how they are observed."""

from collections.abc import Iterable
from datetime import UTC, datetime
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import TYPE_CHECKING

import click

from garboard.errors import InvalidValue
from garboard.pki import IPAddress, parse_ip

if TYPE_CHECKING:
    from garboard.pki.expiration import ObservedNode

cert_dir_option = click.option(
    "--cert-dir", default="/etc/kubernetes/pki", show_default=True, help="Where the certificates are."
)
kubeconfig_dir_option = click.option(
    "--kubeconfig-dir", default="/etc/kubernetes", show_default=True, help="Where the kubeconfigs are."
)
bind_port_option = click.option(
    "--apiserver-bind-port",
    "port",
    type=click.IntRange(1, 65535),
    default=6443,
    show_default=True,
    help="The port of the API servers.",
)
endpoint_option = click.option(
    "--control-plane-endpoint", "endpoint", metavar="HOST[:PORT]", help="The endpoint all API servers share."
)


def now() -> datetime:
    return datetime.now(UTC)


def observe_node(cert_dir: str, kubeconfig_dir: str) -> "ObservedNode":
    """Read all certificates and kubeconfigs of this node."""
    from garboard.host import HostFolder
    from garboard.pki import KUBECONFIGS
    from garboard.pki.credentials import observe_kubeconfig
    from garboard.pki.expiration import ObservedNode
    from garboard.pki.store import observe_pairs

    folder = HostFolder(kubeconfig_dir)
    kubeconfigs = {spec.file_name: observe_kubeconfig(folder, spec.file_name) for spec in KUBECONFIGS}
    return ObservedNode(observe_pairs(HostFolder(cert_dir)), kubeconfigs)


def read_address(text: str) -> IPAddress:
    address = parse_ip(text)
    if address is None:
        raise InvalidValue(f"{text!r} is not an IP address", hint="write it as 10.0.0.1 or fd00::1")
    return address


def read_subnets(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    """Return the networks of a list separated by commas, as dual-stack clusters have them."""
    try:
        return tuple(ip_network(each, strict=False) for each in text.split(","))
    except ValueError as error:
        raise InvalidValue(
            f"{text!r} is not a list of networks", hint="write it as 10.96.0.0/12 or 10.96.0.0/12,fd00:1::/112"
        ) from error


def split_commas(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the parts of an option that can be repeated and can hold several values each."""
    return tuple(part for text in texts for part in text.split(",") if part)
