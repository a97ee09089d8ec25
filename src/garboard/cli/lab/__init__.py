"""`garboard lab`: the table of its commands; each module below holds those that belong together."""

import click

from garboard.cli.lazy import LazyCommand, LazyGroup


def _command(path: str, summary: str) -> LazyCommand:
    return LazyCommand(f"garboard.cli.lab.{path}", summary)


COMMANDS = {
    "up": _command("up:up", "Make a lab and wait until its cluster is ready."),
    "down": _command("down:down", "Remove a lab without a trace."),
    "list": _command("overview:list_", "Show the labs of this machine."),
    "status": _command("overview:status", "Show the nodes of a lab and whether its cluster is ready."),
    "kubectl": _command("access:kubectl", "Run kubectl against a lab."),
    "kubeconfig": _command("access:kubeconfig", "Print the kubeconfig of a lab."),
    "exec": _command("access:exec_", "Run a command in a node."),
    "shell": _command("access:shell", "Open a shell in a node."),
    "logs": _command("overview:logs", "Show the logs of a node's services and pods."),
    "load": _command("nodes:load", "Import image archives into every node."),
    "add-node": _command("nodes:add_node", "Add a node to a lab."),
    "kubelet": _command("nodes:kubelet", "Install the kubelet of another release on a node."),
    "stop": _command("nodes:stop", "Stop a node as a power cut would."),
    "start": _command("nodes:start", "Start a stopped node, or all of them, again."),
    "partition": _command("nodes:partition", "Cut two nodes off from each other."),
    "heal": _command("nodes:heal", "Undo partitions."),
    "snapshot": _command("snapshots:snapshot", "Keep a lab as a snapshot, or remove one."),
    "snapshots": _command("snapshots:snapshots", "Show the snapshots of labs."),
    "prune": _command("down:prune", "Tell and remove what labs have left on disk."),
    "binaries": _command("binaries:binaries", "Find or make the programs that a lab runs."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, epilog="Example: garboard lab up && garboard lab kubectl get nodes")
def lab() -> None:
    """A real Kubernetes cluster on this machine: nodes are namespaces, nothing else is installed."""
