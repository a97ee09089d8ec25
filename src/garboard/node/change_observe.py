"""A live cluster as a snapshot: what the API server shows, and on a node of the cluster what that has; no write."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from datetime import UTC, datetime

import msgspec

from garboard.change import reads
from garboard.change.authorities import authority_keys
from garboard.change.node_files import with_files
from garboard.change.observing import FoundObjects, ObservedPod, at, is_own_annotation, pod_facts, snapshot_of
from garboard.change.reads import Read
from garboard.change.snapshot import ClusterSnapshot, snapshot_text
from garboard.documents import Json, read_yaml, write_yaml
from garboard.errors import GarboardError
from garboard.host.node_machine import NodeMachine
from garboard.kube import Forbidden, KubeClient, ObjectMissing, Unauthenticated, read_access
from garboard.model.paths import DEFAULT_CERTIFICATES_DIR, KUBELET_CONF
from garboard.node.masking import masked, masked_document
from garboard.node.own_node import own_name, read_members, read_node_files
from garboard.node.tokens import AdminKubeconfig, find_kubeconfig
from garboard.phases.node.records import ANNOTATION as PATCH_SET
from garboard.values import dataclass

# What kubeadm lets the users of kubelets read.
_OF_NODES = (reads.CLUSTER_CONFIG, reads.KUBELET_CONFIG)
_CONFIGURATION = (reads.CLUSTER_CONFIG, reads.KUBELET_CONFIG, reads.PROXY_CONFIG)
_HIDDEN_BY = "run it as root on the node to see them"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedCluster:
    """A snapshot, and what is not kept in it: static pods, by node and component, and the workloads of the addons.

    `here` is the node that this runs on, if it is one of the cluster's; `notes` say what could not be looked at.
    """

    snapshot: ClusterSnapshot
    mirrors: dict[str, dict[str, Json]] = field(default_factory=dict)
    workloads: dict[str, Json] = field(default_factory=dict)  # by name
    kubelets: dict[str, Json] = field(default_factory=dict)  # what they run with, by node; only if they were asked
    here: str = ""
    last_writers: dict[str, str] = field(default_factory=dict)  # of ConfigMaps, by name: who and when
    is_whole: bool = True  # else only what the user of a kubelet may read
    notes: tuple[str, ...] = ()


def observe_cluster(
    kubeconfig: str | None = None, wanted: Iterable[Read] = reads.PLAN_READS, *, paths: Iterable[str] = ()
) -> ObservedCluster:
    """Read what the API server shows; on a node of the cluster, read its files and ask etcd as well.

    `paths` are those of the host that the caller wants to know of, beside what static pods mount.
    """
    admin = kubeconfig_of(kubeconfig)
    if admin.path == KUBELET_CONF:
        return _observe_as_node(admin, tuple(paths))
    with admin.connect() as client:
        found = _read_all(client, tuple(wanted))
    workloads: dict[str, Json] = {each.name: dict(found.one(each)) for each in (reads.PROXY, reads.DNS)}
    observed = ObservedCluster(
        snapshot=snapshot_of(found),
        mirrors=_mirrors(found.pods),
        workloads=workloads,
        last_writers={each.name: _last_writer(found.one(each)) for each in _CONFIGURATION},
    )
    return _with_own_node(observed, admin, tuple(paths))


def _last_writer(document: Mapping[str, Json]) -> str:
    """Return who has written an object last, as far as they say, and when."""
    fields = at(document, "metadata", "managedFields")
    entries = [each for each in fields if isinstance(each, dict)] if isinstance(fields, list) else []
    last = max(entries, key=lambda each: str(each.get("time") or ""), default={})
    return f"{last['manager']} at {last.get('time')}" if last.get("manager") else ""


def kubeconfig_of(given: str | None) -> AdminKubeconfig:
    """Return the kubeconfig that was named, else the first that is there; on a worker that is the kubelet's own."""
    try:
        return find_kubeconfig(given)
    except GarboardError as error:
        data = NodeMachine(None).read(KUBELET_CONF) if error.error_class == "no-kubeconfig" and not given else None
        if data is None:
            raise
        return AdminKubeconfig(KUBELET_CONF, data)


def _observe_as_node(admin: AdminKubeconfig, paths: tuple[str, ...]) -> ObservedCluster:
    """Read what the user of a kubelet may see: the configuration of the cluster, its own Node, and the pods of that."""
    name = own_name(NodeMachine(None), b"")
    with admin.connect() as client:
        found = {each: _read(client, each) for each in _OF_NODES}
        node = client.find("Node", "", name)
        if at(node, "metadata", "annotations", PATCH_SET):
            with suppress(Forbidden):  # who may read the record of patches is stored with it
                found[reads.PATCH_RECORD] = _read(client, reads.PATCH_RECORD)
        pods = client.list_parts(reads.PODS.kind, pod_facts, fields=f"spec.nodeName={name}")
    found[reads.NODES] = (node,) if node else ()
    snapshot = snapshot_of(FoundObjects(found, pods, _now()))
    note = f"anything but this node: {KUBELET_CONF} may not; name an administrator's kubeconfig with --kubeconfig"
    observed = _with_own_node(ObservedCluster(snapshot=snapshot, is_whole=False), admin, paths)
    return replace(observed, notes=(*observed.notes, note))


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _read_all(client: KubeClient, wanted: tuple[Read, ...]) -> FoundObjects:
    pods: tuple[ObservedPod, ...] = ()
    objects: dict[Read, tuple[dict[str, Json], ...]] = {}
    for each in wanted:
        with _asked_for(each):
            if each == reads.PODS:
                pods = client.list_parts(each.kind, pod_facts)
            else:
                objects[each] = _read(client, each)
    version = _server_version(client) if reads.LEASES in wanted else ""
    return FoundObjects(objects, pods, _now(), version)


def _read(client: KubeClient, read: Read) -> tuple[dict[str, Json], ...]:
    if read.name:
        found = client.find(read.kind, read.namespace, read.name)
        return (found,) if found else ()
    if read == reads.NODES:
        return client.list_parts(read.kind, _without_images)
    try:
        return client.list_objects(read.kind, read.namespace)
    except ObjectMissing:  # a kind that older minors do not have
        return ()


def _without_images(node: dict[str, Json]) -> dict[str, Json]:
    """Return a Node without the images of its machine, which are most of it."""
    status = node.get("status")
    return {**node, "status": {**status, "images": []}} if isinstance(status, dict) else node


@contextmanager
def _asked_for(read: Read) -> Iterator[None]:
    """Name the right that is missing, where the API server refuses a read."""
    try:
        yield
    except Unauthenticated:
        raise
    except Forbidden as error:
        raise Forbidden(
            f"the right to {read} is missing: {error.message}",
            hint="an administrator can grant it: garboard change rbac --user NAME | kubectl apply -f -",
        ) from error


def _server_version(client: KubeClient) -> str:
    """Return what the API server says its version is; empty if it does not tell."""
    status, text, _ = client.get_text("/version")
    try:
        return str(json.loads(text)["gitVersion"]) if status == 200 else ""
    except (ValueError, KeyError, TypeError):
        return ""


def _mirrors(pods: Iterable[ObservedPod]) -> dict[str, dict[str, Json]]:
    found: dict[str, dict[str, Json]] = {}
    for each in pods:
        if each.component:
            found.setdefault(each.node, {})[each.component] = dict(each.document)
    return found


def _with_own_node(observed: ObservedCluster, admin: AdminKubeconfig, paths: tuple[str, ...]) -> ObservedCluster:
    """Add what this machine shows, if it is a node of the cluster; what may not be read is noted."""
    machine, snapshot = NodeMachine(None), observed.snapshot
    folder = _certificates_dir(snapshot)
    notes: list[str] = []
    try:
        here = own_name(machine, read_access(admin.data, admin.path, admin.read).ca)
        node = snapshot.node(here)
        if node is None:
            return observed
        own = with_files(node, read_node_files(machine, folder, (*paths, *authority_keys(folder))))
    except GarboardError as error:
        if error.error_class not in ("unreadable", "not-ready"):
            raise
        return replace(observed, notes=(f"the files of this node were not looked at: {error.message}; {_HIDDEN_BY}",))
    nodes = [own if each.name == here else each for each in snapshot.nodes]
    members = None
    if own.manifests and "etcd" in own.manifests:
        try:
            members = read_members(machine, folder, snapshot.control_planes)
        except GarboardError as error:
            notes.append(f"the members of etcd are not known: {error.message}")
    return replace(
        observed,
        snapshot=msgspec.structs.replace(snapshot, nodes=nodes, members=members),
        here=here,
        notes=tuple(notes),
    )


def _certificates_dir(snapshot: ClusterSnapshot) -> str:
    """Return the folder of certificates; a configuration that cannot be read has said so, or will, elsewhere."""
    try:
        document = read_yaml(snapshot.stored_text("kubeadm-config") or "{}", source="kubeadm-config")
    except GarboardError:
        return DEFAULT_CERTIFICATES_DIR
    found = document.get("certificatesDir") if isinstance(document, dict) else None
    return found if isinstance(found, str) and found else DEFAULT_CERTIFICATES_DIR


def saved_text(snapshot: ClusterSnapshot) -> str:
    """Return a snapshot for a file: values of variables, headers and URLs that may be secrets are hidden."""
    maps = {
        name: msgspec.structs.replace(
            each,
            data={key: _without_secrets(text) for key, text in each.data.items()},
            annotations={key: text for key, text in each.annotations.items() if is_own_annotation(key)},
        )
        for name, each in snapshot.config_maps.items()
    }
    sets = {digest: {path: _without_secrets(text) for path, text in files.items()}
            for digest, files in snapshot.patch_sets.items()}  # fmt: skip
    nodes = [
        msgspec.structs.replace(
            each,
            manifests=None if each.manifests is None else {k: _without_secrets(v) for k, v in each.manifests.items()},
            kubelet_config=None if each.kubelet_config is None else _without_secrets(each.kubelet_config),
            kubelet_flags=None if each.kubelet_flags is None else masked(each.kubelet_flags),
            mirror_pods={
                name: msgspec.structs.replace(pod, command=[masked(word) for word in pod.command])
                for name, pod in each.mirror_pods.items()
            },
        )
        for each in snapshot.nodes
    ]
    return snapshot_text(msgspec.structs.replace(snapshot, config_maps=maps, patch_sets=sets, nodes=nodes))


def _without_secrets(text: str) -> str:
    """Return a text as it is if it has no secrets, else a document without them."""
    try:
        document = read_yaml(text, source="")
    except GarboardError:
        return masked(text)
    if not isinstance(document, dict | list):
        return masked(text)
    hidden = masked_document(document)
    return text if hidden == document else write_yaml(hidden)
