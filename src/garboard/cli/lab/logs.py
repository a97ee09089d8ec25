"""`garboard lab logs`."""

import click

from garboard.cli.lab.wiring import labs, name_option
from garboard.errors import InvalidValue
from garboard.host.processes import become
from garboard.lab.logs import find_logs, list_logs


@click.command(epilog="Example: garboard lab logs cp1 kube-apiserver --lines 50")
@name_option
@click.argument("node")
@click.argument("of", default="kubelet")
@click.option("-n", "--lines", default=100, show_default=True, help="How many lines from the end.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what is written from now on.")
def logs(name: str, node: str, of: str, lines: int, follow: bool) -> None:
    """Show a log of NODE: `kubelet`, `containerd`, `node`, or that of the pods whose name begins with OF."""
    all_labs = labs()
    all_labs.records.require(name).lab.node(node)
    var = all_labs.files(name).node(node).var
    found = find_logs(var, of)
    if not found:
        raise InvalidValue(f"node {node} has no log of {of!r}", hint=f"there are: {', '.join(list_logs(var))}")
    become(["tail", "-n", str(lines), *(["-F"] if follow else []), *found])
