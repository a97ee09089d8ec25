"""`garboard tunnel status`."""

import json

import click

from garboard.cli.tunnel.admin import ask_admin
from garboard.tunnel.report import status_text


@click.command(epilog="Example: garboard tunnel status --admin 127.0.0.1:8133")
@click.option("--admin", metavar="HOST:PORT", help="Admin port to ask; without it the usual ones are tried.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def status(admin: str | None, output: str) -> None:
    """Show what a server or agent on this machine has: agents or servers, targets, tenants, denials, queues."""
    document = ask_admin(admin, "/status")
    click.echo(status_text(document) if output == "text" else json.dumps(document, indent=4), nl=output != "text")
