"""The tree of `join`: phases in kubeadm's order, and its first one, preflight.

With KEP-4471 (local mode, always on in kubeadm of the minors we know) the kubelet of a control-plane node talks to its
own API server. That one needs etcd first, so etcd joins after the kubelet has started and before it is waited for.
With the gate ControlPlaneKubeletLocalMode off, the kubelet is waited for at once and etcd joins later, within
control-plane-join, as it was before; each phase's `run_if` decides.
"""

from collections.abc import Iterator

from garboard.engine import Note
from garboard.errors import NotReady
from garboard.model.component import LocalEtcd
from garboard.phases.join.context import JoinContext
from garboard.phases.join.control_plane import (
    plan_certs,
    plan_check_etcd,
    plan_control_plane,
    plan_download_certs,
    plan_etcd_join,
    plan_kubeconfigs,
    plan_wait_control_plane,
)
from garboard.phases.join.kubelet import plan_kubelet_start, plan_wait_bootstrap
from garboard.phases.join.tunnel import plan_agent, tunnel_checks, tunnel_warnings
from garboard.phases.node.records import plan_mark_control_plane
from garboard.phases.preflight import Check, control_plane_checks, join_checks, plan_checks, plan_images
from garboard.phases.workflow import Phase, Planned

_SHARED_PAIRS = ("ca", "front-proxy-ca", "etcd/ca")


def plan_preflight(context: JoinContext) -> Iterator[Planned]:
    """Say which cluster is joined, check the machine and the cluster, and plan to pull images."""
    cluster, joined = context.cluster, context.joined
    yield Note(f"joining the cluster at {joined.server}, Kubernetes {cluster.kubernetes_version}")
    yield from (Note(text, is_warning=True) for text in (*joined.discovered.warnings, *joined.warnings))
    if context.tunnel is not None:
        yield from tunnel_warnings(context.tunnel)
    yield from plan_checks(_checks(context), context.inspector, context.ignored_checks)
    if context.config.control_plane is not None:
        _refuse_unshared(context)
        if context.inspector is not None:
            yield from plan_images(cluster, context.node_registration, context.inspector, context.ignored_checks)


def _checks(context: JoinContext) -> Iterator[Check]:
    config = context.config
    yield from join_checks(config, context.cluster.facts)
    if context.tunnel is not None:
        yield from tunnel_checks(context.tunnel, context.cluster, context.node_registration)
    if config.control_plane is not None:
        yield from control_plane_checks(
            context.cluster,
            context.local_api_endpoint,
            context.node_registration,
            is_joining=True,
            downloads_certs=bool(config.control_plane.certificate_key),
        )


def plan_tunnel(context: JoinContext) -> Iterator[Planned]:
    """Plan the agent through which the node reaches its cluster from now on."""
    assert context.tunnel is not None
    yield from plan_agent(context.tunnel, context.machine, timeout_s=context.timeouts.kubernetes_api_call.seconds)


def _refuse_unshared(context: JoinContext) -> None:
    """Refuse a control plane in a cluster without a shared endpoint, or without what control planes have in common."""
    problems = []
    if not context.cluster.control_plane_endpoint:
        problems.append(
            "unable to add a new control plane instance to a cluster that doesn't have a stable controlPlaneEndpoint "
            "address"
        )
    problems += [f"{name} is missing" for name in _missing_shared(context)]
    if problems:
        raise NotReady(
            "the conditions for another control plane are not met: " + "; ".join(problems),
            hint="give --certificate-key, or copy the shared certificates here; the endpoint is chosen at init",
        )


def _missing_shared(context: JoinContext) -> Iterator[str]:
    found, is_local = context.credentials, isinstance(context.cluster.etcd, LocalEtcd)
    for name in _SHARED_PAIRS if is_local else _SHARED_PAIRS[:2]:
        if found.pairs[name].certificate is None:
            yield context.certificate_path(f"{name}.crt")
    if found.service_account.private is None:
        yield context.certificate_path("sa.key")


def has_tunnel(context: JoinContext) -> bool:
    return context.tunnel is not None


def is_control_plane(context: JoinContext) -> bool:
    return context.config.control_plane is not None


def has_local_mode(context: JoinContext) -> bool:
    return context.is_kubelet_local_mode


def joins_etcd_first(context: JoinContext) -> bool:
    return is_control_plane(context) and context.is_kubelet_local_mode


def joins_etcd_late(context: JoinContext) -> bool:
    return is_control_plane(context) and not context.is_kubelet_local_mode


_BASIC = ("config", "dry-run")
_DISCOVERY = (
    "discovery-file", "discovery-token", "discovery-token-ca-cert-hash",
    "discovery-token-unsafe-skip-ca-verification", "tls-bootstrap-token", "token",
)  # fmt: skip
_ENDPOINT = "api-server-endpoint"

# Phases that only look at this machine: by themselves they need no way to the cluster.
WITHOUT_CLUSTER = frozenset({"kubelet-wait-bootstrap", "wait-control-plane"})

CONTROL_PLANE_PREPARE: Phase[JoinContext] = Phase(
    name="control-plane-prepare",
    summary="Prepare the machine for a control plane",
    children=(
        Phase(
            name="all",
            summary="Prepare everything",
            flags=(
                *_BASIC, "apiserver-advertise-address", "apiserver-bind-port", "certificate-key", "control-plane",
                "node-name", "patches", *_DISCOVERY,
            ),
            runs_siblings=True,
            takes=_ENDPOINT,
        ),
        Phase(
            name="download-certs",
            summary="Fetch the shared certificates",
            plan=plan_download_certs,
            run_if=is_control_plane,
            flags=(*_BASIC, "certificate-key", "control-plane", *_DISCOVERY),
            takes=_ENDPOINT,
        ),
        Phase(
            name="certs",
            summary="Generate the certificates",
            plan=plan_certs,
            run_if=is_control_plane,
            flags=(*_BASIC, "apiserver-advertise-address", "control-plane", "node-name", *_DISCOVERY),
            takes=_ENDPOINT,
        ),
        Phase(
            name="kubeconfig",
            summary="Generate the kubeconfigs",
            plan=plan_kubeconfigs,
            run_if=is_control_plane,
            flags=(*_BASIC, "certificate-key", "control-plane", *_DISCOVERY),
            takes=_ENDPOINT,
        ),
        Phase(
            name="control-plane",
            summary="Generate the manifests",
            plan=plan_control_plane,
            run_if=is_control_plane,
            flags=(*_BASIC, "apiserver-advertise-address", "apiserver-bind-port", "control-plane", "patches"),
        ),
    ),
)  # fmt: skip

CONTROL_PLANE_JOIN: Phase[JoinContext] = Phase(
    name="control-plane-join",
    summary="Make the machine a control-plane node",
    children=(
        Phase(
            name="all",
            summary="Run all control-plane-join phases",
            flags=(*_BASIC, "apiserver-advertise-address", "control-plane", "node-name", "patches"),
            runs_siblings=True,
        ),
        Phase(
            name="etcd",
            summary="Add this node's etcd member, where local mode is off",
            plan=plan_etcd_join,
            run_if=joins_etcd_late,
            is_hidden=True,
        ),
        Phase(
            name="mark-control-plane",
            summary="Label and taint the control-plane node",
            plan=plan_mark_control_plane,
            run_if=is_control_plane,
            flags=(*_BASIC, "control-plane", "node-name"),
        ),
    ),
)

JOIN: tuple[Phase[JoinContext], ...] = (
    Phase(
        name="preflight",
        summary="Check the machine and find the cluster",
        plan=plan_preflight,
        flags=(
            *_BASIC, "apiserver-advertise-address", "apiserver-bind-port", "certificate-key", "control-plane",
            "cri-socket", "ignore-preflight-errors", "node-name", *_DISCOVERY,
        ),
        takes=_ENDPOINT,
    ),
    Phase(
        name="tunnel",
        summary="Set up the agent of the tunnel, if the node joins through one",
        plan=plan_tunnel,
        run_if=has_tunnel,
        is_hidden=True,
    ),
    CONTROL_PLANE_PREPARE,
    Phase(
        name="check-etcd",
        summary="Check the health of etcd",
        plan=plan_check_etcd,
        run_if=is_control_plane,
        is_hidden=True,
    ),
    Phase(
        name="kubelet-start",
        summary="Write the kubelet's files and (re)start it",
        plan=plan_kubelet_start,
        flags=(*_BASIC, "cri-socket", "node-name", "patches", *_DISCOVERY),
        takes=_ENDPOINT,
    ),
    Phase(
        name="etcd-join",
        summary="Add this node's etcd member",
        plan=plan_etcd_join,
        run_if=joins_etcd_first,
        flags=(*_BASIC, "apiserver-advertise-address", "control-plane", "node-name", "patches"),
    ),
    Phase(
        name="kubelet-wait-bootstrap",
        summary="Wait for the kubelet's own certificate",
        plan=plan_wait_bootstrap,
        run_if=has_local_mode,
        flags=(*_BASIC, "cri-socket"),
    ),
    CONTROL_PLANE_JOIN,
    Phase(
        name="wait-control-plane",
        summary="Wait until the control plane answers",
        plan=plan_wait_control_plane,
        run_if=is_control_plane,
    ),
)  # fmt: skip
