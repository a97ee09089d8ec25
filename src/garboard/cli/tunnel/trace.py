"""`garboard tunnel trace`."""

import json

import click

from garboard.cli.tunnel.admin import ask_admin
from garboard.tunnel.report import trace_text


@click.command(epilog="Example: garboard tunnel trace --to 10.96.0.10:53 --agent node7")
@click.option("--to", required=True, metavar="HOST:PORT", help="Where the way should lead.")
@click.option("--agent", help="On a server: go through this agent, and not by the strategies.")
@click.option("--tenant", help="On a server with tenants: whose agents.")
@click.option("--admin", metavar="HOST:PORT", help="Admin port to ask; without it the usual ones are tried.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def trace(to: str, agent: str | None, tenant: str | None, admin: str | None, output: str) -> int:
    """Try the way to a destination and show every hop's verdict and time; exit status 1 when it is not open.

    On a node, through its agent, the way leads to the control plane; on a server, to what an agent reaches.
    """
    chosen = {name: value for name, value in (("agent", agent), ("tenant", tenant)) if value}
    document = ask_admin(admin, "/trace", to=to, **chosen)
    click.echo(trace_text(document) if output == "text" else json.dumps(document, indent=4), nl=output != "text")
    return 0 if document["isOpen"] else 1
