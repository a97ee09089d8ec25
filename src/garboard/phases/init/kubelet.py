"""`init phase kubelet-start`: the kubelet's files, written while it stands still, and then the kubelet itself."""

from collections.abc import Iterator

from garboard.engine import ControlService, Note, Step
from garboard.manifests.kubelet import kubelet_files
from garboard.manifests.paths import KUBELET_DIR
from garboard.model.component import LocalEtcd
from garboard.phases.init.context import InitContext

KUBELET = "kubelet"
# Where a kubelet and its runtime keep what belongs to pods, besides its own folder.
POD_FOLDERS = ("/var/log/pods", "/var/log/containers")
_NO_MANAGER = "No supported init system detected, won't make sure the kubelet is running properly."


def plan_kubelet_start(context: InitContext) -> Iterator[Step | Note]:
    """Plan the files that differ, and a (re)start unless the kubelet runs with these very files."""
    yield from plan_kubelet(context, kind="InitConfiguration", registers_taints=False)


def plan_kubelet(
    context: InitContext, *, kind: str, registers_taints: bool, has_other_changes: bool = False, registers: str = ""
) -> Iterator[Step | Note]:
    """Plan the kubelet of any node; `has_other_changes` starts it anew even if it has these very files.

    `registers` is the Node that it will make, if the cluster has none of that name.
    """
    cluster = context.config.cluster
    patches = context.patches.begin(cluster.release)
    rendered = kubelet_files(
        context.components.kubelet.printed(cluster.facts),
        cluster,
        context.config.node_registration,
        context.host,
        kind=kind,
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
        cause = "its configuration changes" if has_changes else "it does not run"
        start = ControlService(
            service=KUBELET,
            verb="start",
            is_needed=False,
            fills=_fills(context),
            # The kubelet of a join makes its own.
            writes=(context.kubeconfig_path("kubelet.conf"),),
            registers=registers,
        )
        yield Step(start, cause)


def _fills(context: InitContext) -> tuple[str, ...]:
    """Return the folders that the kubelet and the pods of the control plane will write to."""
    etcd = context.config.cluster.etcd
    return (KUBELET_DIR, *((etcd.data_dir,) if isinstance(etcd, LocalEtcd) else ()), *POD_FOLDERS)
