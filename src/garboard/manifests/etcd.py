"""The etcd static pod of a node that runs its own member."""

from collections.abc import Iterator

from garboard.manifests.arguments import Argument, merged_arguments
from garboard.manifests.environment import extra_variables, merged_variables
from garboard.manifests.image_sources import etcd_image_source
from garboard.manifests.node import ControlPlaneNode
from garboard.manifests.pod import Component
from garboard.manifests.probes import ETCD_METRICS_PORT, etcd_probes
from garboard.manifests.sources import HostFact, cluster_field
from garboard.manifests.volumes import Mount, same_path
from garboard.model.addresses import join_host_port
from garboard.model.component import LocalEtcd
from garboard.model.go_paths import join_path
from garboard.model.images import etcd_image

NAME = "etcd"
CLIENT_URLS_ANNOTATION = "kubeadm.kubernetes.io/etcd.advertise-client-urls"
CLIENT_PORT, PEER_PORT = 2379, 2380

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


def etcd(node: ControlPlaneNode, local: LocalEtcd, initial_cluster: str = "") -> Component:
    """Describe the member of this node; `initial_cluster` names all of the cluster that it joins, itself included."""
    certificates = same_path("etcd-certs", f"{node.cluster.certificates_dir}/etcd", read_only=False)
    data = same_path("etcd-data", local.data_dir, read_only=False)
    return Component(
        name=NAME,
        image=etcd_image(node.cluster),
        image_source=etcd_image_source(node.cluster, local),
        arguments=merged_arguments(_defaults(node, local, initial_cluster), local.extra_args, _FIELD / "extraArgs"),
        mounts=(Mount(data, _FIELD / "dataDir"), Mount(certificates, cluster_field("certificatesDir"))),
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
    yield Argument("listen-metrics-urls", f"http://{join_host_port(node.loopback, ETCD_METRICS_PORT)}")
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
