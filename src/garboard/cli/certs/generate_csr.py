"""`garboard certs generate-csr`."""

import platform

import click

from garboard.cli.certs.options import (
    bind_port_option,
    cert_dir_option,
    endpoint_option,
    kubeconfig_dir_option,
    now,
    read_address,
    read_subnets,
    split_commas,
)


@click.command(
    epilog="Example: garboard certs generate-csr --cert-dir pki --kubeconfig-dir . "
    "--apiserver-advertise-address 10.0.0.1 --control-plane-endpoint api.example.com"
)
@cert_dir_option
@kubeconfig_dir_option
@click.option(
    "--apiserver-advertise-address",
    "address",
    metavar="IP",
    required=True,
    help="The address of this node's API server.",
)
@bind_port_option
@endpoint_option
@click.option("--node-name", help="The name of the node.  [default: the host name]")
@click.option(
    "--apiserver-cert-extra-sans",
    "sans",
    metavar="NAMES",
    multiple=True,
    help="More names and addresses of the API server, separated by commas.",
)
@click.option("--service-cidr", default="10.96.0.0/12", show_default=True, help="The addresses of services.")
@click.option("--service-dns-domain", default="cluster.local", show_default=True, help="The domain of services.")
def generate_csr(
    cert_dir: str,
    kubeconfig_dir: str,
    address: str,
    port: int,
    endpoint: str | None,
    node_name: str | None,
    sans: tuple[str, ...],
    service_cidr: str,
    service_dns_domain: str,
) -> None:
    """Make keys and signing requests for an external certificate authority.

    Every certificate gets a .key and a .csr file; put the signed certificate beside them as .crt. Every kubeconfig is
    written without its certificates, with a .csr file beside it. Files that exist are never overwritten.
    """
    from garboard.host import HostFolder
    from garboard.pki import Endpoint, PkiInputs
    from garboard.pki.keys import PooledKeys
    from garboard.pki.signing_requests import (
        CERTIFICATE_REQUEST_FILES,
        KUBECONFIG_REQUEST_FILES,
        certificate_requests,
        kubeconfig_requests,
        refuse_to_overwrite,
    )
    from garboard.pki.store import write_files

    inputs = PkiInputs(
        node_name=(node_name or platform.node()).strip().lower(),
        advertise_address=read_address(address),
        bind_port=port,
        control_plane_endpoint=Endpoint.parse(endpoint) if endpoint else None,
        service_subnets=read_subnets(service_cidr),
        dns_domain=service_dns_domain,
        api_server_cert_sans=split_commas(sans),
    )
    pki, conf = HostFolder(cert_dir), HostFolder(kubeconfig_dir)
    refuse_to_overwrite(pki, CERTIFICATE_REQUEST_FILES)
    refuse_to_overwrite(conf, KUBECONFIG_REQUEST_FILES)
    with PooledKeys([inputs.key_algorithm] * 12) as keys:
        started_at = now()
        certificates = certificate_requests(inputs, keys, started_at)
        kubeconfigs = kubeconfig_requests(inputs, keys, started_at)
    for folder, files in ((pki, certificates), (conf, kubeconfigs)):
        click.echo(f"generating keys and CSRs in {folder.root}")
        write_files(folder, files)
        for file in files:
            if file.name.endswith(".csr"):
                click.echo(f"  {file.name.removesuffix('.csr')}")
