"""`garboard lab list`, `status` and `logs`: what there is to see of labs and their nodes."""

import click

from garboard.cli.lab.wiring import labs, name_option
from garboard.cli.output import output_option, write_data
from garboard.documents import Json
from garboard.errors import BadUsage
from garboard.host.processes import become
from garboard.lab.overview import LabStatus, Summary, find_logs, inspect, list_logs, summarize
from garboard.node.reporter import OutputFormat


@click.command("list", epilog="Example: garboard lab list --output json")
@output_option
def list_(output: OutputFormat) -> None:
    """Show the labs of this machine."""
    found = summarize(labs())
    data: list[Json] = [each.as_json() for each in found]
    write_data(data, output, text=_table(found))


def _table(found: list[Summary]) -> str:
    if not found:
        return "no labs; make one with `garboard lab up`\n"
    rows = [("NAME", "STATE", "KUBERNETES", "BY", "NODES", "MEMORY", "ENDPOINT")]
    rows += [(s.name, s.state, s.version, s.by, str(s.nodes), s.memory_text, s.endpoint) for s in found]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "".join(
        "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in rows
    )


@click.command(epilog="Example: garboard lab status --output json")
@name_option
@output_option
def status(name: str, output: OutputFormat) -> int:
    """Show the nodes of a lab, their services and whether the cluster is ready; exit 5 when it is not."""
    found = inspect(labs(), name)
    write_data(found.as_json(), output, text=_text(found))
    return 5 if found.missing else 0


def _text(found: LabStatus) -> str:
    lines = [f"{'NODE':12}{'ROLE':16}{'ADDRESS':14}{'STATE':10}SERVICES"]
    for node in found.nodes:
        units = ", ".join(f"{unit} {word}" for unit, word in node.units.items())
        lines.append(f"{node.name:12}{node.role:16}{node.address:14}{node.state:10}{units}".rstrip())
    lines += [f"cut off from each other: {' and '.join(pair)}" for pair in found.partitions]
    lines += [f"missing: {each}" for each in found.missing] or ["ready" if found.is_cluster else "bare nodes"]
    return "\n".join(lines) + "\n"


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
        raise BadUsage(f"node {node} has no log of {of!r}", hint=f"there are: {', '.join(list_logs(var))}")
    become(["tail", "-n", str(lines), *(["-F"] if follow else []), *found])
