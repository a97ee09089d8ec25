"""`garboard certs renew`."""

from pathlib import Path

import click

from garboard.cli.certs.options import (
    DEFAULT_CERT_DIR,
    cert_dir_option,
    config_option,
    kubeconfig_dir_option,
    now,
    observe_node,
    read_configuration,
)

_DONE = (
    "\nDone renewing certificates. You must restart the kube-apiserver, kube-controller-manager, kube-scheduler and "
    "etcd, so that they can use the new certificates."
)


@click.command(epilog="Example: garboard certs renew all")
@click.argument("name")
@config_option
@cert_dir_option
@kubeconfig_dir_option
def renew(name: str, config: Path | None, cert_dir: str | None, kubeconfig_dir: str) -> None:
    """Issue the certificate NAME again, or `all` of them, with a new key and new dates.

    NAME is as `certs check-expiration` shows it. Subject, names and usages are those of the existing certificate, and
    it does not matter when that ends. Key algorithm and validity are those of the configuration; without one, the
    algorithm stays and the validity is a year. Certificate authorities are not renewed. Nothing is written unless
    everything can be renewed.
    """
    from garboard.host import HostFolder
    from garboard.pki.files import write_files
    from garboard.pki.inputs import inputs_of
    from garboard.pki.keys import PooledKeys
    from garboard.pki.renewal import Renew, decide_renewal, renewable, renewables, renewed_files
    from garboard.pki.spec import CERTIFICATE_VALIDITY

    configuration = read_configuration(config) if config else None
    inputs = inputs_of(configuration) if configuration else None
    folder = cert_dir or (configuration.cluster.certificates_dir if configuration else DEFAULT_CERT_DIR)
    has_external_etcd = inputs is not None and inputs.has_external_etcd
    targets = renewables(has_external_etcd=has_external_etcd) if name == "all" else (renewable(name),)
    validity = inputs.certificate_validity if inputs else CERTIFICATE_VALIDITY
    observed = observe_node(folder, kubeconfig_dir)
    decisions = [decide_renewal(each, observed, validity, now()) for each in targets]
    due = [each for each in decisions if isinstance(each, Renew)]
    algorithms = {each: inputs.key_algorithm if inputs else each.found_algorithm for each in due}
    with PooledKeys(algorithms.values()) as keys:
        files = {each: renewed_files(each, observed, algorithm, keys) for each, algorithm in algorithms.items()}
    for decision in decisions:
        if isinstance(decision, Renew):
            write_files(HostFolder(kubeconfig_dir if decision.target.is_kubeconfig else folder), files[decision])
        click.echo(decision.message)
    if name == "all":
        click.echo(_DONE)
