"""`garboard certs renew`."""

import click

from garboard.cli.certs.options import cert_dir_option, kubeconfig_dir_option, now, observe_node

_DONE = (
    "\nDone renewing certificates. You must restart the kube-apiserver, kube-controller-manager, kube-scheduler and "
    "etcd, so that they can use the new certificates."
)


@click.command(epilog="Example: garboard certs renew all")
@click.argument("name")
@cert_dir_option
@kubeconfig_dir_option
def renew(name: str, cert_dir: str, kubeconfig_dir: str) -> None:
    """Issue the certificate NAME again, or `all` of them, with a new key and new dates.

    NAME is as `certs check-expiration` shows it. Subject, names, usages and key algorithm are those of the existing
    certificate, and it does not matter when that ends. Certificate authorities are not renewed. Nothing is written
    unless everything can be renewed.
    """
    from garboard.host import HostFolder
    from garboard.pki.keys import PooledKeys
    from garboard.pki.renewal import Renew, decide_renewal, renewable, renewables, renewed_files
    from garboard.pki.spec import CERTIFICATE_VALIDITY
    from garboard.pki.store import write_files

    observed = observe_node(cert_dir, kubeconfig_dir)
    targets = renewables() if name == "all" else (renewable(name),)
    decisions = [decide_renewal(each, observed, CERTIFICATE_VALIDITY, now()) for each in targets]
    due = [each for each in decisions if isinstance(each, Renew)]
    with PooledKeys(each.found_algorithm for each in due) as keys:
        files = {each: renewed_files(each, observed, each.found_algorithm, keys) for each in due}
    for decision in decisions:
        if isinstance(decision, Renew):
            folder = HostFolder(kubeconfig_dir if decision.target.is_kubeconfig else cert_dir)
            write_files(folder, files[decision])
        click.echo(decision.message)
    if name == "all":
        click.echo(_DONE)
