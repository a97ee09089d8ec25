"""The tree of `join`: phases in kubeadm's order.

With KEP-4471 (local mode, always on in kubeadm of the minors we know) the kubelet of a control-plane node talks to its
own API server. That one needs etcd first, so etcd joins after the kubelet has started and before anybody waits for it.
With the gate ControlPlaneKubeletLocalMode off, the kubelet is waited for at once and etcd joins later, within
control-plane-join, as it was before; each phase's `run_if` decides.
"""

from garboard.phases.join.context import JoinContext
from garboard.phases.join.control_plane import (
    plan_certs,
    plan_check_etcd,
    plan_control_plane,
    plan_download_certs,
    plan_etcd_join,
    plan_kubeconfigs,
)
from garboard.phases.join.kubelet import plan_kubelet_start, plan_wait_bootstrap
from garboard.phases.join.preflight import plan_preflight
from garboard.phases.join.waiting import plan_mark, plan_wait_control_plane
from garboard.phases.workflow import Phase

_BASIC = ("config", "dry-run")
_DISCOVERY = (
    "discovery-file", "discovery-token", "discovery-token-ca-cert-hash",
    "discovery-token-unsafe-skip-ca-verification", "tls-bootstrap-token", "token",
)  # fmt: skip
_ENDPOINT = "api-server-endpoint"


def is_control_plane(context: JoinContext) -> bool:
    return context.config.control_plane is not None


def has_local_mode(context: JoinContext) -> bool:
    return context.is_kubelet_local_mode


def joins_etcd_first(context: JoinContext) -> bool:
    return is_control_plane(context) and context.is_kubelet_local_mode


def joins_etcd_late(context: JoinContext) -> bool:
    return is_control_plane(context) and not context.is_kubelet_local_mode


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
            plan=plan_mark,
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
