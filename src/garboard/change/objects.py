"""What nodes share, and a change writes: the ConfigMaps of the configuration, kube-proxy and CoreDNS."""

from collections.abc import Iterator, Sequence

from garboard.change.attribute import CLUSTER, KUBE_PROXY, KUBELET
from garboard.change.configuration import MAP_OF_KIND, endpoint_of, stored_data
from garboard.change.differences import AttributeChange
from garboard.change.findings import ChangeContext
from garboard.change.judges import is_inactive
from garboard.change.node_steps import cause_of, diff_of
from garboard.change.patch_sets import CAUSE as PATCH_CAUSE
from garboard.change.patch_sets import PatchSets
from garboard.change.plan import NodeChange, PlannedObject, PlannedStep
from garboard.change.rendering import ClusterRendering
from garboard.change.snapshot import CONFIG_KEYS

_WORKLOADS = {
    "kube-proxy-workload": ("DaemonSet", "kube-proxy"),
    "coredns/Deployment": ("Deployment", "coredns"),
    "coredns/ConfigMap": ("ConfigMap", "coredns"),
    "dns-service": ("Service", "kube-dns"),
}


def object_parts(context: ChangeContext, changes: Sequence[AttributeChange]) -> Iterator[PlannedObject]:
    """Yield the ConfigMaps of the cluster's and the kubelets' configuration that change."""
    for kind in (CLUSTER, KUBELET):
        yield from _config_map(kind, context, changes)


def proxy_parts(context: ChangeContext, changes: Sequence[AttributeChange]) -> Iterator[NodeChange | PlannedObject]:
    """Yield the ConfigMap of kube-proxy, which comes first, and then the restart of its pods, node by node."""
    own = [change for change in changes if change.kind == KUBE_PROXY]
    yield from _config_map(KUBE_PROXY, context, changes)
    if all(is_inactive(change, context) for change in own):
        return
    cause = f"{', '.join(change.label for change in own)} changed"
    restart = PlannedStep(
        phase="kube-proxy", title="delete the pod of kube-proxy, and wait until its successor is ready", cause=cause,
        restarts=("kube-proxy",),
    )  # fmt: skip
    probe = PlannedStep(
        phase="gates", title="wait until kube-proxy answers /healthz at 10256", cause="the next node only follows then"
    )
    for node in (*context.snapshot.control_planes, *context.snapshot.workers):
        yield NodeChange(node=node.name, steps=(restart, probe))


def _config_map(kind: str, context: ChangeContext, changes: Sequence[AttributeChange]) -> Iterator[PlannedObject]:
    own = [change.label for change in changes if change.kind == kind]
    found = context.snapshot.config_maps.get(MAP_OF_KIND[kind])
    if not own or found is None:
        return
    key = CONFIG_KEYS[MAP_OF_KIND[kind]]
    text = stored_data(kind, context.target, endpoint_of(context.snapshot))[key]
    name = MAP_OF_KIND[kind]
    yield PlannedObject(
        kind="ConfigMap",
        name=name,
        cause=f"{', '.join(own)} changed",
        diff=diff_of(f"{name}/{key}", found.data.get(key, ""), text),
        data=((key, text),),
        resource_version=found.resource_version,
    )


def workload_parts(
    before: ClusterRendering, after: ClusterRendering, patch_sets: PatchSets, changes: Sequence[AttributeChange]
) -> Iterator[PlannedObject]:
    """Yield the workloads of the addons that are rendered in another way; what a user has made of them stays."""
    first = next(iter(before.snapshot.control_planes), None)
    sets = patch_sets.of_node(first) if first else ("", "")
    old, new = (each.objects(digest) for each, digest in zip((before, after), sets, strict=True))
    for component, (kind, name) in _WORKLOADS.items():
        if component in old and component in new and old[component] != new[component]:
            cause = cause_of(component.partition("/")[0], changes, PATCH_CAUSE)
            yield PlannedObject(kind=kind, name=name, cause=cause, diff=diff_of(name, old[component], new[component]))
