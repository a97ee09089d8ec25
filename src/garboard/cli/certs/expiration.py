"""`garboard certs check-expiration`."""

import json
import sys
from datetime import timedelta
from pathlib import Path

import click

from garboard.cli.certs.options import (
    cert_dir_option,
    config_option,
    kubeconfig_dir_option,
    now,
    read_configuration,
)
from garboard.cli.flags import DaysOrDuration
from garboard.cli.output import output_option, write_data
from garboard.model.component import ExternalEtcd
from garboard.model.paths import DEFAULT_CERTIFICATES_DIR
from garboard.node.renewal import observe_node
from garboard.node.reporter import OutputFormat
from garboard.pki.expiration import expiration_report, refuse_expiring, report_document, report_text


@click.command(epilog="Example: garboard certs check-expiration --within 30d || systemctl start renewal")
@config_option
@cert_dir_option
@kubeconfig_dir_option
@click.option(
    "--within",
    type=DaysOrDuration(),
    metavar="TIME",
    help="Exit with 10 if a certificate or an authority expires within this time, such as 30d or 36h.",
)
@output_option
def check_expiration(
    config: Path | None, cert_dir: str | None, kubeconfig_dir: str, within: timedelta | None, output: OutputFormat
) -> None:
    """Show when the certificates of this node and their authorities end.

    A certificate whose authority has no key here is externally managed: it cannot be renewed on this machine. The exit
    code is 0 whatever has expired, as with kubeadm; with --within it tells. What is missing does not count.
    """
    cluster = read_configuration(config).cluster if config else None
    folder = cert_dir or (cluster.certificates_dir if cluster else DEFAULT_CERTIFICATES_DIR)
    has_external_etcd = cluster is not None and isinstance(cluster.etcd, ExternalEtcd)
    started_at = now()
    observed = observe_node(folder, kubeconfig_dir)
    report = expiration_report(observed, started_at, has_external_etcd=has_external_etcd)
    document = report_document(report, started_at)
    if output == "json":
        # Indented as kubeadm does, so that a script cannot tell the difference.
        sys.stdout.write(json.dumps(document, indent=4) + "\n")
    else:
        write_data(document, output, text=report_text(report, started_at))
    if within is not None:
        refuse_expiring(report, started_at, within)
