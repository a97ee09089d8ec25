"""The objects of the API server as a snapshot: what matters of each is taken, and nothing that could be a secret."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import field
from fractions import Fraction
from functools import lru_cache

from garboard.change import reads
from garboard.change.reads import Read
from garboard.change.snapshot import (
    ClusterSnapshot,
    MirrorPod,
    NodeAddress,
    NodeEndpoint,
    NodeSettings,
    PodCounts,
    SnapshotAddons,
    SnapshotNode,
    SnapshotService,
    SnapshotServiceRange,
    StoredConfig,
    Texts,
)
from garboard.documents import Json, read_yaml
from garboard.errors import GarboardError
from garboard.manifests.uploaded import CONFIG_KEYS
from garboard.model.addresses import split_host_port
from garboard.phases.node.records import ANNOTATION, unpack
from garboard.pki.kubeconfig import unnamed_or_current_cluster
from garboard.rules.quantities import amount
from garboard.values import dataclass

_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_OWN_ANNOTATIONS = re.compile(r"kubeadm\.(alpha\.)?kubernetes\.io/|([\w-]+\.)*garboard\.dev/")
_MIRROR = "kubernetes.io/config.mirror"
_ENDPOINT = "kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint"
_CRI_SOCKET = "kubeadm.alpha.kubernetes.io/cri-socket"
_COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
_SET, _OF_NODE = "set.", "node."
_BIND_PORT = 6443
_ENDED = ("Succeeded", "Failed")

Objects = Mapping[Read, tuple[Mapping[str, Json], ...]]


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """What a snapshot takes of one Pod; `document` is the whole of it, if it is a static pod of the control plane."""

    node: str
    has_ended: bool
    requests: Mapping[str, Fraction] = field(default_factory=dict)
    component: str = ""
    document: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FoundObjects:
    """What was read of a cluster: the objects by the read that gave them; Pods are reduced as they come in."""

    objects: Objects
    pods: tuple[ObservedPod, ...] = ()
    observed_at: str = ""
    server_version: str = ""

    def one(self, read: Read) -> Mapping[str, Json]:
        """Return an object that is read by its name; empty if there is none."""
        return next(iter(self.objects.get(read, ())), {})


def pod_facts(pod: Mapping[str, Json]) -> ObservedPod:
    """Reduce a Pod to what a snapshot takes of it."""
    component = _text(at(pod, "metadata", "labels", "component"))
    is_mirror = bool(at(pod, "metadata", "annotations", _MIRROR)) and component in _COMPONENTS
    return ObservedPod(
        node=_text(at(pod, "spec", "nodeName")),
        has_ended=at(pod, "status", "phase") in _ENDED,
        requests=_requests(pod),
        component=component if is_mirror else "",
        # Elements of a list do not say what they are.
        document={"apiVersion": "v1", "kind": "Pod", **pod} if is_mirror else {},
    )


def snapshot_of(found: FoundObjects) -> ClusterSnapshot:
    """Return a cluster as its API server shows it."""
    maps = {name: read for read in reads.PLAN_READS if (name := read.name) in CONFIG_KEYS and read.kind == "ConfigMap"}
    record = _data(found.one(reads.PATCH_RECORD))
    return ClusterSnapshot(
        observed_at=found.observed_at,
        server_version=found.server_version,
        config_maps={name: _stored(found.one(read)) for name, read in maps.items() if found.one(read)},
        nodes=_nodes(found, record),
        patch_sets=_patch_sets(record),
        cluster_info_server=_cluster_info_server(found.one(reads.CLUSTER_INFO)),
        services=_services(found.objects.get(reads.SERVICES, ())),
        service_ranges=sorted(map(_range, found.objects.get(reads.SERVICE_RANGES, ())), key=lambda each: each.name),
        addons=_addons(found),
    )


def is_own_annotation(name: str) -> bool:
    """Say whether kubeadm or garboard wrote an annotation: that of anybody else may hold anything."""
    return _OWN_ANNOTATIONS.match(name) is not None


def _stored(content: Mapping[str, Json]) -> StoredConfig:
    return StoredConfig(
        data=_data(content),
        resource_version=_text(at(content, "metadata", "resourceVersion")),
        annotations=_texts(at(content, "metadata", "annotations")),
        labels=_texts(at(content, "metadata", "labels")),
    )


def _nodes(found: FoundObjects, record: Texts) -> list[SnapshotNode]:
    pods: defaultdict[str, list[ObservedPod]] = defaultdict(list)
    for each in found.pods:
        pods[each.node].append(each)
    nodes = (_node(each, pods, record) for each in found.objects.get(reads.NODES, ()))
    return sorted(nodes, key=lambda each: each.name)


def _node(content: Mapping[str, Json], pods: Mapping[str, list[ObservedPod]], record: Texts) -> SnapshotNode:
    name = _text(at(content, "metadata", "name"))
    annotations, labels = (_texts(at(content, "metadata", key)) for key in ("annotations", "labels"))
    own = pods.get(name, [])
    static = {each.component: each.document for each in own if each.component}
    about = _texts(at(content, "status", "nodeInfo"))
    noted = annotations.get(ANNOTATION, "").removeprefix("sha256:")
    return SnapshotNode(
        name=name,
        is_control_plane=_CONTROL_PLANE in labels,
        is_ready=_is_true(at(content, "status", "conditions"), "Ready"),
        addresses=[
            NodeAddress(type=_text(each.get("type")), address=_text(each.get("address")))
            for each in _items(at(content, "status", "addresses"))
        ],
        kubelet_version=about.get("kubeletVersion", ""),
        os=about.get("osImage", ""),
        kernel=about.get("kernelVersion", ""),
        container_runtime=about.get("containerRuntimeVersion", ""),
        endpoint=_endpoint(static.get("kube-apiserver", {})),
        settings=NodeSettings(
            cri_socket=annotations.get(_CRI_SOCKET, ""),
            taints=[_texts(each) for each in _items(at(content, "spec", "taints"))],
            provider_id=_text(at(content, "spec", "providerID")),
            pod_cidrs=_words(at(content, "spec", "podCIDRs")),
        ),
        labels=labels,
        annotations={key: value for key, value in annotations.items() if is_own_annotation(key)},
        capacity=_texts(at(content, "status", "capacity")),
        allocatable=_texts(at(content, "status", "allocatable")),
        pods=_counts(own),
        mirror_pods={component: _mirror(component, static[component]) for component in sorted(static)},
        patch_set=record.get(f"{_OF_NODE}{name}") or noted,
    )


def _mirror(component: str, pod: Mapping[str, Json]) -> MirrorPod:
    containers = _items(at(pod, "spec", "containers"))
    main = next((each for each in containers if each.get("name") == component), containers[0] if containers else {})
    statuses = _items(at(pod, "status", "containerStatuses"))
    status = next((each for each in statuses if each.get("name") == main.get("name")), {})
    restarts = status.get("restartCount")
    return MirrorPod(
        image=_text(main.get("image")),
        command=[*_words(main.get("command")), *_words(main.get("args"))],
        variables=[_text(each.get("name")) for each in _items(main.get("env"))],
        annotations={
            key: value for key, value in _texts(at(pod, "metadata", "annotations")).items() if is_own_annotation(key)
        },
        is_ready=_is_true(at(pod, "status", "conditions"), "Ready"),
        restarts=restarts if isinstance(restarts, int) else 0,
    )


def _endpoint(api_server: Mapping[str, Json]) -> NodeEndpoint | None:
    text = _text(at(api_server, "metadata", "annotations", _ENDPOINT))
    try:
        address, port = split_host_port(text)
        # msgspec leaves out a default only if it is the very object: equal snapshots have to give equal texts.
        return NodeEndpoint(advertise_address=address, **({} if int(port) == _BIND_PORT else {"bind_port": int(port)}))
    except (GarboardError, ValueError):
        return None


def _counts(pods: Iterable[ObservedPod]) -> PodCounts:
    running = [each for each in pods if not each.has_ended]
    sums: defaultdict[str, Fraction] = defaultdict(Fraction)
    for each in running:
        for name, value in each.requests.items():
            sums[name] += value
    return PodCounts(count=len(running), requests={name: _quantity(sums[name]) for name in sorted(sums)})


def _requests(pod: Mapping[str, Json]) -> dict[str, Fraction]:
    """Return what the scheduler counts: the containers together, or the init container that needs more; and overhead.

    A sidecar, an init container that is restarted, runs beside all that come after it.
    """
    total: defaultdict[str, Fraction] = defaultdict(Fraction)
    for each in _items(at(pod, "spec", "containers")):
        _add(total, each)
    sidecars: defaultdict[str, Fraction] = defaultdict(Fraction)
    most: defaultdict[str, Fraction] = defaultdict(Fraction)
    for each in _items(at(pod, "spec", "initContainers")):
        if each.get("restartPolicy") == "Always":
            _add(sidecars, each)
            _add(total, each)
            needed: Mapping[str, Fraction] = sidecars
        else:
            needed = defaultdict(Fraction, sidecars)
            _add(needed, each)
        for name, value in needed.items():
            most[name] = max(most[name], value)
    for name, value in most.items():
        total[name] = max(total[name], value)
    for name, text in _texts(at(pod, "spec", "overhead")).items():
        total[name] += _amount(text)
    return dict(total)


def _add(sums: defaultdict[str, Fraction], container: Mapping[str, Json]) -> None:
    for name, text in _texts(at(container, "resources", "requests")).items():
        sums[name] += _amount(text)


@lru_cache(maxsize=1024)
def _amount(text: str) -> Fraction:
    return amount(text) or Fraction(0)


def _quantity(value: Fraction) -> str:
    """Return an amount as a quantity, in thousandths where it is not whole."""
    return str(value.numerator) if value.denominator == 1 else f"{-(-value.numerator * 1000 // value.denominator)}m"


def _patch_sets(record: Texts) -> dict[str, Texts]:
    found = {}
    for key, text in record.items():
        if key.startswith(_SET):
            files = unpack(text).files
            found[key.removeprefix(_SET)] = {path: data.decode("utf-8", "replace") for path, data in files.items()}
    return found


def _cluster_info_server(content: Mapping[str, Json]) -> str:
    """Return the server that new nodes are sent to; the signatures beside it are made with secrets, and stay there."""
    text = _data(content).get("kubeconfig", "")
    try:
        return unnamed_or_current_cluster(read_yaml(text, source="cluster-info"), "cluster-info").server
    except GarboardError:
        return ""


def _services(contents: Iterable[Mapping[str, Json]]) -> list[SnapshotService]:
    found = []
    for each in contents:
        ports = [port for item in _items(at(each, "spec", "ports")) if isinstance(port := item.get("nodePort"), int)]
        if ports:
            namespace, name = (_text(at(each, "metadata", key)) for key in ("namespace", "name"))
            found.append(SnapshotService(namespace=namespace, name=name, node_ports=sorted(ports)))
    return sorted(found, key=lambda service: (service.namespace, service.name))


def _range(content: Mapping[str, Json]) -> SnapshotServiceRange:
    return SnapshotServiceRange(name=_text(at(content, "metadata", "name")), cidrs=_words(at(content, "spec", "cidrs")))


def _addons(found: FoundObjects) -> SnapshotAddons:
    proxy, dns = found.one(reads.PROXY), found.one(reads.DNS)
    services = found.objects.get(reads.SERVICES, ())
    named = {"namespace": "kube-system", "name": "kube-dns"}
    service = next((s for s in services if named.items() <= _texts(at(s, "metadata")).items()), {})
    return SnapshotAddons(
        coredns_image=_text(at(dns, "spec", "template", "spec", "containers", 0, "image")),
        corefile=_data(found.one(reads.COREFILE)).get("Corefile", ""),
        dns_service_ip=_text(at(service, "spec", "clusterIP")),
        kube_proxy_image=_text(at(proxy, "spec", "template", "spec", "containers", 0, "image")),
        kube_proxy_variables=[
            _text(each.get("name")) for each in _items(at(proxy, "spec", "template", "spec", "containers", 0, "env"))
        ],
    )


def at(value: object, *path: str | int) -> Json:
    """Return what is at a path of a document; None where there is nothing."""
    for step in path:
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value  # type: ignore[return-value]  # what a document is made of


def _is_true(conditions: Json, kind: str) -> bool:
    return any(each.get("type") == kind and each.get("status") == "True" for each in _items(conditions))


def _data(content: Mapping[str, Json]) -> Texts:
    return _texts(at(content, "data"))


def _texts(value: Json) -> Texts:
    """Return those members of a map that are texts."""
    members = value if isinstance(value, dict) else {}
    return {key: each for key, each in members.items() if isinstance(each, str)}


def _items(value: Json) -> list[dict[str, Json]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _words(value: Json) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
