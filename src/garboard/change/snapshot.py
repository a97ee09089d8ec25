"""A snapshot: what was read of a cluster and its nodes, as one document, so that plans need no cluster.

It has no secrets in it: of kubeconfigs it keeps the server, of certificates what everybody may see. `None` means "not
looked at" and is never the same as "not there", which is an empty value.
"""

from functools import cache
from typing import Any, TypeAlias

import msgspec

from garboard.errors import BadDocument
from garboard.manifests.uploaded import CONFIG_KEYS

API_VERSION, KIND = "change.garboard.dev/v1alpha1", "ClusterSnapshot"

Texts: TypeAlias = dict[str, str]


class Snapshotted(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """What parts of a snapshot have in common: frozen, unknown fields are refused, defaults are not written."""


class StoredConfig(Snapshotted, frozen=True, kw_only=True):
    """A ConfigMap of kube-system, whole: also the keys and annotations that are not ours."""

    data: Texts
    resource_version: str = ""
    annotations: Texts = {}
    labels: Texts = {}


class NodeAddress(Snapshotted, frozen=True, kw_only=True):
    type: str  # InternalIP, Hostname, …
    address: str


class NodeEndpoint(Snapshotted, frozen=True, kw_only=True):
    """Where the API server of a control-plane node listens."""

    advertise_address: str
    bind_port: int = 6443


class NodeSettings(Snapshotted, frozen=True, kw_only=True):
    """What a node was registered with, as far as its Node and its files tell."""

    cri_socket: str = ""
    taints: list[dict[str, str]] = []
    provider_id: str = ""
    pod_cidrs: list[str] = msgspec.field(default_factory=list, name="podCIDRs")


class MirrorPod(Snapshotted, frozen=True, kw_only=True):
    """A static pod as the API shows it: the mirror of what the kubelet runs."""

    image: str = ""
    command: list[str] = []  # command and args of the main container
    variables: list[str] = []  # the names of its environment variables: a value may be a secret
    annotations: Texts = {}  # those of kubeadm
    is_ready: bool = True
    restarts: int = 0


class PodCounts(Snapshotted, frozen=True, kw_only=True):
    """The pods of a node that have not ended, and the sum of what they request, as Kubernetes writes quantities."""

    count: int = 0
    requests: Texts = {}


class CertificateFacts(Snapshotted, frozen=True, kw_only=True):
    """What a certificate says; `path` below the folder of certificates, or of a kubeconfig its path."""

    path: str
    subject: str = ""
    not_after: str = ""  # RFC 3339
    sans: list[str] = []
    key: str = ""  # RSA-2048, ECDSA-P256
    issuer: str = ""


class SnapshotNode(Snapshotted, frozen=True, kw_only=True):
    """One node: what the API shows of it, and what its files say, where they were read."""

    name: str
    is_control_plane: bool = msgspec.field(default=False, name="controlPlane")
    is_ready: bool = msgspec.field(default=True, name="ready")
    addresses: list[NodeAddress] = []
    kubelet_version: str = ""
    os: str = ""
    kernel: str = ""
    container_runtime: str = ""
    endpoint: NodeEndpoint | None = None  # of its own API server; none on a worker
    settings: NodeSettings = NodeSettings()
    labels: Texts = {}
    annotations: Texts = {}  # those of kubeadm and garboard
    capacity: Texts = {}
    allocatable: Texts = {}
    pods: PodCounts | None = None
    mirror_pods: dict[str, MirrorPod] = {}  # by component
    patch_set: str = ""  # the digest of the patches that the cluster has recorded for it
    # What only the node itself shows; None where nobody looked.
    manifests: Texts | None = None  # by component, as they stand in the manifests folder
    kubelet_config: str | None = None  # /var/lib/kubelet/config.yaml
    kubelet_flags: str | None = None  # /var/lib/kubelet/kubeadm-flags.env
    instance_config: str | None = None  # /var/lib/kubelet/instance-config.yaml
    kubeconfigs: Texts | None = None  # the server, by path
    certificates: list[CertificateFacts] | None = None
    host_paths: Texts | None = None  # file, folder, socket or absent, by path that was asked for
    ca_directories: list[str] | None = None  # those of manifests.node.EXTRA_CA_DIRECTORIES that exist


class SnapshotMember(Snapshotted, frozen=True, kw_only=True):
    """A member of etcd; `node` is empty if no node of the cluster is known to run it."""

    name: str
    member_id: str = msgspec.field(default="", name="id")
    peer_urls: list[str] = msgspec.field(default_factory=list, name="peerURLs")
    client_urls: list[str] = msgspec.field(default_factory=list, name="clientURLs")
    node: str = ""
    is_learner: bool = msgspec.field(default=False, name="learner")
    is_healthy: bool = msgspec.field(default=True, name="healthy")
    version: str = ""
    revision: int = 0


class SnapshotService(Snapshotted, frozen=True, kw_only=True):
    """A Service with ports on the nodes."""

    namespace: str
    name: str
    node_ports: list[int] = []


class SnapshotServiceRange(Snapshotted, frozen=True, kw_only=True):
    """A ServiceCIDR object."""

    name: str
    cidrs: list[str] = []


class SnapshotAddons(Snapshotted, frozen=True, kw_only=True):
    """The addons as they are in the cluster; an image is empty if its workload is not there."""

    coredns_image: str = ""
    corefile: str = ""
    dns_service_ip: str = msgspec.field(default="", name="dnsServiceIP")
    kube_proxy_image: str = ""
    kube_proxy_variables: list[str] = []  # names


class ClusterSnapshot(Snapshotted, frozen=True, kw_only=True):
    """A cluster as it was found; nodes and members in the order of their names."""

    api_version: str = API_VERSION
    kind: str = KIND
    observed_at: str = ""  # RFC 3339
    server_version: str = ""  # what the API server says of itself
    config_maps: dict[str, StoredConfig] = {}  # by name, those of CONFIG_KEYS that exist
    nodes: list[SnapshotNode] = []
    members: list[SnapshotMember] | None = None  # None: etcd was not asked
    patch_sets: dict[str, Texts] = {}  # files by path, by digest
    cluster_info_server: str = ""
    services: list[SnapshotService] = []
    service_ranges: list[SnapshotServiceRange] = []
    addons: SnapshotAddons = SnapshotAddons()

    @property
    def control_planes(self) -> tuple[SnapshotNode, ...]:
        return tuple(each for each in self.nodes if each.is_control_plane)

    @property
    def workers(self) -> tuple[SnapshotNode, ...]:
        return tuple(each for each in self.nodes if not each.is_control_plane)

    def in_order(self, first: str = "") -> tuple["SnapshotNode", ...]:
        """Return control planes before workers, and before all of them the control plane that goes first."""
        return (*sorted(self.control_planes, key=lambda each: each.name != first), *self.workers)

    def node(self, name: str) -> SnapshotNode | None:
        return next((each for each in self.nodes if each.name == name), None)

    def stored_text(self, name: str) -> str | None:
        """Return the configuration that a ConfigMap holds, if it is there."""
        found = self.config_maps.get(name)
        return found.data.get(CONFIG_KEYS[name]) if found else None


class _TypeNames(msgspec.Struct, rename="camel"):
    """The two members without which a document is none of ours."""

    api_version: str
    kind: str


def snapshot_text(snapshot: ClusterSnapshot) -> str:
    """Return a snapshot as JSON; equal snapshots give equal texts."""
    # Defaults are left out, and a reader needs these two.
    document = {"apiVersion": snapshot.api_version, "kind": snapshot.kind, **contents_of(snapshot)}
    return msgspec.json.format(msgspec.json.encode(document, order="sorted"), indent=2).decode() + "\n"


def contents_of(part: Snapshotted) -> dict[str, Any]:
    """Return a part of a snapshot as maps and lists, without what equals its default; equal parts give equal contents.

    msgspec leaves a default out only where it is the very same object, so that what was read and what was made differ.
    """
    values = ((name, getattr(part, field), default) for field, name, default in _fields_of(type(part)))
    return {name: _content(value) for name, value, default in values if value != default}


def _content(value: object) -> object:
    if isinstance(value, Snapshotted):
        return contents_of(value)
    if isinstance(value, dict):
        return {name: _content(each) for name, each in value.items()}
    return [_content(each) for each in value] if isinstance(value, list) else value


@cache
def _fields_of(kind: type[Snapshotted]) -> tuple[tuple[str, str, object], ...]:
    """Return the fields of a part: the attribute, its name in a document, and its default."""
    return tuple(
        (each.name, each.encode_name, each.default_factory() if callable(each.default_factory) else each.default)
        for each in msgspec.structs.fields(kind)
    )


def read_snapshot(data: bytes, *, source: str) -> ClusterSnapshot:
    """Read a snapshot that was saved; one that is not whole is refused."""
    hint = "make one with garboard change adopt --save FILE"
    try:
        names = msgspec.json.decode(data, type=_TypeNames)
        if (names.api_version, names.kind) != (API_VERSION, KIND):
            raise BadDocument(
                f"{source} is a {names.kind} of {names.api_version}, and not a {KIND} of {API_VERSION}",
                hint=hint,
                error_class="bad-snapshot",
            )
        return msgspec.json.decode(data, type=ClusterSnapshot)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadDocument(f"{source} is no {KIND}: {error}", hint=hint, error_class="bad-snapshot") from error
