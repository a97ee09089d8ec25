"""A plan of a change as a plan of the engine: parts for nodes and for what they share, in their order.

Static pods are swapped, certificates issued, kubelets restarted, nodes drained, pods of kube-proxy deleted, and objects
put or patched by the actions that there are; what has none is told by `without_actions`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from garboard.change.plan import ChangePlan, NodeChange, PlannedFile, PlannedObject, PlannedStep
from garboard.change.snapshot import ClusterSnapshot, SnapshotNode
from garboard.engine import (
    AwaitGate,
    ClusterPart,
    ClusterPlan,
    ControlService,
    DeletePods,
    NodePart,
    PatchObject,
    Plan,
    Precondition,
    PutObject,
    RemoveFile,
    SaveSnapshot,
    Step,
    WriteFile,
)
from garboard.engine.pre_image import digest_of
from garboard.manifests.etcd import CLIENT_PORT, PEER_PORT
from garboard.manifests.objects import KUBE_SYSTEM, config_map
from garboard.model.addresses import join_host_port
from garboard.model.go import join_path
from garboard.phases.gates import CertificateServed, KubeletHealthy, KubeProxySettled, NodeReady
from garboard.phases.issuing import SignedRequest
from garboard.phases.node.draining import NodeScheduling, plan_drain, plan_uncordon
from garboard.phases.node.records import ANNOTATION
from garboard.phases.static_pods import ReplacedPod, SwapSettings, plan_swap
from garboard.pki.external import ENDS

WORDS = ("change", "node", "--yes")  # our command on a node
SNAPSHOTS = "/var/lib/garboard/etcd-snapshots"
_KEPT_SNAPSHOTS = 2
_KUBELET, _KUBELET_S, _CONFIG_MODE = "kubelet", 240.0, 0o644
_STATIC_PODS, _SNAPSHOT, _DRAIN, _KUBELET_CONFIG, KUBE_PROXY, _GATES, _KUBECONFIGS = (
    "static-pods",
    "etcd-snapshot",
    "drain",
    "kubelet-config",
    "kube-proxy",
    "gates",
    "kubeconfig/all",
)
_WITH_ACTIONS = (_SNAPSHOT, _DRAIN, _KUBELET_CONFIG, KUBE_PROXY, _GATES, _KUBECONFIGS)
# Pods have a grace period of 30 s; the API server looks at its certificate once a minute if it misses the change.
_PROXY_S, _SERVED_S = 120.0, 120.0
_SHORT_S = (
    120.0  # a scheduler or a controller manager starts in seconds, and a wrong flag is taken back when it has not
)
_PROXY_SELECTOR = (("k8s-app", "kube-proxy"),)
_CORDONED = "node.kubernetes.io/unschedulable"


def cluster_plan(plan: ChangePlan, snapshot: ClusterSnapshot) -> ClusterPlan:
    """Return the parts of a plan in their order, for nodes and for what they share; a blocked plan has none."""
    return ClusterPlan(tuple(_parts(plan, snapshot)))


def without_actions(plan: ChangePlan) -> tuple[str, ...]:
    """Return what of a plan the engine has no actions for: phases of nodes, and objects that no patch can change."""
    phases = [step.phase for each in plan.nodes for step in each.steps]
    known = (*_WITH_ACTIONS, *(each for each in phases if each.startswith((_STATIC_PODS, "certs/"))))
    objects = (each for each in plan.objects if not [*object_steps(each)])
    return tuple(dict.fromkeys([*(each for each in phases if each not in known), *(each.kind for each in objects)]))


def _parts(plan: ChangePlan, snapshot: ClusterSnapshot) -> Iterator[NodePart | ClusterPart]:
    for part in plan.parts:
        if isinstance(part, NodeChange):
            steps = tuple(node_steps(part, snapshot))
            if steps:
                yield NodePart(node=part.node, words=WORDS, plan=Plan(steps, observed=plan.observed))
        elif steps := tuple(object_steps(part)):
            yield ClusterPart(name=part.name, plan=Plan(steps, observed=plan.observed))


def node_steps(part: NodeChange, snapshot: ClusterSnapshot, stamp: str = "latest") -> Iterator[Step]:
    """Yield the steps on one node; the static pods are one unit, at the place of the first of them.

    `stamp` is in the name of a snapshot of etcd, which replaces none that is there.
    """
    node = snapshot.node(part.node)
    assert node is not None, "a plan is made for the nodes of its snapshot"
    for step in _node_steps(part, node, snapshot, stamp):
        yield replace(step, node=node.name)


def _node_steps(part: NodeChange, node: SnapshotNode, snapshot: ClusterSnapshot, stamp: str) -> Iterator[Step]:
    swaps = [step for step in part.steps if step.replaced is not None]
    for step in part.steps:
        if step.phase == _SNAPSHOT:
            yield from _placed(step.phase, [_snapshot(step, node, stamp)])
        elif step.issues:
            yield from _placed(step.phase, _issued(step, node))
        elif step.phase == _DRAIN:
            is_end = step is part.steps[-1]
            is_cordoned = any(taint.get("key") == _CORDONED for taint in node.settings.taints)
            scheduling = NodeScheduling(name=node.name, is_cordoned=is_cordoned)
            found = plan_uncordon(scheduling, step.cause) if is_end else plan_drain(scheduling, step.cause)
            yield from _placed(step.phase, found)
        elif step.phase == _KUBELET_CONFIG:
            yield from (replace(each, unit=_KUBELET) for each in _placed(step.phase, _kubelet(step, node)))
        elif step.phase == KUBE_PROXY:
            yield from _placed(
                step.phase, proxy_steps(node, step.cause, next(each.url for each in part.steps if each is not step))
            )
        elif swaps and step is swaps[0]:
            yield from _placed(_STATIC_PODS, _swap(swaps, node, snapshot))


def _placed(phase: str, steps: Sequence[Step] | Iterator[Step]) -> Iterator[Step]:
    return (replace(step, phase=phase) for step in steps)


def replaced_pods(part: NodeChange) -> tuple[ReplacedPod, ...]:
    """Return the static pods that are replaced on a node."""
    return tuple(step.replaced for step in part.steps if step.replaced is not None)


def _swap(swaps: Sequence[PlannedStep], node: SnapshotNode, snapshot: ClusterSnapshot) -> Iterator[Step]:
    pods = [step.replaced for step in swaps if step.replaced is not None]
    causes = dict.fromkeys(step.cause for step in swaps if step.files)
    is_short = not {"kube-apiserver", "etcd"} & {pod.component for pod in pods}
    settings = SwapSettings(
        member_url=etcd_url(node, PEER_PORT),
        voters=sum(not each.is_learner for each in snapshot.members or ()),
        settled_within_s=_SHORT_S if is_short else SwapSettings().settled_within_s,
    )
    is_assumed = any(file.is_assumed for step in swaps for file in step.files)
    for step in plan_swap(pods, node.name, "; ".join(causes), settings):
        # Nobody has seen the files, so that what they are expected to be would be a guess.
        yield replace(step, preconditions=()) if is_assumed else step


def _snapshot(step: PlannedStep, node: SnapshotNode, stamp: str) -> Step:
    path = join_path(SNAPSHOTS, f"change-{stamp}.db")
    action = SaveSnapshot(path=path, client_url=etcd_url(node, CLIENT_PORT), keeps=_KEPT_SNAPSHOTS)
    return Step(action, step.cause)


def etcd_url(node: SnapshotNode, port: int) -> str:
    """Return where the member of etcd on a node is; empty if it has none."""
    if "etcd" not in node.mirror_pods or node.endpoint is None:
        return ""
    return f"https://{join_host_port(node.endpoint.advertise_address, port)}"


def _issued(step: PlannedStep, node: SnapshotNode) -> Iterator[Step]:
    """Yield how keys and certificates are issued anew, and how it is seen that a server shows them."""
    yield from (Step(each, step.cause) for each in step.issues)
    gate = _served(step, node)
    if gate is not None:
        yield Step(AwaitGate(gate=gate), "whoever connects from now on has to see it")
    for request in (each.request for each in step.issues):
        if isinstance(request, SignedRequest):
            yield from (Step(RemoveFile(path=request.path(end)), "it has its place") for end in ENDS)


def _served(step: PlannedStep, node: SnapshotNode) -> CertificateServed | None:
    if node.endpoint is None:
        return None
    servers = {
        "certs/apiserver": ("kube-apiserver", node.endpoint.bind_port),
        "certs/etcd-server": ("etcd", int(CLIENT_PORT)),
        "certs/etcd-peer": ("etcd", int(PEER_PORT)),
    }
    if step.phase not in servers:
        return None
    component, port = servers[step.phase]
    host = node.endpoint.advertise_address
    return CertificateServed(component=component, path=step.files[0].path, host=host, port=port, timeout_s=_SERVED_S)


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
    yield from _kubelet_gates(node)


def restart_kubelet(node: SnapshotNode, cause: str) -> Iterator[Step]:
    """Yield how a kubelet starts again as it is configured."""
    yield Step(ControlService(service=_KUBELET, verb="restart"), cause, restarts=(_KUBELET,))
    yield from _kubelet_gates(node)


def _kubelet_gates(node: SnapshotNode) -> Iterator[Step]:
    yield Step(AwaitGate(gate=KubeletHealthy(timeout_s=_KUBELET_S)), "it was restarted")
    yield Step(AwaitGate(gate=NodeReady(node_name=node.name, timeout_s=_KUBELET_S)), "the next node only follows then")


def _written(file: PlannedFile, cause: str) -> Step:
    assert file.content is not None
    is_seen = file.former is not None and not file.is_assumed
    return Step(
        WriteFile(path=file.path, content=file.content, mode=_CONFIG_MODE),
        cause,
        preconditions=(Precondition(file.path, digest_of(file.former or b"")),) if is_seen else (),
    )


def proxy_steps(node: SnapshotNode, cause: str, url: str) -> Iterator[Step]:
    """Yield how a node gets another pod of kube-proxy, which mounts the ConfigMap as it is by then."""
    action = DeletePods(node_name=node.name, namespace=KUBE_SYSTEM, selector=_PROXY_SELECTOR, timeout_s=_PROXY_S)
    yield Step(action, cause, restarts=("kube-proxy",))
    yield Step(AwaitGate(gate=KubeProxySettled(timeout_s=_PROXY_S, url=url)), "the next node only follows then")


def object_steps(part: PlannedObject) -> Iterator[Step]:
    """Yield the step that changes an object; none for one that no action can change."""
    if part.kind == "ConfigMap" and part.data:
        content = config_map(part.name, part.namespace, dict(part.data)).content
        put = PutObject.of(content, keeps_other_data=True, resource_version=part.resource_version)
        yield Step(put, part.cause, phase="objects")
    elif part.kind == "Node":
        digest = dict(part.data)[ANNOTATION]
        annotations: dict[str, str | None] = {ANNOTATION: f"sha256:{digest}" if digest else None}
        noted = PatchObject(
            api_version="v1", kind="Node", name=part.name, content={"metadata": {"annotations": {**annotations}}}
        )
        yield Step(noted, part.cause, phase="objects")
    elif part.patch is not None:
        changed = PatchObject(
            api_version="apps/v1", kind=part.kind, name=part.name, namespace=part.namespace, content=part.patch
        )
        yield Step(changed, part.cause, phase="objects")
