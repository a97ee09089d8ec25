"""`garboard fleet status`, `claim` and `kubeconfig`: a fleet from the point of view of its users."""

import sys
from datetime import timedelta

import click

from garboard.cli.flags import DURATION
from garboard.cli.output import output_option, write_data
from garboard.cli.token.access import kubeconfig_option
from garboard.node.fleet.view import claim_cluster, claimed_kubeconfig, look
from garboard.node.reporter import OutputFormat
from garboard.retry import CLOCK

_EVERY_S = 2.0
namespace_option = click.option("--namespace", "-n", default="default", show_default=True, help="Of the pool.")


@click.command(epilog="Example: garboard fleet status --namespace edge --watch")
@click.option("--namespace", "-n", default="", help="Of this namespace alone, with the clusters of its pools.")
@click.option("--watch", is_flag=True, help="Print it again whenever it changes, until interrupted.")
@kubeconfig_option
@output_option
def status(namespace: str, watch: bool, kubeconfig: str | None, output: OutputFormat) -> None:
    """Show pools, clusters by their state, and claims with what they wait for."""
    last = ""
    while True:
        view = look(kubeconfig, namespace)
        text = view.as_text()
        if text != last:
            write_data(view.as_json(), output, text=text)
            sys.stdout.flush()
        if not watch:
            return
        last = text
        CLOCK.sleep(_EVERY_S)


@click.command(epilog="Example: garboard fleet claim edge --namespace fleet --lifetime 8h --subject user:alice")
@click.argument("pool")
@namespace_option
@click.option("--name", default="", help="Of the claim; by default one is made of the pool's.")
@click.option("--lifetime", default="", metavar="DURATION", help="For how long, such as 8h; the pool may limit it.")
@click.option(
    "--subject", "subjects", multiple=True, metavar="KIND:NAME",
    help="Who may use the cluster: user:NAME, group:NAME or serviceaccount:NAME.",
)  # fmt: skip
@kubeconfig_option
def claim(
    pool: str, namespace: str, name: str, lifetime: str, subjects: tuple[str, ...], kubeconfig: str | None
) -> None:
    """Ask a pool for a cluster; print the name of the claim, by which it is given back: kubectl delete clusterclaim."""
    made = claim_cluster(kubeconfig, namespace, pool, name=name, lifetime=lifetime, subjects=subjects)
    sys.stdout.write(f"{made}\n")


@click.command(epilog="Example: garboard fleet kubeconfig my-claim --namespace fleet > cluster.conf")
@click.argument("claim")
@namespace_option
@click.option("--timeout", type=DURATION, default="0s", show_default=True, help="Wait so long for a cluster.")
@kubeconfig_option
def kubeconfig_of_claim(claim: str, namespace: str, timeout: timedelta, kubeconfig: str | None) -> None:
    """Print the administrator's kubeconfig of the cluster that a claim has."""
    sys.stdout.write(claimed_kubeconfig(kubeconfig, namespace, claim, timeout_s=timeout.total_seconds()))
