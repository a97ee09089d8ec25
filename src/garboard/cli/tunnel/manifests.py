"""`garboard tunnel manifests`."""

import sys
from pathlib import Path

import click

from garboard.errors import BadUsage
from garboard.host import Machine
from garboard.model.image import GARBOARD_IMAGE
from garboard.model.tunnel import parse_bind_address
from garboard.tunnel.deploy.manifests import bootstrap_kubeconfig, deployment_files
from garboard.tunnel.deploy.plan import Authentication, Deployment
from garboard.tunnel.destinations import Destination
from garboard.tunnel.server.tenants import Mode

_EXAMPLE = (
    "Example: garboard tunnel manifests -o out --server-host konnectivity.example.com --bind-address 10.255.0.1 "
    "--cluster-ca /etc/kubernetes/pki/ca.crt --token abcdef.0123456789abcdef"
)


@click.command(epilog=_EXAMPLE)
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder.")
@click.option("--server-host", required=True, help="Name or address of the server, as agents dial it.")
@click.option("--agent-port", default=8132, show_default=True, help="Its port for agents.")
@click.option("--server-count", default=1, show_default=True, help="How many servers there are behind it.")
@click.option("--mode", type=click.Choice(["grpc", "http-connect"]), default="grpc", show_default=True)
@click.option(
    "--authentication",
    type=click.Choice(["certificate", "token"]),
    default="certificate",
    show_default=True,
    help="How agents show who they are; with tokens they are pods of a DaemonSet, without --bind-address.",
)
@click.option("--bind-address", help="Address on every node where its agent stands in for the API server.")
@click.option("--local-port", default=6443, show_default=True, help="Port there; the API server listens on the same.")
@click.option("--api-server", default="127.0.0.1:6443", show_default=True, help="API server, as the server reaches it.")
@click.option(
    "--image", default=GARBOARD_IMAGE, show_default=True, help="Image with garboard in it (as `image` writes)."
)
@click.option("--pki-dir", default="/etc/kubernetes/konnectivity", show_default=True, help="Where `tunnel certs` go.")
@click.option("--cluster-ca", type=click.Path(path_type=Path), help="The cluster's authority, for the kubelet.")
@click.option("--token", help="A bootstrap token, for the kubelet; `-` reads it from stdin.")
def manifests(
    output: Path, server_host: str, agent_port: int, server_count: int, mode: str, authentication: str,
    bind_address: str | None, local_port: int, api_server: str, image: str, pki_dir: str, cluster_ca: Path | None,
    token: str | None,
) -> None:  # fmt: skip
    """Write what makes a cluster use the tunnel: static pods, a unit, RBAC, the API server's egress and flags.

    Folder control-plane/ is for control-plane nodes, node/ for every node, cluster/ for `kubectl apply`. With
    --cluster-ca and --token, node/ gets a bootstrap kubeconfig that leads the kubelet to its agent.
    """
    if authentication == "token" and bind_address:
        raise BadUsage(
            "--bind-address needs --authentication certificate",
            hint="a static pod has no token of the API server that it is there to reach",
        )
    if (cluster_ca is None) != (token is None) or (token and not bind_address):
        raise BadUsage("--cluster-ca, --token and --bind-address go together", hint="give all three, or no token")
    deployment = Deployment(
        server_host=server_host,
        agent_port=agent_port,
        server_count=server_count,
        mode=Mode(mode),
        authentication=Authentication(authentication),
        bind_address=parse_bind_address(bind_address) if bind_address else None,
        local_port=local_port,
        api_server=str(Destination.parse(api_server)),
        image=image,
        pki_folder=pki_dir,
    )
    machine = Machine()
    files = {name: (text.encode(), 0o644) for name, text in deployment_files(deployment).items()}
    if cluster_ca is not None and token is not None:
        secret = sys.stdin.readline().strip() if token == "-" else token
        config = bootstrap_kubeconfig(deployment, machine.read_file(cluster_ca), secret)
        files["node/bootstrap-kubelet.conf"] = (config, 0o600)
    for name, (data, mode_bits) in sorted(files.items()):
        machine.make_folder((output / name).parent)
        machine.write_file(output / name, data, mode=mode_bits)
        click.echo(str(output / name))
