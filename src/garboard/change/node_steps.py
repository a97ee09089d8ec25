"""The steps on one node: what is rendered before and after, carried over to what the node has, and what restarts."""

from collections.abc import Iterator, Mapping, Sequence

from garboard.change.attribute import ALL_PODS
from garboard.change.carrying import EditConflict, carried
from garboard.change.differences import AttributeChange
from garboard.change.plan import PlannedFile, PlannedStep
from garboard.change.rendering import RenderedPod
from garboard.change.snapshot import SnapshotNode
from garboard.change.table import attribute_table
from garboard.documents import Json, equal, marshal_yaml, read_yaml
from garboard.manifests.kubelet import CONFIG_FILE
from garboard.model.go import join_path
from garboard.model.paths import KUBELET_DIR, manifest_path
from garboard.patches.unified import TextDiff
from garboard.values import dataclass

ETCD, API_SERVER, KUBELET, KUBE_PROXY = "etcd", "kube-apiserver", "kubelet", "kube-proxy"
TOGETHER = "the API server and its etcd are replaced together"
_READY = {
    "kube-apiserver": "kube-apiserver answers /readyz",
    "kube-controller-manager": "kube-controller-manager answers /healthz",
    "kube-scheduler": "kube-scheduler answers /readyz",
    "etcd": "the member of etcd is up and has caught up",
}
_STATE_FILES = {
    "cpuManager": "cpu_manager_state",
    "topologyManager": "cpu_manager_state",
    "memoryManager": "memory_manager_state",
    "reservedMemory": "memory_manager_state",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRenderings:
    """What one configuration makes of a node."""

    pods: Mapping[str, RenderedPod]
    certificates: Mapping[str, tuple[str, ...]]
    kubeconfigs: tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeWork:
    """What a change makes of a node: its steps in order, and where it is in conflict with what the node has."""

    steps: tuple[PlannedStep, ...] = ()
    conflicts: tuple[tuple[str, EditConflict], ...] = ()  # by component

    @property
    def touched(self) -> frozenset[str]:
        return frozenset(name for step in self.steps for name in step.restarts)


def cause_of(component: str, changes: Sequence[AttributeChange], default: str) -> str:
    """Return which attributes a component changes for; `default` is the cause where no attribute changes."""
    own = [
        change.label
        for change in changes
        if (row := attribute_table(change.kind).row(change.path)) and component in row.components
    ]
    # A flag of etcd may show in the API server, too: where the table names nobody, it was one of them all.
    labels = own or [change.label for change in changes]
    return f"{', '.join(labels)} changed" if labels else default


def control_plane_work(
    node: SnapshotNode,
    before: NodeRenderings,
    after: NodeRenderings,
    changes: Sequence[AttributeChange],
    *,
    certificates_dir: str,
    patch_cause: str,
    quorum: str,
    is_first: bool,
) -> NodeWork:
    """Return the steps for certificates, kubeconfigs and static pods of a control plane, with the waits behind them."""
    steps = [
        *_certificate_steps(node, before, after, changes, certificates_dir),
        *_kubeconfig_steps(before, after, changes),
    ]
    conflicts: list[tuple[str, EditConflict]] = []
    replaced: list[str] = []
    if is_first and _differs(ETCD, before, after):
        cause = cause_of(ETCD, changes, patch_cause)
        steps.append(PlannedStep(phase="etcd-snapshot", title="take a snapshot of etcd", cause=cause))
    for name in ALL_PODS:
        if not _differs(name, before, after):
            continue
        old, new = before.pods[name], after.pods[name]
        seen = (node.manifests or {}).get(name)
        assumed = _assumed(old.document, node, name) if seen is None else None
        file, found = _changed_file(manifest_path(name), old.document, new.document, seen, assumed)
        conflicts += [(name, each) for each in found]
        if file is None:
            continue
        title = f"replace {name}" + (f" ({quorum})" if name == ETCD and quorum else "")
        cause = cause_of(name, changes, patch_cause)
        steps.append(
            PlannedStep(phase=f"static-pods/{name}", title=title, cause=cause, files=(file,), restarts=(name,))
        )
        replaced.append(name)
    if ETCD in replaced and API_SERVER not in replaced:
        steps.append(
            PlannedStep(
                phase=f"static-pods/{API_SERVER}", title=f"restart {API_SERVER} with it", cause=TOGETHER,
                restarts=(API_SERVER,),
            )
        )  # fmt: skip
        replaced.append(API_SERVER)
    if replaced:
        waits = ", ".join(_READY[name] for name in replaced)
        steps.append(PlannedStep(phase="gates", title=f"wait until {waits}", cause="the next node only follows then"))
    return NodeWork(steps=tuple(steps), conflicts=tuple(conflicts))


def _differs(name: str, before: NodeRenderings, after: NodeRenderings) -> bool:
    return name in before.pods and name in after.pods and before.pods[name].document != after.pods[name].document


def _certificate_steps(
    node: SnapshotNode,
    before: NodeRenderings,
    after: NodeRenderings,
    changes: Sequence[AttributeChange],
    certificates_dir: str,
) -> Iterator[PlannedStep]:
    for phase, names in after.certificates.items():
        old = before.certificates.get(phase, ())
        if names == old:
            continue
        name = phase.removeprefix("certs/")
        file = name if name == "apiserver" else f"etcd/{name.removeprefix('etcd-')}"
        lines = [f"-{each}\n" for each in old if each not in names] + [
            f"+{each}\n" for each in names if each not in old
        ]
        path = join_path(certificates_dir, f"{file}.crt")
        changed = PlannedFile(path=path, diff="".join(lines), is_assumed=node.certificates is None)
        yield PlannedStep(
            phase=phase,
            title=f"issue {path} again and verify it by a handshake; nothing restarts",
            cause=cause_of(phase, changes, "the names that it needs changed"),
            files=(changed,),
        )


def _kubeconfig_steps(
    before: NodeRenderings, after: NodeRenderings, changes: Sequence[AttributeChange]
) -> Iterator[PlannedStep]:
    if before.kubeconfigs == after.kubeconfigs:
        return
    diff = "".join(
        f"-{old}\n+{new}\n" for old, new in zip(before.kubeconfigs, after.kubeconfigs, strict=True) if old != new
    )
    paths = [f"/etc/kubernetes/{name}.conf" for name in ("admin", "super-admin", "controller-manager", "scheduler")]
    yield PlannedStep(
        phase="kubeconfig/all",
        title="make the kubeconfigs again",
        cause=cause_of("kubeconfigs", changes, "what they name changed"),
        files=tuple(PlannedFile(path=path, diff=diff, is_assumed=True) for path in paths),
    )


def kubelet_work(
    node: SnapshotNode,
    before: Mapping[str, Json],
    after: Mapping[str, Json],
    changes: Sequence[AttributeChange],
    *,
    patch_cause: str,
    is_drained: bool,
) -> NodeWork:
    """Return the steps for the kubelet of a node, around which it is drained where pods would not survive."""
    if before == after:
        return NodeWork()
    file, conflicts = _changed_file(CONFIG_FILE, before, after, node.kubelet_config or None)
    found = tuple((KUBELET, each) for each in conflicts)
    if file is None:
        return NodeWork(conflicts=found)
    cause = cause_of(KUBELET, changes, patch_cause)
    files = (file, *_state_files(changes))
    restart = PlannedStep(
        phase="kubelet-config", title="write the configuration of the kubelet and restart it", cause=cause, files=files,
        restarts=(KUBELET,),
    )  # fmt: skip
    ready = PlannedStep(
        phase="gates", title="wait until the kubelet answers /healthz and the Node is Ready",
        cause="the next node only follows then",
    )  # fmt: skip
    drain = PlannedStep(phase="drain", title=f"cordon and drain {node.name}", cause=cause)
    uncordon = PlannedStep(phase="drain", title=f"uncordon {node.name}", cause="it takes pods again")
    return NodeWork(steps=(drain, restart, ready, uncordon) if is_drained else (restart, ready), conflicts=found)


def _state_files(changes: Sequence[AttributeChange]) -> Iterator[PlannedFile]:
    """Yield the files in which a kubelet keeps what its policies have decided, and that must not outlive these."""
    names = {
        file
        for change in changes
        for prefix, file in _STATE_FILES.items()
        if change.kind == "KubeletConfiguration" and change.path[0].startswith(prefix)
    }
    for name in sorted(names):
        yield PlannedFile(path=join_path(KUBELET_DIR, name), diff="removed\n", is_assumed=True)


def _changed_file(
    path: str, before: Mapping[str, Json], after: Mapping[str, Json], seen: str | None, assumed: Json = None
) -> tuple[PlannedFile | None, tuple[EditConflict, ...]]:
    """Return a file with the change carried over to what is there; off the node, to what would be there."""
    there = read_yaml(seen, source=path) if seen is not None else assumed or dict(before)
    document, conflicts = carried(dict(before), dict(after), there)
    if equal(document, there):
        return None, conflicts
    old = seen if seen is not None else marshal_yaml(there, source=path)
    new = marshal_yaml(document, source=path)
    file = PlannedFile(
        path=path,
        diff=diff_of(path, old, new),
        is_assumed=seen is None,
        former=None if seen is None else seen.encode(),
        content=new.encode(),
    )
    return file, conflicts


def _assumed(rendered: Mapping[str, Json], node: SnapshotNode, component: str) -> Json:
    """Return a manifest that nobody has seen as it probably is: rendered, with the command line that the API shows."""
    pod = node.mirror_pods.get(component)
    spec = rendered.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    first = containers[0] if isinstance(containers, list) and containers else None
    if pod is None or not pod.command or not isinstance(first, dict) or first.get("args"):
        return dict(rendered)
    assert isinstance(spec, dict)
    assert isinstance(containers, list)
    command: Json = [*pod.command]
    return {**rendered, "spec": {**spec, "containers": [{**first, "command": command}, *containers[1:]]}}


def diff_of(name: str, before: str, after: str) -> str:
    return "".join(TextDiff.of(before, after, (name, name)).lines)
