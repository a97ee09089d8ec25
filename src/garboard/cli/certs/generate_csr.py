"""`garboard certs generate-csr`."""

from pathlib import Path

import click

from garboard.cli.certs.options import cert_dir_option, config_option, kubeconfig_dir_option, read_configuration
from garboard.cli.console import ConsoleReporter
from garboard.node.credentials import write_signing_requests


@click.command(epilog="Example: garboard certs generate-csr --config kubeadm.yaml --cert-dir pki --kubeconfig-dir .")
@config_option
@cert_dir_option
@kubeconfig_dir_option
def generate_csr(config: Path | None, cert_dir: str | None, kubeconfig_dir: str) -> None:
    """Make keys and signing requests for an external certificate authority.

    Every certificate gets a .key and a .csr file; put the signed certificate beside them as .crt. Every kubeconfig is
    written without its certificates, with a .csr file beside it. Files that exist are never overwritten.
    """
    write_signing_requests(read_configuration(config), cert_dir, kubeconfig_dir, ConsoleReporter())
