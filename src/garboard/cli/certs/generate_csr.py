"""`garboard certs generate-csr`."""

from pathlib import Path

import click

from garboard.cli.certs.options import (
    cert_dir_option,
    config_option,
    kubeconfig_dir_option,
    now,
    read_configuration,
)


@click.command(epilog="Example: garboard certs generate-csr --config kubeadm.yaml --cert-dir pki --kubeconfig-dir .")
@config_option
@cert_dir_option
@kubeconfig_dir_option
def generate_csr(config: Path | None, cert_dir: str | None, kubeconfig_dir: str) -> None:
    """Make keys and signing requests for an external certificate authority.

    Every certificate gets a .key and a .csr file; put the signed certificate beside them as .crt. Every kubeconfig is
    written without its certificates, with a .csr file beside it. Files that exist are never overwritten.
    """
    from garboard.host import HostFolder
    from garboard.pki.files import write_files
    from garboard.pki.inputs import inputs_of
    from garboard.pki.keys import PooledKeys
    from garboard.pki.signing_requests import (
        CERTIFICATE_REQUEST_FILES,
        KUBECONFIG_REQUEST_FILES,
        certificate_requests,
        kubeconfig_requests,
        refuse_to_overwrite,
    )

    configuration = read_configuration(config)
    inputs = inputs_of(configuration)
    certificates_dir = cert_dir or configuration.cluster.certificates_dir
    pki, conf = HostFolder(certificates_dir), HostFolder(kubeconfig_dir)
    refuse_to_overwrite(pki, CERTIFICATE_REQUEST_FILES)
    refuse_to_overwrite(conf, KUBECONFIG_REQUEST_FILES)
    with PooledKeys([inputs.key_algorithm] * 12) as keys:
        started_at = now()
        certificates = certificate_requests(inputs, keys, started_at)
        kubeconfigs = kubeconfig_requests(inputs, keys, started_at)
    for written, folder, files in ((certificates_dir, pki, certificates), (kubeconfig_dir, conf, kubeconfigs)):
        click.echo(f"generating keys and CSRs in {written}")
        write_files(folder, files)
        for file in files:
            if file.name.endswith(".csr"):
                click.echo(f"  {file.name.removesuffix('.csr')}")
