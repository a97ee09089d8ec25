"""`join phase kubelet-start` and `kubelet-wait-bootstrap`: a kubelet that asks the cluster for its certificate."""

from collections.abc import Iterator

from garboard.engine import AwaitGate, ControlService, Note, RemoveFile, ShowMessage, Step, WriteFile
from garboard.errors import NotReady
from garboard.manifests.kubelet import client_certificate_path
from garboard.model.paths import ADMIN_CONF
from garboard.phases.gates import API_SERVER, ComponentHealthy, KubeletBootstrapped
from garboard.phases.join.context import JoinContext
from garboard.phases.join.tunnel import plan_wait
from garboard.phases.node.kubelet import KUBELET, plan_kubelet, wait_for_kubelet
from garboard.phases.node.records import record_on_worker
from garboard.pki.bootstrap_kubeconfig import FILE_NAME
from garboard.pki.files import CERTIFICATE_MODE, SECRET_MODE

_WORKER = """
{node} has joined the cluster at {server}: its kubelet has a certificate of its own.

See it on a control-plane node: kubectl get node {node}
"""
_CONTROL_PLANE = """
{node} has joined the cluster at {server} as a control plane: its components answer{member}.

To use it as an administrator, run as that user:

  mkdir -p $HOME/.kube
  sudo cp -i {admin} $HOME/.kube/config
  sudo chown $(id -u):$(id -g) $HOME/.kube/config

See it: kubectl get node {node}
"""


def plan_kubelet_start(context: JoinContext) -> Iterator[Step | Note]:
    """Plan what the kubelet starts with, and its start; without local mode it is waited for at once."""
    if context.joined.has_ready_node:
        raise NotReady(
            f'a Node with name "{context.node_name}" and status "Ready" already exists in the cluster',
            hint=f"choose another --node-name, or remove that one: kubectl delete node {context.node_name}",
        )
    yield from _plan_bootstrap(context)
    yield from plan_kubelet(
        context,
        registers_taints=context.config.control_plane is None,
        has_other_changes=True,  # its way to the cluster is new
        registers="" if context.joined.has_node else context.node_name,
    )
    if not context.is_kubelet_local_mode:
        yield from plan_wait_bootstrap(context)


def _plan_bootstrap(context: JoinContext) -> Iterator[Step | Note]:
    discovered = context.joined.discovered
    kubeconfig = discovered.kubeconfig.with_server(context.kubelet_server)
    content = kubeconfig.to_bytes(context.cluster.cluster_name)
    path = context.kubeconfig_path(FILE_NAME)
    action = WriteFile(path=path, content=content, mode=SECRET_MODE, is_secret=True)
    yield Step(action, "the kubelet asks for its certificate with it")
    ca_path = context.config.ca_cert_path
    if context.machine.read(ca_path) is None and ca_path not in context.planned:
        ca = WriteFile(path=ca_path, content=discovered.ca, mode=CERTIFICATE_MODE)
        yield Step(ca, "the kubelet knows the API server by it")


def plan_wait_bootstrap(context: JoinContext) -> Iterator[Step | Note]:
    """Plan to wait for the kubelet and its certificate, and then to remove the kubeconfig that it asked with."""
    yield from wait_for_kubelet(context, "what comes next needs the kubelet")
    if context.tunnel is not None and context.tunnel.agent_form == "static-pod":
        yield from plan_wait(context.tunnel, timeout_s=context.timeouts.tls_bootstrap.seconds)
    if context.config.control_plane is not None and context.is_kubelet_local_mode:
        yield from _plan_new_try(context)
    bootstrapped = KubeletBootstrapped(
        node_name=context.node_name,
        timeout_s=context.timeouts.tls_bootstrap.seconds,
        kubeconfig=context.kubeconfig_path("kubelet.conf"),
        server=context.kubelet_server,
    )
    yield Step(AwaitGate(gate=bootstrapped), "the node is part of the cluster with it")
    yield Step(RemoveFile(path=context.kubeconfig_path(FILE_NAME)), "the kubelet has its own certificate")
    if context.config.control_plane is None:
        yield from record_on_worker(context)
        yield from plan_end(context)


def _plan_new_try(context: JoinContext) -> Iterator[Step]:
    """Plan to start the kubelet again as soon as the API server beside it answers.

    The kubelet was started before that API server, which needs etcd first, and waits longer after every failure, up to
    16 s. A kubelet that starts tries at once.
    """
    gate = ComponentHealthy(
        component=API_SERVER, timeout_s=context.timeouts.control_plane_component_health_check.seconds
    )
    yield Step(AwaitGate(gate=gate), "the kubelet gets its certificate from it")
    if context.machine.has_service_manager():
        restart = ControlService(
            service=KUBELET,
            verb="restart",
            is_needed=False,
            unless=client_certificate_path(context.node_registration.kubelet_extra_args),
        )
        yield Step(restart, "it asks for its certificate at once when it starts")


def plan_end(context: JoinContext, *, has_member: bool = False) -> Iterator[Step]:
    """Plan to say that the node has joined, if all phases were asked for."""
    if not context.is_whole:
        return
    text = _WORKER if context.config.control_plane is None else _CONTROL_PLANE
    told = text.format(
        node=context.node_name,
        server=context.joined.server + (f", through its agent at {context.kubelet_server}" if context.tunnel else ""),
        admin=ADMIN_CONF,
        member=", and its etcd member votes" if has_member else "",
    )
    yield Step(ShowMessage(about="that the node has joined", text=told), "")
