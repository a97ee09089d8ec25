"""`garboard tunnel certs`."""

from datetime import UTC, datetime
from pathlib import Path

import click

from garboard.errors import as_usage
from garboard.host import HostFolder
from garboard.pki.files import write_files
from garboard.pki.keys import SystemKeys
from garboard.tunnel.deploy.certificates import plan_certificates, tunnel_certificates


@click.command(
    epilog="Example: garboard tunnel certs -o pki --server-name konnectivity.example.com --server-name 10.0.0.1"
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder to write."
)
@click.option(
    "--server-name", "server_names", multiple=True, required=True, help="Name or address that agents dial; repeatable."
)
@click.option("--agent", "agents", multiple=True, help="A certificate for this agent alone; repeatable.")
def certs(output: Path, server_names: tuple[str, ...], agents: tuple[str, ...]) -> None:
    """Make the certificates of one cluster's tunnel: an authority, the server's, the API server's, the agents'.

    What is in the folder already stays: run it again for one more agent, or delete a pair to have it renewed. For
    --tenants give every cluster a folder, and so an authority, of its own.
    """
    folder = HostFolder(str(output))
    with as_usage():
        wanted = tunnel_certificates(server_names, agents or ("",))
    files = plan_certificates(wanted, folder, SystemKeys(), datetime.now(UTC))
    write_files(folder, files)
    for file in files:
        click.echo(folder.path_of(file.name))
