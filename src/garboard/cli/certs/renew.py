"""`garboard certs renew`."""

from pathlib import Path

import click

from garboard.cli.certs.options import cert_dir_option, config_option, kubeconfig_dir_option, read_configuration
from garboard.cli.completing import complete_certificates
from garboard.cli.console import ConsoleReporter
from garboard.node.renewal import Renewal, renew_certificates
from garboard.node.workflow import this_node


@click.command(epilog="Example: garboard certs renew all --restart")
@click.argument("name", shell_complete=complete_certificates)
@config_option
@cert_dir_option
@kubeconfig_dir_option
@click.option("--restart", is_flag=True, help="Restart the static pods that read a renewed file only when they start.")
@click.option("--dry-run", is_flag=True, help="Print what would be issued and restarted, and change nothing.")
def renew(
    name: str, config: Path | None, cert_dir: str | None, kubeconfig_dir: str, *, restart: bool, dry_run: bool
) -> None:
    """Issue the certificate NAME again, or `all` of them, with a new key and new dates.

    NAME is as `certs check-expiration` shows it. Subject, names and usages are those of the existing certificate, and
    it does not matter when that ends. Key algorithm and validity are those of the configuration; without one, the
    algorithm stays and the validity is a year. Certificate authorities are not renewed. Nothing is written unless
    everything can be renewed.

    API server and etcd read their renewed certificates again by themselves; controller manager and scheduler do not.
    With --restart, as root on a control-plane node, whatever does not is restarted when no other node of the control
    plane is being changed, and is looked at until it runs steadily. `undo` brings back files and restarts again.
    """
    renewal = Renewal(
        name=name,
        configuration=read_configuration(config) if config else None,
        cert_dir=cert_dir,
        kubeconfig_dir=kubeconfig_dir,
        restarts=restart,
        is_shown=dry_run,
    )
    renew_certificates(renewal, this_node(ConsoleReporter()))
