"""What nodes share, and a change writes: the ConfigMaps of the configuration, kube-proxy and CoreDNS."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from ipaddress import ip_address

from garboard.change.attribute import CLUSTER, KUBE_PROXY, KUBELET
from garboard.change.configuration import MAP_OF_KIND, StoredConfiguration, endpoint_of, stored_data
from garboard.change.differences import AttributeChange
from garboard.change.findings import ChangeContext
from garboard.change.judges import is_inactive
from garboard.change.node_steps import cause_of, diff_of
from garboard.change.patch_sets import CAUSE as PATCH_CAUSE
from garboard.change.patch_sets import PatchSets
from garboard.change.plan import NodeChange, PlannedObject, PlannedStep
from garboard.change.rendering import ClusterRendering
from garboard.documents import Json, equal, read_yaml
from garboard.errors import GarboardError
from garboard.manifests.uploaded import CONFIG_KEYS
from garboard.model.addresses import join_host_port, split_host_port

_HEALTH_ADDRESS = "0.0.0.0:10256"  # kube-proxy's default
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


def proxy_parts(
    context: ChangeContext, changes: Sequence[AttributeChange], first: str
) -> Iterator[NodeChange | PlannedObject]:
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
        phase="gates", title="wait until kube-proxy answers /healthz at 10256", cause="the next node only follows then",
        url=health_url(context.target),
    )  # fmt: skip
    for node in context.snapshot.in_order(first):
        yield NodeChange(node=node.name, steps=(restart, probe))


def health_url(target: StoredConfiguration) -> str:
    """Return where kube-proxy says on its node how it is; empty if nobody can ask it."""
    given = target.kube_proxy.tree.get("healthzBindAddress") if target.kube_proxy else None
    try:
        host, port = split_host_port(str(given or _HEALTH_ADDRESS))
        address = ip_address(host)
    except (GarboardError, ValueError):
        return ""
    local = ("127.0.0.1" if address.version == 4 else "::1") if address.is_unspecified else host
    return f"http://{join_host_port(local, port)}/healthz"


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
            diff = diff_of(name, old[component], new[component])
            patch = _image_patch(old[component], new[component])
            yield PlannedObject(kind=kind, name=name, cause=cause, diff=diff, patch=patch)


def _image_patch(before: str, after: str) -> Json:
    """Return the patch that gives the containers of a workload other images; None if anything else differs, too."""
    old, new = (read_yaml(text, source="workload") for text in (before, after))
    images = {name: image for name, image in _images(new).items() if _images(old).get(name) != image}
    if not images or not equal(_with_images(old, images), new):
        return None
    containers: Json = [{"name": name, "image": image} for name, image in images.items()]
    return {"spec": {"template": {"spec": {"containers": containers}}}}


def _containers(workload: Json) -> list[Json]:
    for name in ("spec", "template", "spec", "containers"):
        workload = workload.get(name) if isinstance(workload, dict) else None
    return workload if isinstance(workload, list) else []


def _images(workload: Json) -> dict[str, Json]:
    return {str(each.get("name")): each.get("image") for each in _containers(workload) if isinstance(each, dict)}


def _with_images(workload: Json, images: Mapping[str, Json]) -> Json:
    found = deepcopy(workload)
    for each in _containers(found):
        if isinstance(each, dict) and str(each.get("name")) in images:
            each["image"] = images[str(each["name"])]
    return found
