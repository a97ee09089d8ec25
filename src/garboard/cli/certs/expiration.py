"""`garboard certs check-expiration`."""

import json
import sys

import click

from garboard.cli.certs.options import cert_dir_option, kubeconfig_dir_option, now, observe_node
from garboard.cli.output import OutputFormat, output_option, write_data


@click.command(epilog="Example: garboard certs check-expiration --output json")
@cert_dir_option
@kubeconfig_dir_option
@output_option
def check_expiration(cert_dir: str, kubeconfig_dir: str, output: OutputFormat) -> None:
    """Show when the certificates of this node and their authorities end.

    A certificate whose authority has no key here is externally managed: it cannot be renewed on this machine.
    """
    from garboard.pki.expiration import expiration_report, report_document, report_text

    started_at = now()
    report = expiration_report(observe_node(cert_dir, kubeconfig_dir), started_at)
    document = report_document(report, started_at)
    if output == "json":
        # Indented as kubeadm does, so that a script cannot tell the difference.
        sys.stdout.write(json.dumps(document, indent=4) + "\n")
        return
    write_data(document, output, text=report_text(report, started_at))
