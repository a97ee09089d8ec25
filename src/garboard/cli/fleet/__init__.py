"""`garboard fleet`: the table of its commands."""

import click

from garboard.cli.lazy import LazyCommand, LazyGroup

COMMANDS = {
    "render": LazyCommand("garboard.cli.fleet.render:render", "Render what installers would be given, and check it."),
    "explain": LazyCommand("garboard.cli.fleet.explain:explain", "Tell which customization set a field."),
    "provision": LazyCommand("garboard.cli.fleet.provision:provision", "Make the cluster of a ClusterDeployment."),
    "deprovision": LazyCommand("garboard.cli.fleet.deprovision:deprovision", "Take back what provision has made."),
    "controller": LazyCommand("garboard.cli.fleet.controller:controller", "Keep pools filled and serve claims."),
    "status": LazyCommand("garboard.cli.fleet.status:status", "Show pools, clusters and claims."),
    "dashboard": LazyCommand("garboard.cli.fleet.dashboard:dashboard", "Serve pools, clusters and failures as a page."),
    "claim": LazyCommand("garboard.cli.fleet.status:claim", "Ask a pool for a cluster."),
    "kubeconfig": LazyCommand("garboard.cli.fleet.status:kubeconfig_of_claim", "Print the kubeconfig of a claim."),
    "attempt": LazyCommand("garboard.cli.fleet.attempt:attempt", "What a controller starts for each attempt."),
    "crds": LazyCommand("garboard.cli.fleet.crds:crds", "Print the CustomResourceDefinitions of Hive's kinds."),
    "install": LazyCommand("garboard.cli.fleet.install:install", "Put Hive's kinds and the controller into a cluster."),
    "host": LazyCommand("garboard.cli.fleet.host:host", "What a provisioner asks of this machine."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, epilog="Example: garboard fleet render -f fleet/ --check")
def fleet() -> None:
    """Clusters from Hive's documents: customizations, and what makes clusters of hosts or with an installer."""
