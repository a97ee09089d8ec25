"""`garboard tunnel`: the table of its commands."""

import click

from garboard.cli.lazy import LazyCommand, LazyGroup

COMMANDS = {
    "server": LazyCommand("garboard.cli.tunnel.server:server", "Run a Konnectivity proxy server."),
    "agent": LazyCommand("garboard.cli.tunnel.agent:agent", "Run a Konnectivity agent."),
    "status": LazyCommand("garboard.cli.tunnel.status:status", "Show what an end of the tunnel has."),
    "trace": LazyCommand("garboard.cli.tunnel.trace:trace", "Try a way through the tunnel, hop by hop."),
    "certs": LazyCommand("garboard.cli.tunnel.certs:certs", "Make the certificates of a tunnel."),
    "manifests": LazyCommand("garboard.cli.tunnel.manifests:manifests", "Write static pods, units and settings."),
    "link": LazyCommand("garboard.cli.tunnel.link:link", "Give a node the address its agent listens on."),
    "zipapp": LazyCommand("garboard.cli.tunnel.zipapp:zipapp", "Write garboard as one file that runs."),
    "image": LazyCommand("garboard.cli.image:tunnel_image", "The same as `garboard image`."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, epilog="Example: garboard tunnel agent --ca-cert=ca.crt")
def tunnel() -> None:
    """Konnectivity: reach a cluster's nodes through connections that the nodes open themselves."""
