"""The addresses of this node, for the step that gives it one where its agent stands in for the API server."""

from ipaddress import ip_address
from typing import TYPE_CHECKING

from garboard.host import Machine
from garboard.host.facts import interface_networks
from garboard.lazy import lazy_module

if TYPE_CHECKING:
    from garboard.tunnel.deploy import link as links
else:  # most runs give the node no address
    links = lazy_module("garboard.tunnel.deploy.link")


class NodeLinks:
    """Adds and removes links by the program `ip`."""

    def has_address(self, address: str) -> bool:
        wanted = ip_address(address)
        return any(network.ip == wanted for _, network in interface_networks())

    def add_address(self, address: str, link: str) -> None:
        links.set_up_link(Machine(), ip_address(address), link)

    def remove_address(self, address: str, link: str) -> None:
        links.take_down_link(Machine(), ip_address(address), link)
