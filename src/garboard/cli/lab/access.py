"""`garboard lab exec`, `shell`, `kubectl` and `kubeconfig`: programs run in a node, and against the cluster."""

import os
import sys
from pathlib import Path

import click

from garboard.cli.lab.wiring import labs, name_option
from garboard.errors import GarboardError
from garboard.host import read_file
from garboard.host.processes import become
from garboard.lab.labs import Labs


@click.command(
    "exec", context_settings={"ignore_unknown_options": True}, epilog="Example: garboard lab exec cp1 -- crictl ps"
)
@name_option
@click.argument("node")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def exec_(name: str, node: str, command: tuple[str, ...]) -> None:
    """Run COMMAND in NODE with this terminal; its exit status is ours."""
    become(labs().enter(name, node, list(command), env=_terminal()))


@click.command(epilog="Example: garboard lab shell cp1")
@name_option
@click.argument("node")
def shell(name: str, node: str) -> None:
    """Open a shell in NODE."""
    become(labs().enter(name, node, ["/bin/bash", "-l"], env={**_terminal(), "PS1": f"{node}:\\w# "}))


def _terminal() -> dict[str, str]:
    return {"TERM": os.environ.get("TERM", "dumb")}


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="Example: garboard lab kubectl get nodes",
)
@name_option
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def kubectl(name: str, arguments: tuple[str, ...]) -> None:
    """Run the kubectl of the lab's Kubernetes version against the lab, with ARGUMENTS as they are."""
    all_labs = labs()
    program = all_labs.binaries.locate("kubectl", str(all_labs.records.require(name).lab.version))
    become([program, "--kubeconfig", _kubeconfig(all_labs, name), *arguments])


@click.command(epilog='Example: export KUBECONFIG="$(garboard lab kubeconfig --path)"')
@name_option
@click.option("--path", "only_path", is_flag=True, help="Print where the file is instead of what is in it.")
def kubeconfig(name: str, only_path: bool) -> None:
    """Print the administrator's kubeconfig, for use on this machine."""
    path = _kubeconfig(labs(), name)
    sys.stdout.write(f"{path}\n" if only_path else read_file(path).decode())


def _kubeconfig(all_labs: Labs, name: str) -> Path:
    all_labs.records.require(name)
    path = all_labs.files(name).kubeconfig
    if not path.exists():
        raise GarboardError(
            f"lab {name} has no cluster",
            hint="make one in its nodes, or use `lab up --by kubeadm`",
            error_class="no-cluster",
        )
    return path
