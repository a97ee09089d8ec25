"""What a field touches, found out by rendering a fresh configuration with and without it."""

import random
from collections.abc import Iterator, Mapping
from functools import cache

from garboard.change.attribute import CLUSTER, KUBE_PROXY, KUBELET
from garboard.change.configuration import StoredConfiguration, endpoint_of, stored_data
from garboard.change.rendering import ClusterRendering
from garboard.change.snapshot import ClusterSnapshot
from garboard.config import ConfigFile, FixedFacts, ReadOptions
from garboard.config.component_configs import COMPONENT_KINDS
from garboard.documents import Json, write_yaml
from garboard.model import KubernetesVersion
from garboard.schema import FieldType, StructType, load_schema
from tests.support.change.snapshots import ENDPOINT, SOCKET, MadeUpCluster

# Values of fields that not every text fits.
_SPECIAL: Mapping[str, tuple[Json, ...]] = {
    "kubernetesVersion": ("PATCH",),
    "controlPlaneEndpoint": ("other.example.com:6443", "192.0.2.99:6443"),
    "networking.serviceSubnet": ("172.20.0.0/16", "fd00:1::/112"),
    "networking.podSubnet": ("10.128.0.0/14", "10.244.0.0/15"),
    "networking.dnsDomain": ("corp.example", "k8s.internal"),
    "certificatesDir": ("/srv/pki", "/etc/pki/k8s"),
    "imageRepository": ("mirror.example.com/k8s", "localhost:5000"),
    "dns.imageRepository": ("mirror.example.com/dns",),
    "etcd.local.imageRepository": ("mirror.example.com/etcd",),
    "dns.imageTag": ("v1.13.0",),
    "etcd.local.imageTag": ("3.7.9-0",),
    "etcd.local.dataDir": ("/srv/etcd", "/data"),
    "etcd.external.endpoints": (["https://198.51.100.9:2379"],),
    "etcd.external.caFile": ("/srv/etcd/ca.crt",),
    "etcd.external.certFile": ("/srv/etcd/client.crt",),
    "etcd.external.keyFile": ("/srv/etcd/client.key",),
    "authentication.webhook.enabled": (False,),
    "etcd.external.httpEndpoints": (["http://198.51.100.9:2381"],),
    "encryptionAlgorithm": ("ECDSA-P256", "RSA-4096"),
    "certificateValidityPeriod": ("4000h0m0s",),
    "caCertificateValidityPeriod": ("40000h0m0s",),
    "apiServer.certSANs": (["api.example.com"], ["192.0.2.77", "*.example.com"]),
    "etcd.local.serverCertSANs": (["etcd.example.com"],),
    "etcd.local.peerCertSANs": (["peer.example.com"],),
}
_EXTERNAL: Json = {
    "endpoints": ["https://198.51.100.1:2379"],
    "caFile": "/etc/kubernetes/pki/etcd-ca.crt",
    "certFile": "/etc/kubernetes/pki/client.crt",
    "keyFile": "/etc/kubernetes/pki/client.key",
}


def leaf_fields(type_: StructType, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], FieldType]]:
    """Yield every field that is changed as one: scalars, lists and maps; structs are opened."""
    for name, field in type_.fields.items():
        if name in ("apiVersion", "kind") and not path:
            continue
        if field.kind == "struct" and field.type is not None:
            yield from leaf_fields(field.type, (*path, name))
        else:
            yield (*path, name), field


def generated(path: tuple[str, ...], field: FieldType, version: KubernetesVersion, draw: random.Random) -> Json:
    """Return a value for a field that is not its default, drawn at random."""
    found = _SPECIAL.get(".".join(path))
    if found is not None:
        value = draw.choice(found)
        return f"v{version.major}.{version.minor}.{version.patch + 1}" if value == "PATCH" else value
    return _drawn(field, draw)


def _drawn(field: FieldType, draw: random.Random) -> Json:
    if field.kind == "list" and field.of is not None:
        return [_drawn(field.of, draw)]
    if field.kind == "map" and field.of is not None:
        return {draw.choice(("memory", "cpu", "alpha")): _drawn(field.of, draw)}
    if field.kind == "struct" and field.type is not None:
        names = [name for name in field.type.fields if name not in ("valueFrom", "mergeMethod", "timeAdded")]
        return {name: _drawn(field.type.fields[name], draw) for name in names}
    match field.scalar:
        case "bool":
            return True
        case "duration" | "durationOrNanoseconds":
            return f"{draw.randint(2, 50)}m{draw.randint(1, 59)}s"
        case "quantity":
            return f"{draw.randint(2, 900)}Mi"
        case "float64" | "float32":
            return draw.randint(2, 90)
        case "string":
            return draw.choice(("/srv/some", "something", "x-y.z")) + str(draw.randint(2, 999))
        case _:
            return draw.randint(2, 9999)


def fresh_text(version: KubernetesVersion, kind: str, members: dict[str, Json], *, is_external: bool = False) -> str:
    """Return the documents of a new cluster, of which one has some members besides."""
    cluster: dict[str, Json] = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": CLUSTER,
        "kubernetesVersion": str(version),
        "controlPlaneEndpoint": ENDPOINT,
        "networking": {"podSubnet": "10.244.0.0/16"},
        **({"etcd": {"external": _EXTERNAL}} if is_external else {}),
    }
    documents: dict[str, dict[str, Json]] = {
        CLUSTER: cluster,
        KUBELET: {"apiVersion": COMPONENT_KINDS[KUBELET], "kind": KUBELET},
        KUBE_PROXY: {"apiVersion": COMPONENT_KINDS[KUBE_PROXY], "kind": KUBE_PROXY},
    }
    documents[kind] = _united(documents[kind], members)
    return "---\n".join(write_yaml(each) for each in documents.values())


def fresh(
    version: KubernetesVersion, kind: str, members: dict[str, Json], *, is_external: bool = False
) -> StoredConfiguration:
    """Return what init would make of these documents."""
    facts = FixedFacts(address="192.0.2.1", sockets=(SOCKET,))
    text = fresh_text(version, kind, members, is_external=is_external)
    loaded = ConfigFile.read(text, file="fresh.yaml", host=facts, options=ReadOptions()).init()
    return StoredConfiguration(
        cluster=loaded.config.cluster, kubelet=loaded.components.kubelet, kube_proxy=loaded.components.kube_proxy
    )


def nested(path: tuple[str, ...], value: Json) -> dict[str, Json]:
    for name in reversed(path):
        value = {name: value}
    assert isinstance(value, dict)
    return value


def _united(one: dict[str, Json], other: Mapping[str, Json]) -> dict[str, Json]:
    found = dict(one)
    for name, value in other.items():
        before = found.get(name)
        found[name] = _united(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return found


@cache
def _cluster(version: KubernetesVersion) -> ClusterSnapshot:
    return MadeUpCluster(version=version, workers=()).snapshot()


def touched(before: StoredConfiguration, after: StoredConfiguration, version: KubernetesVersion) -> set[str]:
    """Return the components that are rendered in another way, in the words of the table."""
    old, new = (_everything(each, version) for each in (before, after))
    # An addon that is no longer ours stays as it is.
    return {
        name.partition("/Deployment")[0].partition("/ConfigMap")[0]
        for name in old.keys() & new.keys()
        if old[name] != new[name]
    }


def _everything(configuration: StoredConfiguration, version: KubernetesVersion) -> dict[str, object]:
    snapshot = _cluster(version)
    node = snapshot.nodes[0]
    rendering = ClusterRendering(configuration=configuration, snapshot=snapshot, patch_sets={})
    found: dict[str, object] = {name: pod.document for name, pod in rendering.static_pods(node, "").items()}
    found["kubelet"] = rendering.kubelet(node, "")
    found["kubeconfigs"] = rendering.kubeconfigs(node)
    found["kube-proxy"] = stored_data(KUBE_PROXY, configuration, endpoint_of(snapshot))
    return {**found, **rendering.certificates(node), **rendering.objects("")}


def types_of(version: KubernetesVersion) -> dict[str, StructType]:
    """Return the types of the three documents of a minor."""
    schema = load_schema(version)
    found = {kind: schema.type_of(api, kind) for kind, api in COMPONENT_KINDS.items()}
    cluster = schema.type_of("kubeadm.k8s.io/v1beta4", CLUSTER)
    assert cluster is not None
    return {CLUSTER: cluster, **{kind: type_ for kind, type_ in found.items() if type_ is not None}}
