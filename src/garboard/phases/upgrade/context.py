"""What the phases of an upgrade plan from: the cluster as stored, the target, and this node as it is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from itertools import chain

from garboard.documents import Json, read_yaml
from garboard.errors import InvalidValue, NotReady
from garboard.manifests import NodeHost
from garboard.manifests.kubelet import CONFIG_FILE, FLAGS_FILE, INSTANCE_CONFIG_FILE
from garboard.model.cluster import kubernetes_image, tag_of
from garboard.model.node import ApiEndpoint, NodeRegistration, Timeouts
from garboard.model.paths import KUBELET_CONF, KUBERNETES_DIR, manifest_path
from garboard.phases.change_record import ChangeRecord
from garboard.phases.gates import API_SERVER
from garboard.phases.gates.control_plane import listener_of
from garboard.phases.node.context import ClusterView, MachineView, NodeContext, ObservedCredentials
from garboard.phases.node.credentials import observe_credentials
from garboard.phases.patching import NodePatches
from garboard.phases.preflight import MachineInspector
from garboard.phases.static_pods import ORDER
from garboard.phases.upgrade.cluster import UpgradedCluster
from garboard.phases.upgrade.drift_choices import NodeDrift
from garboard.pki.chain import common_name_of
from garboard.pki.kubeconfig import read_kubeconfig
from garboard.values import dataclass

_SOCKET = "containerRuntimeEndpoint"
_SOCKET_FLAG = "--container-runtime-endpoint="
_USER = "system:node:"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeOptions:
    """What a command asks of an upgrade besides the version."""

    renews_certificates: bool = True
    upgrades_etcd: bool = True
    is_forced: bool = False
    drains: bool = False  # the kubelet restarts while the node is drained
    is_first: bool = False  # `apply`, which decides for the cluster; `node` follows
    is_whole: bool = True  # and not one of its phases, which is carried out whatever the version is
    is_coordinated: bool = False  # somebody else goes through the nodes
    patches_directory: str = ""
    version_warnings: tuple[str, ...] = ()
    author: str = ""  # who upgrades the cluster, for its record


@dataclass(frozen=True, slots=True)
class SnapshotRoom:
    """How large the database of etcd is on this node, and how much is free where its snapshots are."""

    database_bytes: int
    free_bytes: int

    @property
    def is_enough(self) -> bool:
        """Whether a snapshot leaves as much free as it takes: the new etcd writes to its database at once."""
        return self.free_bytes >= 2 * self.database_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeContext(NodeContext):
    """A node of a cluster that is upgraded; its `cluster` has the target's version."""

    upgraded: UpgradedCluster
    options: UpgradeOptions
    manifests: Mapping[str, bytes] = field(default_factory=dict)  # by component; none on a worker
    room: SnapshotRoom | None = None
    record: ChangeRecord = field(default_factory=ChangeRecord)  # of what was changed; a worker reads none
    drift: NodeDrift = field(default_factory=NodeDrift)  # how the node differs from what its cluster declares

    @property
    def is_control_plane(self) -> bool:
        return API_SERVER in self.manifests

    @property
    def is_upgraded(self) -> bool:
        """Whether `apply` as a whole was asked for the version that the cluster has, and that this node runs."""
        is_same = self.upgraded.former.kubernetes_version == self.cluster.kubernetes_version
        is_applied = self.options.is_first and self.options.is_whole and is_same
        return is_applied and self.runs_target(self.upgraded.api_servers.get(self.node_name, ""))

    def runs_target(self, image: str) -> bool:
        """Say whether an image of an API server is one of the target; a patch may take it from elsewhere."""
        return tag_of(image) == tag_of(kubernetes_image(self.cluster, API_SERVER))

    @property
    def control_planes_left(self) -> tuple[str, ...]:
        """The other control planes whose API servers are not those of the target yet."""
        images = self.upgraded.api_servers
        return tuple(sorted(name for name in images if name != self.node_name and not self.runs_target(images[name])))


@dataclass(frozen=True, slots=True)
class ThisNode:
    """What the files of a node say of it, whoever made it."""

    name: str
    cri_socket: str
    endpoint: ApiEndpoint  # of its own API server; empty on a worker
    manifests: Mapping[str, bytes]


def observe_this_node(machine: MachineView, sockets: Sequence[str]) -> ThisNode:
    """Read the name, the runtime's socket and the static pods of this node from its files."""
    found = {each: machine.read(manifest_path(each)) for each in ORDER}
    manifests = {name: data for name, data in found.items() if data is not None}
    endpoint = ApiEndpoint()
    if manifests and API_SERVER not in manifests:
        raise NotReady(
            f"{manifest_path(API_SERVER)} does not exist, and {', '.join(map(manifest_path, sorted(manifests)))} does",
            hint="put it back first; a run that was cut short in between is shown by garboard status",
        )
    if API_SERVER in manifests:
        document = read_yaml(manifests[API_SERVER], source=manifest_path(API_SERVER))
        address, port = listener_of(API_SERVER, document if isinstance(document, dict) else {})
        endpoint = ApiEndpoint(advertise_address=address, bind_port=_port(port))
    return ThisNode(node_name_of(machine), _cri_socket(machine, sockets), endpoint, manifests)


def _port(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidValue(
            f"{manifest_path(API_SERVER)}: --secure-port={text} is not a port",
            hint="correct the manifest first: the API server of this node cannot run with it",
        ) from None


def node_name_of(machine: MachineView) -> str:
    """Return the name that the kubelet of this machine has in its cluster; a machine without one is refused."""
    data = machine.read(KUBELET_CONF)
    if data is None:
        raise NotReady(f"there is no {KUBELET_CONF}: this machine is no node of a cluster", hint="garboard join --help")
    current = read_kubeconfig(data, KUBELET_CONF)
    name = common_name_of(current.content(current.user or {}, "client-certificate", machine.read))
    if not name.startswith(_USER):
        raise NotReady(
            f"the certificate in {KUBELET_CONF} is that of {name or 'nobody'}, not that of a node",
            hint="its common name has to begin with system:node:",
        )
    return name.removeprefix(_USER)


def _cri_socket(machine: MachineView, sockets: Sequence[str]) -> str:
    """Return the socket of the container runtime: what the kubelet was told to use, or else the first that answers."""
    found = next(filter(None, chain(_told_sockets(machine), sockets)), "")
    if not found:
        raise NotReady(
            "no container runtime listens on this node, and no setting of its kubelet names the socket of one",
            hint=f"start it (systemctl start containerd), or write {_SOCKET}: unix:///… into {INSTANCE_CONFIG_FILE}",
        )
    return found


def _told_sockets(machine: MachineView) -> Iterator[str]:
    """Yield what the kubelet was told to use: the setting of the node, the flag, the configuration as written."""
    yield _endpoint_in(machine, INSTANCE_CONFIG_FILE)
    words = (machine.read(FLAGS_FILE) or b"").decode("utf-8", "replace").partition('"')[2].rstrip('"\n').split()
    flags = [word.removeprefix(_SOCKET_FLAG) for word in words if word.startswith(_SOCKET_FLAG)]
    yield from flags[-1:]
    yield _endpoint_in(machine, CONFIG_FILE)


def _endpoint_in(machine: MachineView, path: str) -> str:
    document = read_yaml(machine.read(path) or b"{}", source=path)
    stored: Json = document.get(_SOCKET) if isinstance(document, dict) else None
    return stored if isinstance(stored, str) else ""


def observe_upgrade(
    node: ThisNode,
    upgraded: UpgradedCluster,
    options: UpgradeOptions,
    *,
    host: NodeHost,
    machine: MachineView,
    patches: NodePatches,
    now: datetime,
    objects: ClusterView,
    timeouts: Timeouts,
    registration: NodeRegistration,
    inspector: MachineInspector | None = None,
    ignored_checks: frozenset[str] = frozenset(),
) -> UpgradeContext:
    """Look at the credentials of this node, if it is a control plane, and return all that phases need."""
    cluster = upgraded.target
    found = ObservedCredentials()
    if node.manifests:
        folders = machine.folder(cluster.certificates_dir), machine.folder(KUBERNETES_DIR)
        found = observe_credentials(*folders, now)
    return UpgradeContext(
        node_registration=registration,
        machine=machine,
        host=replace(host, is_external_ca=found.is_external_ca),
        now=now,
        config_kind="UpgradeConfiguration",
        cluster=cluster,
        local_api_endpoint=node.endpoint,
        timeouts=timeouts,
        components=upgraded.components,
        credentials=found,
        patches=patches,
        objects=objects,
        inspector=inspector,
        ignored_checks=ignored_checks,
        upgraded=upgraded,
        options=options,
        manifests=node.manifests,
    )
