"""`garboard change adopt`."""

import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from garboard.change.adopt import adopt_report
from garboard.change.adopt_drift import PATCHES_FOLDER, drift_findings
from garboard.change.adopt_text import report_as_json, report_as_text
from garboard.change.reads import ADOPT_READS
from garboard.cli.output import output_option, write_data
from garboard.cli.token.access import kubeconfig_option
from garboard.host import write_file
from garboard.node.change_observe import observe_cluster, saved_text
from garboard.node.reporter import OutputFormat


@click.command(epilog="Example: garboard change adopt --save snapshot.json")
@click.option(
    "--save", type=click.Path(path_type=Path), metavar="FILE",
    help="Write what was seen there, for change plan --observed; nothing secret is in it.",
)  # fmt: skip
@kubeconfig_option
@output_option
def adopt(save: Path | None, kubeconfig: str | None, output: OutputFormat) -> None:
    """Look at a cluster that kubeadm or garboard has made, and say what to mend before it is changed.

    Nothing is written, neither to the cluster nor to its nodes. From any machine it shows what the API server knows;
    on a node of the cluster, as root, also its files and certificates, and the members of etcd.
    """
    observed = observe_cluster(kubeconfig, ADOPT_READS, paths=(PATCHES_FOLDER,))
    drift = drift_findings(observed.snapshot, observed.mirrors, observed.workloads)
    report = adopt_report(
        observed.snapshot,
        datetime.now(UTC),
        here=observed.here,
        is_whole=observed.is_whole,
        notes=observed.notes,
        drift=drift,
    )
    if save is not None:
        write_file(save, saved_text(observed.snapshot).encode(), mode=0o600)
        sys.stderr.write(f"wrote {save}\n")
    write_data(report_as_json(report), output, text=report_as_text(report))
