"""What has to be so before a node is upgraded: the machine, the nodes of the cluster, and what the target drops."""

from collections.abc import Callable, Iterator
from functools import partial

from garboard.documents import read_yaml
from garboard.manifests.kubelet import CONFIG_FILE
from garboard.model.component import ExternalEtcd
from garboard.model.minors import ECDSA_GATE
from garboard.model.paths import manifest_path
from garboard.phases.preflight import checks
from garboard.phases.preflight.checks import Check, Found
from garboard.phases.preflight.inspector import MachineInspector
from garboard.phases.upgrade.context import UpgradeContext
from garboard.phases.upgrade.control_plane import SNAPSHOTS, saves_snapshot
from garboard.phases.upgrade.removals import REMOVALS, removed_from_kubelets, removed_kubelet_flags

_MIB = 1024 * 1024
_COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")


def upgrade_checks(context: UpgradeContext) -> Iterator[Check]:
    """Yield the checks of `apply`, or those of `node` without what concerns the whole cluster."""
    registration, cluster = context.node_registration, context.cluster
    yield checks.runtime_is_ready(registration.cri_socket)
    yield checks.runtime_reports_cgroup_driver(registration.cri_socket, cluster.facts)
    yield checks.system_fits(allows_cgroup_v1=_allows_cgroup_v1(context))
    yield _check("KubeletFlags", lambda: removed_kubelet_flags(context))
    if not context.is_control_plane:
        yield _check("KubeletConfiguration", lambda: removed_from_kubelets(context))
        return
    yield _check("StaticPodManifest", lambda: _missing(context))
    yield _check("FeatureGates", lambda: _gates(context))
    yield from (_check(name, partial(find, context)) for name, find in REMOVALS.items())
    if isinstance(cluster.etcd, ExternalEtcd):
        yield checks.external_etcd_fits(cluster.etcd, cluster.facts.minimum_external_etcd)
    if context.options.is_first:
        yield _check("ControlPlaneNodesReady", lambda: _unready(context))
    yield _check("EtcdSnapshotSpace", lambda: _no_room(context))


def _allows_cgroup_v1(context: UpgradeContext) -> bool:
    """Say whether the kubelet of this node is told to run on control groups of v1, as it does."""
    found = read_yaml(context.machine.read(CONFIG_FILE) or b"{}", source=CONFIG_FILE)
    return isinstance(found, dict) and found.get("failCgroupV1") is False


def _check(name: str, look: Callable[[], Iterator[tuple[str, bool]]]) -> Check:
    def found(_inspector: MachineInspector) -> Found:
        return look()

    return Check(name, found)


def _missing(context: UpgradeContext) -> Iterator[tuple[str, bool]]:
    for each in _COMPONENTS:
        if each not in context.manifests:
            yield f"{manifest_path(each)} does not exist", True


def _unready(context: UpgradeContext) -> Iterator[tuple[str, bool]]:
    unready = [each.name for each in context.upgraded.nodes if each.is_control_plane and not each.is_ready]
    if unready:
        yield f"there are control-plane nodes that are not Ready: {', '.join(unready)}", True


def _no_room(context: UpgradeContext) -> Iterator[tuple[str, bool]]:
    room = context.room
    if room and saves_snapshot(context) and not room.is_enough:
        needed, free = (f"{count / _MIB:.0f} MiB" for count in (2 * room.database_bytes, room.free_bytes))
        yield f"a snapshot of etcd is saved in {SNAPSHOTS}: {needed} have to be free there, and {free} are", True


def _gates(context: UpgradeContext) -> Iterator[tuple[str, bool]]:
    """Tell which feature gates of kubeadm the target does not have; with one of them new keys would change."""
    former, target = context.upgraded.former, context.cluster
    for name, is_on in former.feature_gates.items():
        if name in target.facts.gate_defaults or name not in former.facts.gate_defaults:
            continue
        if name == ECDSA_GATE and former.key_algorithm != target.key_algorithm:
            told = f"{name} is gone in {target.minor}: keys would be {target.key_algorithm} from now on"
            way = f"Set encryptionAlgorithm: {former.key_algorithm} in ConfigMap kube-system/kubeadm-config first"
            yield f"{told}. {way}{'' if is_on else ' to keep what they are'}", is_on
        else:
            yield f"feature gate {name} is gone in {target.minor}, and has no effect any more", False
