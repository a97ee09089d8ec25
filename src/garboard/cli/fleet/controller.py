"""`garboard fleet controller`."""

import asyncio
import logging
import signal
import sys
from pathlib import Path

import click

from garboard.cli.fleet.addresses import parse_address
from garboard.cli.token.access import kubeconfig_option
from garboard.errors import BadUsage
from garboard.node.fleet.control.controller import Shard
from garboard.node.fleet.control.serving import ControllerOptions, Provisioner, run_controller


@click.command(epilog="Example: garboard fleet controller --provisioner local --work /var/lib/garboard/fleet")
@click.option(
    "--provisioner", type=click.Choice(["job", "local"]), default="local", show_default=True,
    help="Make clusters with Jobs of the API server's cluster, or with processes of this machine.",
)  # fmt: skip
@click.option(
    "--work", type=click.Path(path_type=Path), default=Path("/var/lib/garboard/fleet"), show_default=True,
    metavar="DIR", help="Where local provisions keep what they have made: one folder for each cluster.",
)  # fmt: skip
@click.option("--image", default="", help="The image of Jobs: one that has garboard, as `garboard image` writes.")
@click.option(
    "--installer", default="openshift-install", show_default=True, metavar="PROGRAM",
    help="The installer of install configs that are not garboard's own.",
)  # fmt: skip
@click.option("--namespace", default="", help="Serve the pools and deployments of this namespace alone.")
@click.option("--shard", default="0/1", show_default=True, metavar="I/N", help="Serve one part of N of the namespaces.")
@click.option("--leader-elect", is_flag=True, help="Work only while holding a Lease, so that several may run.")
@click.option(
    "--lease-namespace", default="kube-system", show_default=True, help="Where the Lease of the leader is kept."
)
@click.option("--metrics-address", default="", metavar="HOST:PORT", help="Serve /healthz, /readyz and /metrics there.")
@kubeconfig_option
def controller(
    provisioner: Provisioner, work: Path, image: str, installer: str, namespace: str, shard: str, leader_elect: bool,
    lease_namespace: str, metrics_address: str, kubeconfig: str | None,
) -> None:  # fmt: skip
    """Keep pools filled, give clusters to claims, make clusters and take them back, until it is told to end.

    It refuses to run where the kinds of a fleet were installed by a real Hive. Killed at any time, it goes on where it
    was when it is started again; local provisions go on meanwhile.
    """
    if provisioner == "job" and not image:
        raise BadUsage("--provisioner job needs --image", hint="name an image that has garboard in it")
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname).1s %(name)s %(message)s"
    )
    options = ControllerOptions(
        kubeconfig=kubeconfig,
        provisioner=provisioner,
        work=work,
        installer=installer,
        image=image,
        namespace=namespace,
        shard=_shard(shard),
        leads=leader_elect,
        lease_namespace=lease_namespace,
        metrics=parse_address("--metrics-address", metrics_address, "127.0.0.1:9090"),
    )
    asyncio.run(_run(options))


async def _run(options: ControllerOptions) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    await run_controller(options, stopping, _tell)


def _tell(bound: str) -> None:
    sys.stderr.write(f"metrics: http://{bound}/metrics\n")


def _shard(text: str) -> Shard:
    number, _, of = text.partition("/")
    if not (number.isdigit() and of.isdigit() and int(number) < int(of)):
        raise BadUsage(f"--shard {text!r} is no part of a whole", hint="write 0/3, 1/3 and 2/3 for three shards")
    return Shard(int(number), int(of))
