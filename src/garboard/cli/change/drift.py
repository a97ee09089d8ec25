"""`garboard change drift`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from garboard.change.configuration import read_configuration
from garboard.change.document import plan_document
from garboard.change.drift_files import capture_node, node_to_capture
from garboard.change.drift_names import DriftNames
from garboard.change.drift_request import DriftRequest
from garboard.change.drift_text import drift_as_json, drift_as_text
from garboard.change.drifting import ClusterDrift, cluster_drift
from garboard.change.node_work import PlanOptions
from garboard.change.planning import plan_change
from garboard.change.rollout import ChangeIntent
from garboard.change.show import plan_text
from garboard.cli.change.carrying import message_option, via_option, yes_option
from garboard.cli.change.plan import exit_code
from garboard.cli.change.requests import only_option
from garboard.cli.console import ConsoleReporter, write_to_stderr
from garboard.cli.output import output_option, write_data
from garboard.cli.token.access import kubeconfig_option
from garboard.errors import BadUsage, GarboardError
from garboard.host import list_tree, make_folder, write_file
from garboard.host.root import exists
from garboard.lazy import lazy_module
from garboard.node.change_drift import observe_for, resolved
from garboard.node.change_observe import ObservedCluster, observe_cluster
from garboard.node.kubelet_observe import AskedKubelets, with_kubelets
from garboard.node.reporter import OutputFormat, who
from garboard.node.via import Via
from garboard.node.workflow import this_node
from garboard.values import dataclass

if TYPE_CHECKING:
    from garboard.node import change_apply, change_apply_via
else:  # drift is mostly looked at
    change_apply = lazy_module("garboard.node.change_apply")
    change_apply_via = lazy_module("garboard.node.change_apply_via")

DRIFTED = 10


@click.command(epilog="Example: garboard change drift --adopt --only kube-apiserver:--profiling")
@click.option("--adopt", is_flag=True, help="Record hand edits: in the configuration, else as patches of their nodes.")
@click.option("--correct", is_flag=True, help="Plan how hand edits are taken out; nothing is written.")
@only_option
@yes_option
@message_option
@via_option
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
def drift(kubeconfig: str | None, output: OutputFormat, **options: object) -> int:
    """Show how far nodes have drifted from the configuration of their cluster, field by field.

    Each field is shown as it is declared, on disk and running, with what decided it. What a recorded patch, the
    surroundings of a node or another spelling explain is no drift. Files are read on a node of the cluster, as root;
    from elsewhere static pods are seen as they run. Kubelets are asked what they run with where the rights allow that
    (change rbac --kubelets). Exits with 10 if there is drift.

    --adopt writes on a control plane what keeps the edits, and touches no node. --correct exits as change plan does;
    change apply --drift overwrite carries it out.
    """
    asked = _Asked(**options)  # type: ignore[arg-type]
    asked.refuse_mixed()
    if asked.adopt:
        return _adopt(asked, kubeconfig)
    if asked.correct:
        return _correct(asked, kubeconfig, output)
    observed = with_kubelets(observe_cluster(kubeconfig), kubeconfig, asked.asked_kubelets)
    found = cluster_drift(observed.snapshot, observed.mirrors, observed.workloads, observed.kubelets)
    text = drift_as_text(found, observed.notes, shows_explained=asked.shows_all)
    write_data(drift_as_json(found, observed.notes), output, text=text)
    if asked.capture is not None:
        _write(asked.capture, found, observed, asked.node)
    return DRIFTED if found.has_drift else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What was given on the command line."""

    adopt: bool
    correct: bool
    only: tuple[str, ...]
    yes: bool
    message: str
    via: str
    capture: Path | None
    node: str
    shows_all: bool
    kubelets: str | None

    @property
    def asked_kubelets(self) -> AskedKubelets | None:
        return AskedKubelets(self.kubelets) if self.kubelets else None

    def refuse_mixed(self) -> None:
        """Refuse options that would go unheard."""
        if sum((self.adopt, self.correct, self.capture is not None)) > 1:
            raise BadUsage("--adopt, --correct and --capture exclude each other", hint="one of them at a time")
        if self.only and not (self.adopt or self.correct):
            raise BadUsage("--only says which hand edits are adopted or corrected", hint="add --adopt or --correct")
        if (self.yes or self.message or self.via) and not self.adopt:
            raise BadUsage(
                "--yes, --message and --via are for --adopt, which alone writes",
                hint="garboard change apply --drift overwrite carries a correction out, and takes them as well",
            )


def _adopt(asked: _Asked, kubeconfig: str | None) -> int:
    """Record hand edits as a change, which has no part for any node."""
    only = "".join(f" --only {each}" for each in asked.only)
    intent = ChangeIntent(author=who(), message=asked.message, request=f"drift --adopt{only}", drift="adopt")
    wanted = change_apply.ApplyRequest(
        request=DriftRequest(policy="adopt", names=DriftNames.parse(asked.only)),
        intent=intent,
        kubeconfig=kubeconfig,
        is_asked=not asked.yes,
    )
    local = this_node(ConsoleReporter())
    if asked.via:
        return change_apply_via.apply_via(wanted, Via.parse(asked.via), local)
    return change_apply.apply_change(wanted, local)


def _correct(asked: _Asked, kubeconfig: str | None, output: OutputFormat) -> int:
    """Show the plan by which hand edits go, and how it is carried out."""
    request = DriftRequest(policy="overwrite", names=DriftNames.parse(asked.only))
    observed = observe_for(request, kubeconfig)
    made = plan_change(observed.snapshot, resolved(request, observed), options=PlanOptions(first=observed.here))
    for line in (*(f"note: {each}" for each in observed.notes), *(f"warning: {each}" for each in made.warnings)):
        write_to_stderr(f"{line}\n")
    write_data(plan_document(made), output, text=plan_text(made))
    if made.parts:
        only = "".join(f" --only '{each}'" for each in asked.only)
        write_to_stderr(f"hint: garboard change apply --drift overwrite{only} carries this out\n")
    return exit_code(made)


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
