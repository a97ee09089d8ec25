"""The etcd static pod of a node that runs its own member."""

from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

from garboard.errors import InvalidValue
from garboard.manifests.container import (
    Argument,
    PodMount,
    extra_variables,
    last_arg,
    merged_arguments,
    merged_variables,
    same_path,
)
from garboard.manifests.node import ControlPlaneNode
from garboard.manifests.pod import Probes, StaticPodComponent
from garboard.manifests.sources import HostFact, cluster_field, etcd_image_source
from garboard.model.addresses import is_port, join_host_port, url_scheme
from garboard.model.cluster import etcd_image
from garboard.model.component import LocalEtcd
from garboard.model.go import join_path

NAME = "etcd"
CLIENT_URLS_ANNOTATION = "kubeadm.kubernetes.io/etcd.advertise-client-urls"
CLIENT_PORT, PEER_PORT, METRICS_PORT = 2379, 2380, 2381

_FIELD = cluster_field("etcd", "local")
_MEMBERS = HostFact("the members of the etcd cluster that is joined")
_CERTIFICATE_FLAGS = {
    "cert-file": "server.crt",
    "key-file": "server.key",
    "peer-cert-file": "peer.crt",
    "peer-key-file": "peer.key",
    "peer-trusted-ca-file": "ca.crt",
    "trusted-ca-file": "ca.crt",
}
_FIXED_FLAGS = {
    "client-cert-auth": "true",
    "feature-gates": "InitialCorruptCheck=true",
    "peer-client-cert-auth": "true",
    "snapshot-count": "10000",
    "watch-progress-notify-interval": "5s",
}


def etcd(node: ControlPlaneNode, local: LocalEtcd, initial_cluster: str = "") -> StaticPodComponent:
    """Describe the member of this node; `initial_cluster` names all of the cluster that it joins, itself included."""
    certificates = same_path("etcd-certs", f"{node.cluster.certificates_dir}/etcd", read_only=False)
    data = same_path("etcd-data", local.data_dir, read_only=False)
    return StaticPodComponent(
        name=NAME,
        image=etcd_image(node.cluster),
        image_source=etcd_image_source(node.cluster, local),
        arguments=merged_arguments(_defaults(node, local, initial_cluster), local.extra_args, _FIELD / "extraArgs"),
        mounts=(PodMount(data, _FIELD / "dataDir"), PodMount(certificates, cluster_field("certificatesDir"))),
        variables=merged_variables(extra_variables(local.extra_envs, _FIELD / "extraEnvs", node.cluster.release)),
        requests={"cpu": "100m", "memory": "100Mi"},
        probes=etcd_probes(node, local),
        annotations={CLIENT_URLS_ANNOTATION: _url(node.endpoint.advertise_address, CLIENT_PORT)},
        annotation_source=node.address_field,
    )


def _defaults(node: ControlPlaneNode, local: LocalEtcd, initial_cluster: str) -> Iterator[Argument]:
    address = node.endpoint.advertise_address
    client, peer = _url(address, CLIENT_PORT), _url(address, PEER_PORT)
    yield Argument("name", node.name, node.name_field)
    yield Argument("data-dir", local.data_dir, _FIELD / "dataDir")
    yield Argument("advertise-client-urls", client, node.address_field)
    yield Argument("listen-client-urls", f"{_url(node.loopback, CLIENT_PORT)},{client}", node.address_field)
    yield Argument("listen-metrics-urls", f"http://{join_host_port(node.loopback, METRICS_PORT)}")
    yield Argument("listen-peer-urls", peer, node.address_field)
    yield Argument("initial-advertise-peer-urls", peer, node.address_field)
    if initial_cluster:
        yield Argument("initial-cluster", initial_cluster, _MEMBERS)
        yield Argument("initial-cluster-state", "existing", _MEMBERS)
    else:
        yield Argument("initial-cluster", f"{node.name}={peer}", node.name_field)
    yield from (Argument(name, value) for name, value in _FIXED_FLAGS.items())
    for name, file in _CERTIFICATE_FLAGS.items():
        path = join_path(node.cluster.certificates_dir, "etcd", file)
        yield Argument(name, path, cluster_field("certificatesDir"))


def _url(address: str, port: int) -> str:
    return f"https://{join_host_port(address, port)}"


def etcd_probes(node: ControlPlaneNode, local: LocalEtcd) -> Probes:
    """Return probes of the first metrics URL that the user gives, as far as it can be read."""
    found = last_arg(local.extra_args, "listen-metrics-urls")
    host, port, scheme, source = node.loopback, METRICS_PORT, "HTTP", None
    if found is not None:
        index, arg = found
        host, port, scheme = _metrics_endpoint(arg.value.partition(",")[0], node.loopback)
        source = _FIELD / "extraArgs" / index
    return Probes(
        host=host,
        port=port,
        scheme=scheme,
        liveness="/livez",
        readiness="/readyz",
        startup="/readyz",
        host_source=source,
        port_source=source,
    )


def _metrics_endpoint(url: str, loopback: str) -> tuple[str, int, str]:
    try:
        scheme = url_scheme(url)
    except InvalidValue:
        return loopback, METRICS_PORT, "HTTP"
    authority = urlsplit(url).netloc.rpartition("@")[2] if "//" in url else ""
    host, port = _split_authority(authority)
    number = int(port) if is_port(port) else METRICS_PORT
    return unquote(host) or loopback, number, "HTTPS" if scheme == "https" else "HTTP"


def _split_authority(authority: str) -> tuple[str, str]:
    """Split as Go's url.Hostname and url.Port do: the last colon counts, unless brackets hold it."""
    head, bracket, tail = authority.rpartition("]")
    if bracket:
        return head.removeprefix("["), tail.removeprefix(":")
    host, colon, port = authority.rpartition(":")
    return (host, port) if colon else (authority, "")
