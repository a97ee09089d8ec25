"""`join` on this machine: the cluster is found and verified, and both are observed before the join is planned."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from garboard.config import (
    Loaded,
    ResolvedVersion,
    check_bind_address,
    ignored_checks,
    ignored_flags,
    join_from_flags,
    join_from_values,
)
from garboard.host.facts import MachineFacts
from garboard.host.node_machine import NodeMachine
from garboard.host.web import fetch
from garboard.lazy import lazy_module
from garboard.manifests.node import NodeHost
from garboard.model import DEFAULT_VERSION
from garboard.model.component import LocalEtcd
from garboard.model.lifecycle import JoinConfiguration
from garboard.model.paths import ADMIN_CONF, KUBELET_CONF
from garboard.node.configuration import node_host, open_config
from garboard.node.joining_tunnel import refuse_other_root, through_tunnel, with_whole_paths
from garboard.node.observe import NodeInspector, node_patches, read_options, with_node_name
from garboard.node.transaction import RunPolicy
from garboard.node.wiring import RunSettings
from garboard.node.workflow import LocalNode, Observed, Prepared, Workflow, WorkflowRequest
from garboard.phases.control_plane_lease import ACQUIRED_WITHIN_S
from garboard.phases.join import JOIN, WITHOUT_CLUSTER
from garboard.phases.join.cluster import JoinedCluster, find_cluster
from garboard.phases.join.context import JoinContext, observe_join
from garboard.phases.join.tunnel import ObservedTunnel
from garboard.phases.node.kubelet import KUBELET
from garboard.phases.workflow import Placed
from garboard.retry import CLOCK
from garboard.values import dataclass

if TYPE_CHECKING:
    from garboard import kube
    from garboard.node import change_record
    from garboard.phases.node import credentials
    from garboard.pki import keys as pki_keys
else:  # clients of HTTP take long to load; and a worker makes no keys
    kube = lazy_module("garboard.kube")
    change_record = lazy_module("garboard.node.change_record")
    credentials = lazy_module("garboard.phases.node.credentials")
    pki_keys = lazy_module("garboard.pki.keys")


class NodeConnector:
    """Connects discovery to API servers and to the files of this machine; `report` gets the reasons for delays.

    With an `entrance`, where a tunnel begins, every connection goes through the tunnel.
    """

    clock = CLOCK

    def __init__(
        self, machine: NodeMachine, report: Callable[[str], None], entrance: tuple[str, int] | None = None
    ) -> None:
        self.machine = machine
        self.report = report
        self.entrance = entrance

    def unverified(self, server: str) -> "kube.KubeClient":
        # Discovery asks again by itself, and says why.
        access = kube.anonymous_access(server, b"", is_unverified=True)
        return kube.KubeClient(replace(access, entrance=self.entrance), patience_s=0.0)

    def verified(self, server: str, ca: bytes) -> "kube.KubeClient":
        access = replace(kube.anonymous_access(server, ca), entrance=self.entrance)
        return kube.KubeClient(access, report=self._report_retry)

    def as_user(self, kubeconfig: bytes, source: str) -> "kube.KubeClient":
        access = replace(kube.read_access(kubeconfig, source, self.machine.read), entrance=self.entrance)
        return kube.KubeClient(access, report=self._report_retry)

    def _report_retry(self, line: str) -> None:
        self.report(f"[preflight] {line}")

    def fetch(self, url: str) -> bytes:
        return fetch(url)

    def read(self, path: str) -> bytes | None:
        return self.machine.read(path)

    def now(self) -> datetime:
        return datetime.now(UTC)


def _load(request: WorkflowRequest) -> Loaded[JoinConfiguration]:
    flags, options = request.flags, read_options(request.flags)
    if path := flags.text("config"):
        loaded = open_config(Path(path), options, ResolvedVersion(str(DEFAULT_VERSION))).join()
    else:
        # A single phase on a machine that is half a control plane finds the cluster by its own administrator's file.
        has_admin = not request.is_whole and MachineFacts().has_file(ADMIN_CONF)
        join = join_from_values(flags, request.argument, has_admin=has_admin)
        loaded = join_from_flags(with_whole_paths(join), MachineFacts(), options)
    return replace(loaded, config=with_node_name(loaded.config, flags))


def _prepare(request: WorkflowRequest, node: LocalNode) -> Prepared[JoinConfiguration]:
    loaded = _load(request)
    if ignored := ignored_flags(request.flags):
        node.warn([f"without --control-plane these are ignored: {', '.join(f'--{name}' for name in ignored)}"])
    node.warn(loaded.warnings)
    config = loaded.config
    refuse_other_root(config)
    if config.control_plane is not None:
        check_bind_address(config.control_plane.local_api_endpoint.advertise_address)
    return Prepared(
        config=config,
        skips=request.flags.list("skip-phases") or config.skip_phases,
        is_shown=request.flags.switch("dry-run") or config.dry_run,
    )


@contextmanager
def _observe(
    prepared: Prepared[JoinConfiguration],
    selected: Sequence[Placed[JoinContext]],
    request: WorkflowRequest,
    node: LocalNode,
) -> Iterator[Observed[JoinContext]]:
    config, inspector = prepared.config, NodeInspector(node.machine.manager)
    found = _find(config, inspector, selected, node, is_shown=prepared.is_shown)
    # Keys take as long as all the checks and the planning: they are made meanwhile.
    with nullcontext() if prepared.is_shown else _keys_ahead(found.cluster, config, selected, node) as keys:
        context = observe_join(
            config,
            found.cluster,
            host=found.host,
            machine=node.machine,
            patches=node_patches(config, request.flags, role="control-plane" if config.control_plane else "worker"),
            now=datetime.now(UTC),
            inspector=inspector,
            ignored_checks=ignored_checks(
                request.flags.list("ignore-preflight-errors"), config.node_registration.ignore_preflight_errors
            ),
            tunnel=found.tunnel,
            is_whole=request.is_whole,
        )
        yield Observed(context=context, settings=settings_of(context), keys=keys)


@dataclass(frozen=True, slots=True)
class _Found:
    """What is known before anything is planned: the machine, and the cluster if a phase needs it."""

    host: NodeHost
    cluster: JoinedCluster | None = None
    tunnel: ObservedTunnel | None = None


def _find(
    config: JoinConfiguration,
    inspector: NodeInspector,
    selected: Sequence[Placed[JoinContext]],
    node: LocalNode,
    *,
    is_shown: bool,
) -> _Found:
    machine = node.machine
    # Other programs are asked while the cluster is: both take their time, and neither needs the other.
    with ThreadPoolExecutor(max_workers=2) as beside:
        host = beside.submit(node_host, machine)
        if any(each.path == "preflight" for each in selected):
            # The checks and the planning will need these; a failure here will come up there again, and be reported.
            beside.submit(inspector.kubelet_version)
            beside.submit(inspector.has_service, KUBELET)
            beside.submit(inspector.is_enabled, KUBELET)
            beside.submit(machine.is_active, KUBELET)
        if all(each.path in WITHOUT_CLUSTER for each in selected):
            return _Found(host.result())
        with through_tunnel(config, machine) as way:
            connector = NodeConnector(machine, node.reporter.report, way.entrance if way else None)
            cluster = find_cluster(config, connector, MachineFacts(), downloads=_has(selected, "download-certs"))
            if config.control_plane is not None and _has(selected, "download-certs"):
                joining = connector.as_user(cluster.discovered.kubeconfig.to_bytes(), "the discovered kubeconfig")
                if change_record.await_joining(joining, timeout_s=0.0 if is_shown else ACQUIRED_WITHIN_S):
                    # What nodes share was written meanwhile.
                    cluster = find_cluster(config, connector, MachineFacts(), downloads=True)
            tunnel = way.observe(config, cluster, connector, machine) if way else None
        return _Found(host.result(), cluster, tunnel)


def _has(selected: Sequence[Placed[JoinContext]], prepares: str) -> bool:
    return any(each.path == f"control-plane-prepare/{prepares}" for each in selected)


def _keys_ahead(
    cluster: JoinedCluster | None,
    config: JoinConfiguration,
    selected: Sequence[Placed[JoinContext]],
    node: LocalNode,
) -> AbstractContextManager["pki_keys.KeySource | None"]:
    """Begin to make the keys of a new control plane; a machine that has certificates may need none."""
    if config.control_plane is None or cluster is None:
        return nullcontext()
    if node.machine.has_folder(cluster.configuration.certificates_dir):
        return nullcontext()
    phases = {name for name in ("certs", "kubeconfig") if _has(selected, name)}
    return pki_keys.PooledKeys(credentials.joining_keys(cluster.configuration, phases))


def settings_of(context: JoinContext) -> RunSettings:
    """Return what the run of a join needs to know besides its plan."""
    cluster, socket = context.cluster, context.node_registration.cri_socket
    if context.config.control_plane is None:
        # A worker has no administrator's kubeconfig: what it may know of the cluster, its kubelet may.
        return RunSettings(kubeconfig=KUBELET_CONF, cri_socket=socket)
    return RunSettings(
        kubeconfig=ADMIN_CONF,
        local_server=f"https://{context.local_api_endpoint.host_port}",
        cri_socket=socket,
        endpoint=cluster.control_plane_endpoint,
        certificates_dir=cluster.certificates_dir,
        etcd_data_dir=cluster.etcd.data_dir if isinstance(cluster.etcd, LocalEtcd) else "",
    )


def _policy(_config: JoinConfiguration, _request: WorkflowRequest, _node: LocalNode) -> RunPolicy:
    return RunPolicy(cluster="elsewhere")


JOIN_WORKFLOW = Workflow(name="join", phases=JOIN, prepare=_prepare, observe=_observe, policy=_policy)
