"""`garboard tunnel link`."""

import click

from garboard.host import Machine
from garboard.model.tunnel import DEFAULT_LINK, parse_bind_address
from garboard.tunnel.deploy.link import set_up_link


@click.command(epilog="Example: garboard tunnel link --address 10.255.0.1")
@click.option("--address", required=True, help="Address that the agent listens on, the same on every node.")
@click.option("--name", default=DEFAULT_LINK, show_default=True, help="Name of the link that holds it.")
def link(address: str, name: str) -> None:
    """Give this node the address where its agent stands in for the API server.

    A dummy link holds it where the kernel has those, else a bridge without ports, else the loopback link. Doing it
    again changes nothing.
    """
    kind = set_up_link(Machine(), parse_bind_address(address), name)
    click.echo(f"{address} is on {'lo' if kind == 'loopback' else name} ({kind})")
