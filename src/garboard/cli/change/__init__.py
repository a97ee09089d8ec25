"""`garboard change`: what a change of a cluster touches, and how far the cluster has drifted."""

import click

from garboard.cli.lazy import LazyCommand, LazyGroup

COMMANDS = {
    "plan": LazyCommand(
        "garboard.cli.change.plan:plan", "Show what a change would touch, and what is dangerous in it."
    ),
    "apply": LazyCommand(
        "garboard.cli.change.apply:apply", "Change a cluster: one node, what nodes share, then the others."
    ),
    "node": LazyCommand("garboard.cli.change.node:node", "Give this node what the cluster was changed to."),
    "status": LazyCommand("garboard.cli.change.status:status", "Show how far the last change is, node by node."),
    "history": LazyCommand("garboard.cli.change.history:history", "Show who changed what, when and why."),
    "rollback": LazyCommand("garboard.cli.change.rollback:rollback", "Change a cluster back to a former revision."),
    "resume": LazyCommand("garboard.cli.change.resume:resume", "Go on with a change that was cut short."),
    "unlock": LazyCommand("garboard.cli.change.unlock:unlock", "Break the Lease of somebody who is gone for good."),
    "restart": LazyCommand("garboard.cli.change.restart:restart", "Restart a component, because a file has changed."),
    "adopt": LazyCommand("garboard.cli.change.adopt:adopt", "Look at any kubeadm cluster, and say what to mend."),
    "drift": LazyCommand("garboard.cli.change.drift:drift", "Show how far nodes have drifted, field by field."),
    "confirm": LazyCommand(
        "garboard.cli.change.confirm:confirm", "Keep a change that is taken back unless somebody confirms it."
    ),
    "agent": LazyCommand("garboard.cli.change.agent:agent", "Have this node follow changes by itself."),
    "watch": LazyCommand("garboard.cli.change.watch:watch", "Keep or take back an unconfirmed change (a timer's)."),
    "rbac": LazyCommand("garboard.cli.change.rbac:rbac", "Print the roles that reading a cluster needs."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, epilog="Example: garboard change plan --set clusterName=blue")
def change() -> None:
    """Look at a cluster that kubeadm or garboard has made, and change it (KEP-28)."""
