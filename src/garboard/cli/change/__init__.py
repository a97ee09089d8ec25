"""`garboard change`: what a change of a cluster touches, and how far the cluster has drifted."""

import click

from garboard.cli.lazy import LazyCommand, LazyGroup

COMMANDS = {
    "plan": LazyCommand(
        "garboard.cli.change.plan:plan", "Show what a change would touch, and what is dangerous in it."
    ),
    "adopt": LazyCommand("garboard.cli.change.adopt:adopt", "Look at any kubeadm cluster, and say what to mend."),
    "drift": LazyCommand("garboard.cli.change.drift:drift", "Show how far nodes have drifted, field by field."),
    "rbac": LazyCommand("garboard.cli.change.rbac:rbac", "Print the roles that reading a cluster needs."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, epilog="Example: garboard change plan --set clusterName=blue")
def change() -> None:
    """Look at a cluster that kubeadm or garboard has made, and change it (KEP-28)."""
