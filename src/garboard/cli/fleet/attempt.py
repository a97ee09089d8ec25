"""`garboard fleet attempt`: what a controller starts for each ClusterProvision and ClusterDeprovision."""

from pathlib import Path

import click

from garboard.cli.console import ConsoleReporter
from garboard.cli.fleet.provision_inputs import work_option
from garboard.cli.token.access import kubeconfig_option
from garboard.node.fleet.attempts import attempt_of_controller


@click.command(
    epilog="Example: garboard fleet attempt --namespace edge-x7k2p --name edge-x7k2p-0-1b2c3 --work /output/work"
)
@click.option("--namespace", required=True, help="The namespace of the cluster.")
@click.option("--name", required=True, help="The ClusterProvision, or the ClusterDeprovision with --destroy.")
@work_option
@click.option("--destroy", is_flag=True, help="Destroy what was made.")
@click.option("--installer", default="openshift-install", show_default=True, metavar="PROGRAM", help="As in provision.")
@kubeconfig_option
def attempt(namespace: str, name: str, work: Path, destroy: bool, installer: str, kubeconfig: str | None) -> None:
    """Carry out one attempt of a controller at making a cluster; given again after a kill, it goes on."""
    with attempt_of_controller(kubeconfig, namespace, name, work, installer, ConsoleReporter()) as each:
        if destroy:
            each.destroy()
        else:
            each.provision()
