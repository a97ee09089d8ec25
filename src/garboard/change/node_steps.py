"""The steps on one node: what is rendered before and after, carried over to what the node has, and what restarts."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy

from garboard.change.carrying import EditConflict, carried
from garboard.change.differences import AttributeChange
from garboard.change.plan import PlannedFile, PlannedStep
from garboard.change.snapshot import SnapshotNode
from garboard.change.table import attribute_table
from garboard.documents import Json, equal, marshal_yaml, read_yaml
from garboard.manifests.kubelet import CONFIG_FILE
from garboard.model.go import join_path
from garboard.model.paths import KUBELET_DIR
from garboard.patches.unified import TextDiff
from garboard.values import dataclass

KUBELET = "kubelet"
_STATE_FILES = {
    "cpuManager": "cpu_manager_state",
    "topologyManager": "cpu_manager_state",
    "memoryManager": "memory_manager_state",
    "reservedMemory": "memory_manager_state",
}


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
    file, conflicts = changed_file(CONFIG_FILE, before, after, node.kubelet_config or None)
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


def changed_file(
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
        former=old.encode(),
        content=new.encode(),
    )
    return file, conflicts


def with_live_flags(rendered: Mapping[str, Json], seen: str | None, assumed: Json, component: str) -> dict[str, Json]:
    """Return what was rendered with the flags that there really are, so that those which nobody declared are undone.

    What says how a member joined etcd is rendered in another way each time, and stays.
    """
    live = _first_container(read_yaml(seen, source=component) if seen is not None else assumed).get("command")
    found = deepcopy(dict(rendered))
    container = _first_container(found)
    own = container.get("command")
    if isinstance(live, list) and isinstance(own, list):
        typed = [word for word in live if not _is_of_member(word)]
        if sorted(map(str, typed)) != sorted(str(word) for word in own if not _is_of_member(word)):
            container["command"] = [*typed, *(word for word in own if _is_of_member(word))]
    return found


def _is_of_member(word: Json) -> bool:
    return str(word).partition("=")[0] in ("--initial-cluster", "--initial-cluster-state")


def _first_container(pod: Json) -> dict[str, Json]:
    spec = pod.get("spec") if isinstance(pod, dict) else None
    containers = spec.get("containers") if isinstance(spec, dict) else None
    first = containers[0] if isinstance(containers, list) and containers else None
    return first if isinstance(first, dict) else {}


def assumed_manifest(rendered: Mapping[str, Json], node: SnapshotNode, component: str) -> Json:
    """Return a manifest that nobody has seen as it probably is: rendered, with what the API shows of its container."""
    pod = node.mirror_pods.get(component)
    spec = rendered.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    first = containers[0] if isinstance(containers, list) and containers else None
    if pod is None or not pod.command or not isinstance(first, dict) or first.get("args"):
        return dict(rendered)
    assert isinstance(spec, dict)
    assert isinstance(containers, list)
    command: Json = [*pod.command]
    seen: dict[str, Json] = {**first, "command": command, **({"image": pod.image} if pod.image else {})}
    return {**rendered, "spec": {**spec, "containers": [seen, *containers[1:]]}}


def diff_of(name: str, before: str, after: str) -> str:
    return "".join(TextDiff.of(before, after, (name, name)).lines)
