"""`garboard fleet dashboard`."""

import asyncio
import logging
import signal
import sys
from pathlib import Path

import click

from garboard.cli.fleet.addresses import parse_address
from garboard.cli.token.access import kubeconfig_option
from garboard.errors import BadUsage
from garboard.node.fleet.dashboard.serving import DashboardOptions, run_dashboard


@click.command(epilog="Example: garboard fleet dashboard --kubeconfig admin.conf")
@click.option("--namespace", "-n", default="", help="The pools of this namespace alone, with their clusters.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Of 127.0.0.1.  [default: any that is free]")
@click.option(
    "--address", default="", metavar="HOST:PORT",
    help="Serve others there, over TLS: everybody whose token the API server accepts and whom it lets list the fleet.",
)  # fmt: skip
@click.option(
    "--tls-cert-file", type=click.Path(path_type=Path), metavar="FILE",
    help="With --address: the certificate.  [default: one that is made now]",
)  # fmt: skip
@click.option(
    "--tls-private-key-file", type=click.Path(path_type=Path), metavar="FILE", help="With --address: its key."
)
@kubeconfig_option
def dashboard(
    namespace: str, port: int, address: str, tls_cert_file: Path | None, tls_private_key_file: Path | None,
    kubeconfig: str | None,
) -> None:  # fmt: skip
    """Serve one page that only reads: pools, clusters by stage, claims, and failures with their logs, live.

    Without --address it is for the one who starts it, with the rights of the kubeconfig, on 127.0.0.1 under a path that
    nobody else knows. It shows no Secrets, and asks for none.
    """
    if (tls_cert_file is None) != (tls_private_key_file is None):
        raise BadUsage("--tls-cert-file and --tls-private-key-file go together", hint="name both files, or neither")
    if tls_cert_file is not None and not address:
        raise BadUsage("--tls-cert-file is for --address", hint="leave it out: on 127.0.0.1 there is no TLS")
    if address and port:
        raise BadUsage("--port is of 127.0.0.1, and --address has its own", hint="leave --port out")
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname).1s %(name)s %(message)s"
    )
    options = DashboardOptions(
        kubeconfig=kubeconfig,
        namespace=namespace,
        port=port,
        address=parse_address("--address", address, "0.0.0.0:8443"),
        certificate=tls_cert_file,
        key=tls_private_key_file,
    )
    asyncio.run(_run(options))


async def _run(options: DashboardOptions) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    await run_dashboard(options, stopping, _tell)


def _tell(url: str) -> None:
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()
