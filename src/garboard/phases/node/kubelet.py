"""The kubelet of a node: its files, written while it stands still, its start, and the rotation of its certificate."""

from collections.abc import Iterator

from garboard.engine import AwaitGate, ControlService, Note, Step
from garboard.manifests.container import last_arg
from garboard.manifests.kubelet import CONFIG_FILE, PATCH_TARGET, client_certificate_path, kubelet_files
from garboard.model.component import LocalEtcd
from garboard.model.paths import KUBELET_DIR
from garboard.phases.gates import KubeletHealthy
from garboard.phases.issuing import RotationRequest
from garboard.phases.node.context import NodeContext

KUBELET = "kubelet"
# Where a kubelet and its runtime keep what belongs to pods, besides its own folder.
POD_FOLDERS = ("/var/log/pods", "/var/log/containers")
_NO_MANAGER = "No supported init system detected, won't make sure the kubelet is running properly."


def plan_kubelet(
    context: NodeContext, *, registers_taints: bool = False, has_other_changes: bool = False, registers: str = ""
) -> Iterator[Step | Note]:
    """Plan the files that differ, and a (re)start unless the kubelet runs with these very files.

    `has_other_changes` starts it anew even then. `registers` is the Node that it will make, if the cluster has none of
    that name.
    """
    cluster = context.cluster
    patches = context.patches.begin(cluster.release)
    rendered = kubelet_files(
        context.components.kubelet.printed(cluster.facts),
        cluster,
        context.node_registration,
        context.host,
        kind=context.config_kind,
        registers_taints=registers_taints,
        patcher=patches,
    )
    writes = tuple(context.writes(rendered))
    yield from patches.notes()
    has_changes = has_other_changes or any(isinstance(each, Step) for each in writes)
    if not context.machine.has_service_manager():
        yield Note(_NO_MANAGER, is_warning=True)
        yield from writes
        return
    is_active = context.machine.is_active(KUBELET)
    if has_changes and is_active:
        yield Step(ControlService(service=KUBELET, verb="stop", is_needed=False), "its configuration changes")
    yield from writes
    if has_changes or not is_active:
        yield Step(_start(context, registers), "its configuration changes" if has_changes else "it does not run")


def _start(context: NodeContext, registers: str) -> ControlService:
    etcd = context.cluster.etcd
    return ControlService(
        service=KUBELET,
        verb="start",
        is_needed=False,
        # The kubelet and the pods of the control plane write to these folders.
        fills=(KUBELET_DIR, *((etcd.data_dir,) if isinstance(etcd, LocalEtcd) else ()), *POD_FOLDERS),
        # The kubelet of a node that joins makes its own kubeconfig.
        writes=(context.kubeconfig_path("kubelet.conf"),),
        registers=registers,
    )


def wait_for_kubelet(context: NodeContext, cause: str) -> Iterator[Step]:
    """Plan to wait until the kubelet is healthy."""
    yield Step(AwaitGate(gate=KubeletHealthy(timeout_s=context.timeouts.kubelet_health_check.seconds)), cause)


def plan_rotation(context: NodeContext) -> Iterator[Step | Note]:
    """Plan kubelet.conf with the certificate that the kubelet renews by itself, and a restart to take it up."""
    pem = client_certificate_path(context.node_registration.kubelet_extra_args)
    if not _rotates(context, pem):
        yield Note("The kubelet does not rotate its client certificate: kubelet.conf stays as it is")
        return
    request = RotationRequest(path=context.kubeconfig_path("kubelet.conf"), node_name=context.node_name, pem=pem)
    if request.path not in context.planned and request.is_done(context.machine.read):
        yield Note(f"{request.path} names {pem} already")
        return
    yield Step(request.action(), "the kubelet renews its certificate by itself")
    if context.machine.has_service_manager():
        restart = ControlService(service=KUBELET, verb="restart", is_needed=False)
        yield Step(restart, "it reads kubelet.conf when it starts")


def _rotates(context: NodeContext, pem: str) -> bool:
    """Say whether the kubelet stores a certificate that it renews: by its settings, if they are still to be written."""
    if CONFIG_FILE not in context.planned:
        return context.machine.read(pem) is not None
    flag = last_arg(context.node_registration.kubelet_extra_args, "rotate-certificates")
    if flag is not None:
        return flag[1].value.lower() in ("true", "1", "t")
    document = context.components.kubelet.printed(context.cluster.facts)
    patched = context.patches.begin(context.cluster.release)(PATCH_TARGET, document)
    return isinstance(patched, dict) and patched.get("rotateCertificates") is True
