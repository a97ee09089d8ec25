"""`garboard change drift`."""

import sys
from pathlib import Path

import click

from garboard.change.configuration import read_configuration
from garboard.change.drift_files import capture_node, node_to_capture
from garboard.change.drift_text import drift_as_json, drift_as_text
from garboard.change.drifting import ClusterDrift, cluster_drift
from garboard.cli.output import output_option, write_data
from garboard.cli.token.access import kubeconfig_option
from garboard.errors import GarboardError
from garboard.host import list_tree, make_folder, write_file
from garboard.host.root import exists
from garboard.node.change_observe import ObservedCluster, observe_cluster
from garboard.node.kubelet_observe import AskedKubelets, with_kubelets
from garboard.node.reporter import OutputFormat

DRIFTED = 10


@click.command(epilog="Example: garboard change drift --capture ./patches")
@click.option(
    "--capture", type=click.Path(path_type=Path), metavar="DIR",
    help="Write the hand edits of one node there, as patches that kubeadm reads, too.",
)  # fmt: skip
@click.option("--node", default="", metavar="NAME", help="The node that --capture means.  [default: this one]")
@click.option("--all", "shows_all", is_flag=True, help="Show also what is explained: patches, surroundings, spelling.")
@click.option(
    "--kubelets",
    type=click.Choice([each.value for each in AskedKubelets]),
    default=None,
    help="Whose kubelets are asked what they run with.  [default: own on a node, else all]",
)
@kubeconfig_option
@output_option
def drift(
    capture: Path | None,
    node: str,
    shows_all: bool,
    kubelets: str | None,
    kubeconfig: str | None,
    output: OutputFormat,
) -> int:
    """Show how far nodes have drifted from the configuration of their cluster, field by field.

    Each field is shown as it is declared, on disk and running, with what decided it. What a recorded patch, the
    surroundings of a node or another spelling explain is no drift. Files are read on a node of the cluster, as root;
    from elsewhere static pods are seen as they run. Kubelets are asked what they run with where the rights allow that
    (change rbac --kubelets). Exits with 10 if there is drift.
    """
    asked = AskedKubelets(kubelets) if kubelets else None
    observed = with_kubelets(observe_cluster(kubeconfig), kubeconfig, asked)
    found = cluster_drift(observed.snapshot, observed.mirrors, observed.workloads, observed.kubelets)
    text = drift_as_text(found, observed.notes, shows_explained=shows_all)
    write_data(drift_as_json(found, observed.notes), output, text=text)
    if capture is not None:
        _write(capture, found, observed, node)
    return DRIFTED if found.has_drift else 0


def _write(folder: Path, found: ClusterDrift, observed: ObservedCluster, wanted: str) -> None:
    if exists(folder) and list_tree(folder):
        raise GarboardError(
            f"{folder} has files in it", hint="name a directory that is empty or does not exist", error_class="exists"
        )
    name = node_to_capture(found, observed.here, wanted)
    release = read_configuration(observed.snapshot).cluster.release
    captured = capture_node(found, observed.snapshot, release, name)
    make_folder(folder)
    for file, text in captured.files.items():
        make_folder((folder / file).parent)
        write_file(folder / file, text.encode())
    sys.stderr.write(f"wrote {len(captured.files)} patches of node {name} to {folder}, {captured.kept} edits\n")
    for each in captured.left:
        sys.stderr.write(f"warning: {each.where} {each.field} cannot be kept by a patch of this minor\n")
    sys.stderr.write(f"hint: garboard change plan --patches {folder} shows what keeping them changes\n")
