"""`garboard lab`: the table of its commands; each module below is one of them, or two that belong together."""

import click

from garboard.cli.lazy import LazyCommand, LazyGroup


def _command(path: str, summary: str) -> LazyCommand:
    return LazyCommand(f"garboard.cli.lab.{path}", summary)


COMMANDS = {
    "up": _command("up:up", "Make a lab and wait until its cluster is ready."),
    "down": _command("down:down", "Remove a lab without a trace."),
    "list": _command("list:list_", "Show the labs of this machine."),
    "status": _command("status:status", "Show the nodes of a lab and whether its cluster is ready."),
    "kubectl": _command("kubectl:kubectl", "Run kubectl against a lab."),
    "kubeconfig": _command("kubectl:kubeconfig", "Print the kubeconfig of a lab."),
    "exec": _command("exec:exec_", "Run a command in a node."),
    "shell": _command("exec:shell", "Open a shell in a node."),
    "logs": _command("logs:logs", "Show the logs of a node's services and pods."),
    "load": _command("load:load", "Import image archives into every node."),
    "add-node": _command("add_node:add_node", "Add a node to a lab."),
    "stop": _command("power:stop", "Stop a node as a power cut would."),
    "start": _command("power:start", "Start a node again."),
    "partition": _command("partition:partition", "Cut two nodes off from each other."),
    "heal": _command("partition:heal", "Undo partitions."),
    "prune": _command("prune:prune", "Remove what is left of labs that nobody runs."),
    "binaries": _command("binaries:binaries", "Find or make the programs that a lab runs."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, epilog="Example: garboard lab up && garboard lab kubectl get nodes")
def lab() -> None:
    """A real Kubernetes cluster on this machine: nodes are namespaces, nothing else is installed."""
