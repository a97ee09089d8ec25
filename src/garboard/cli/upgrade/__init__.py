"""`garboard upgrade`: a cluster raised by one minor or patch release, node by node."""

import click

from garboard.cli.lazy import LazyCommand, LazyGroup

COMMANDS = {
    "plan": LazyCommand(
        "garboard.cli.upgrade.plan:plan", "Show to which versions the cluster can go, and what would break."
    ),
    "diff": LazyCommand("garboard.cli.upgrade.diff:diff", "Show what an upgrade changes, and what restarts for it."),
    "apply": LazyCommand(
        "garboard.cli.upgrade.apply:apply", "Upgrade the cluster and this node, its first; or run a phase of that."
    ),
    "node": LazyCommand(
        "garboard.cli.upgrade.node:node", "Upgrade this node to the version of its cluster, or run a phase of that."
    ),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, epilog="Example: garboard upgrade apply v1.37.1 --dry-run")
def upgrade() -> None:
    """Upgrade a cluster that kubeadm or garboard made, with its patches, in one short outage per node.

    First `apply` on one control-plane node, then `node` on all others, control planes before workers. A node that
    fails is taken back to what it was.
    """
