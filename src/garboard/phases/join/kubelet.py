"""`join phase kubelet-start` and `kubelet-wait-bootstrap`: a kubelet that asks the cluster for its certificate."""

from collections.abc import Iterator

from garboard.engine import AwaitGate, ControlService, Note, RemoveFile, Step, WriteFile
from garboard.errors import NotReady
from garboard.manifests.kubelet import client_certificate_path
from garboard.phases.init.kubelet import KUBELET, plan_kubelet
from garboard.phases.join.context import JoinContext
from garboard.phases.join.ending import plan_end
from garboard.phases.patch_record import record_on_worker
from garboard.phases.waiting import API_SERVER, ComponentHealthy, KubeletBootstrapped, KubeletHealthy
from garboard.pki.bootstrap_kubeconfig import FILE_NAME
from garboard.pki.files import CERTIFICATE_MODE, SECRET_MODE


def plan_kubelet_start(context: JoinContext) -> Iterator[Step | Note]:
    """Plan what the kubelet starts with, and its start; without local mode it is waited for at once."""
    if context.joined.has_ready_node:
        raise NotReady(
            f'a Node with name "{context.node_name}" and status "Ready" already exists in the cluster',
            hint=f"choose another --node-name, or remove that one: kubectl delete node {context.node_name}",
        )
    yield from _plan_bootstrap(context)
    yield from plan_kubelet(
        context.node,
        kind="JoinConfiguration",
        registers_taints=context.config.control_plane is None,
        has_other_changes=True,  # its way to the cluster is new
        registers="" if context.joined.has_node else context.node_name,
    )
    if not context.is_kubelet_local_mode:
        yield from plan_wait_bootstrap(context)


def _plan_bootstrap(context: JoinContext) -> Iterator[Step | Note]:
    kubeconfig = context.found.kubeconfig.with_server(context.kubelet_server)
    content = kubeconfig.to_bytes(context.joined.configuration.cluster_name)
    path = context.node.kubeconfig_path(FILE_NAME)
    action = WriteFile(path=path, content=content, mode=SECRET_MODE, is_secret=True)
    yield Step(action, "the kubelet asks for its certificate with it")
    ca_path = context.config.ca_cert_path
    if context.node.machine.read(ca_path) is None and ca_path not in context.node.planned:
        ca = WriteFile(path=ca_path, content=context.found.ca, mode=CERTIFICATE_MODE)
        yield Step(ca, "the kubelet knows the API server by it")


def plan_wait_bootstrap(context: JoinContext) -> Iterator[Step | Note]:
    """Plan to wait for the kubelet and its certificate; what it asked for that with is not needed any more then."""
    timeouts = context.config.timeouts
    healthy = KubeletHealthy(timeout_s=timeouts.kubelet_health_check.seconds)
    yield Step(AwaitGate(gate=healthy), "what comes next needs the kubelet")
    if context.config.control_plane is not None and context.is_kubelet_local_mode:
        yield from _plan_new_try(context)
    bootstrapped = KubeletBootstrapped(
        node_name=context.node_name,
        timeout_s=timeouts.tls_bootstrap.seconds,
        kubeconfig=context.node.kubeconfig_path("kubelet.conf"),
        server=context.kubelet_server,
    )
    yield Step(AwaitGate(gate=bootstrapped), "the node is part of the cluster with it")
    yield Step(RemoveFile(path=context.node.kubeconfig_path(FILE_NAME)), "the kubelet has its own certificate")
    if context.config.control_plane is None:
        yield from record_on_worker(context.node_name, context.node.patches, timeouts)
        yield from plan_end(context)


def _plan_new_try(context: JoinContext) -> Iterator[Step]:
    """Plan to start a kubelet again that found no API server yet, as soon as there is one.

    It waits for longer and longer between its tries, up to 16 s, while the API server that it needs, its own, is not
    there before etcd is; a kubelet that starts tries at once.
    """
    gate = ComponentHealthy(
        component=API_SERVER, timeout_s=context.config.timeouts.control_plane_component_health_check.seconds
    )
    yield Step(AwaitGate(gate=gate), "the kubelet gets its certificate from it")
    if context.node.machine.has_service_manager():
        restart = ControlService(
            service=KUBELET,
            verb="restart",
            is_needed=False,
            unless=client_certificate_path(context.config.node_registration.kubelet_extra_args),
        )
        yield Step(restart, "it asks for its certificate at once when it starts")
