"""A plan of a change as a plan of the engine: parts for nodes and for what they share, in their order.

It is for whoever carries a change out. Static pods are swapped, kubelets restarted, nodes drained and ConfigMaps put
by the actions that there are; what has none yet is told by `without_actions`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from garboard.change.document import digest_of
from garboard.change.plan import ChangePlan, NodeChange, PlannedFile, PlannedObject, PlannedStep
from garboard.change.snapshot import ClusterSnapshot, SnapshotNode
from garboard.engine import (
    AwaitGate,
    ClusterPart,
    ClusterPlan,
    ControlService,
    NodePart,
    Plan,
    PutObject,
    RemoveFile,
    SaveSnapshot,
    Step,
    WriteFile,
)
from garboard.manifests.etcd import CLIENT_PORT, PEER_PORT
from garboard.manifests.objects import KUBE_SYSTEM, config_map
from garboard.model.addresses import join_host_port
from garboard.model.go import join_path
from garboard.phases.gates import KubeletHealthy, NodeReady
from garboard.phases.node.draining import NodeScheduling, plan_drain, plan_uncordon
from garboard.phases.static_pods import SwapSettings, plan_swap

WORDS = ("change", "node")  # our command on a node, which is handed the digest of what was looked at
SNAPSHOTS = "/var/lib/garboard/etcd-snapshots"
_KUBELET, _KUBELET_S, _CONFIG_MODE = "kubelet", 240.0, 0o644
_STATIC_PODS, _SNAPSHOT, _DRAIN, _KUBELET_CONFIG, _GATES = (
    "static-pods",
    "etcd-snapshot",
    "drain",
    "kubelet-config",
    "gates",
)
_WITH_ACTIONS = (_SNAPSHOT, _DRAIN, _KUBELET_CONFIG, _GATES)


def cluster_plan(plan: ChangePlan, snapshot: ClusterSnapshot) -> ClusterPlan:
    """Return the parts of a plan in their order, for nodes and for what they share; a blocked plan has none."""
    return ClusterPlan(tuple(_parts(plan, snapshot)))


def without_actions(plan: ChangePlan) -> tuple[str, ...]:
    """Return what of a plan the engine has no actions for: phases of nodes, and objects that are no ConfigMaps."""
    phases = [step.phase for each in plan.nodes for step in each.steps]
    found = [each for each in phases if not each.startswith(_STATIC_PODS) and each not in _WITH_ACTIONS]
    return tuple(dict.fromkeys([*found, *(each.kind for each in plan.objects if each.kind != "ConfigMap")]))


def _parts(plan: ChangePlan, snapshot: ClusterSnapshot) -> Iterator[NodePart | ClusterPart]:
    digest = digest_of(plan)
    for part in plan.parts:
        if isinstance(part, NodeChange):
            node = snapshot.node(part.node)
            assert node is not None, "a plan is made for the nodes of its snapshot"
            steps = tuple(replace(step, node=node.name) for step in _node_steps(part, node, snapshot, digest))
            if steps:
                yield NodePart(node=node.name, words=(*WORDS, digest), plan=Plan(steps, observed=plan.observed))
        elif part.kind == "ConfigMap" and part.data:
            yield ClusterPart(name=part.name, plan=Plan((_put(part),), observed=plan.observed))


def _node_steps(part: NodeChange, node: SnapshotNode, snapshot: ClusterSnapshot, digest: str) -> Iterator[Step]:
    """Yield the steps on one node; the static pods are one unit, at the place of the first of them."""
    swaps = [step for step in part.steps if step.replaced is not None]
    for step in part.steps:
        if step.phase == _SNAPSHOT:
            yield from _placed(step.phase, [_snapshot(step, node, digest)])
        elif step.phase == _DRAIN:
            is_end = step is part.steps[-1]
            scheduling = NodeScheduling(name=node.name)
            found = plan_uncordon(scheduling, step.cause) if is_end else plan_drain(scheduling, step.cause)
            yield from _placed(step.phase, found)
        elif step.phase == _KUBELET_CONFIG:
            yield from _placed(step.phase, _kubelet(step, node))
        elif swaps and step is swaps[0]:
            yield from _placed(_STATIC_PODS, _swap(swaps, node, snapshot))


def _placed(phase: str, steps: Sequence[Step] | Iterator[Step]) -> Iterator[Step]:
    return (replace(step, phase=phase) for step in steps)


def _swap(swaps: Sequence[PlannedStep], node: SnapshotNode, snapshot: ClusterSnapshot) -> Iterator[Step]:
    pods = [step.replaced for step in swaps if step.replaced is not None]
    causes = dict.fromkeys(step.cause for step in swaps if step.files)
    settings = SwapSettings(
        member_url=_etcd_url(node, PEER_PORT),
        voters=sum(not each.is_learner for each in snapshot.members or ()),
    )
    is_assumed = any(file.is_assumed for step in swaps for file in step.files)
    for step in plan_swap(pods, node.name, "; ".join(causes), settings):
        # Nobody has seen the files, so that what they are expected to be would be a guess.
        yield replace(step, preconditions=()) if is_assumed else step


def _snapshot(step: PlannedStep, node: SnapshotNode, digest: str) -> Step:
    path = join_path(SNAPSHOTS, f"change-{digest.removeprefix('sha256:')[:12]}.db")
    return Step(SaveSnapshot(path=path, client_url=_etcd_url(node, CLIENT_PORT)), step.cause)


def _etcd_url(node: SnapshotNode, port: int) -> str:
    if "etcd" not in node.mirror_pods or node.endpoint is None:
        return ""
    return f"https://{join_host_port(node.endpoint.advertise_address, port)}"


def _kubelet(step: PlannedStep, node: SnapshotNode) -> Iterator[Step]:
    """Yield how a kubelet gets its configuration: restarted, or stopped first where a state file has to go."""
    config = [file for file in step.files if file.content is not None]
    gone = [file for file in step.files if file.content is None]
    if gone:
        yield Step(ControlService(service=_KUBELET, verb="stop"), "it would write its state file again")
    yield from (_written(file, step.cause) for file in config)
    yield from (Step(RemoveFile(path=file.path), "it holds what another policy decided") for file in gone)
    verb = "start" if gone else "restart"
    yield Step(ControlService(service=_KUBELET, verb=verb), step.cause, restarts=(_KUBELET,))  # type: ignore[arg-type]
    yield Step(AwaitGate(gate=KubeletHealthy(timeout_s=_KUBELET_S)), "it was restarted")
    yield Step(AwaitGate(gate=NodeReady(node_name=node.name, timeout_s=_KUBELET_S)), "the next node only follows then")


def _written(file: PlannedFile, cause: str) -> Step:
    assert file.content is not None
    return Step(WriteFile(path=file.path, content=file.content, mode=_CONFIG_MODE), cause)


def _put(part: PlannedObject) -> Step:
    content = config_map(part.name, KUBE_SYSTEM, dict(part.data)).content
    action = PutObject.of(content, keeps_other_data=True, resource_version=part.resource_version)
    return Step(action, part.cause, phase="objects")
