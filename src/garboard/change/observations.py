"""What a plan was made from, each with its digest: a plan is stale once any of it has moved."""

import hashlib
import json
from collections.abc import Iterator

import msgspec

from garboard.change.snapshot import ClusterSnapshot, SnapshotNode, contents_of
from garboard.engine import Observation

# What changes all the time, and what no plan is made from.
_VOLATILE_NODE = {"ready", "pods", "labels", "annotations", "mirrorPods", "certificates", "allocatable", "kernel", "os"}
_CONDITIONS = "node.kubernetes.io/"  # taints by which the cluster says how a node is doing
_VOLATILE_POD = {"ready", "restarts"}


def observations(snapshot: ClusterSnapshot) -> tuple[Observation, ...]:
    """Return what is looked at again before a plan is carried out, in the order of names."""
    return tuple(sorted(_observed(snapshot), key=lambda each: each.name))


def _observed(snapshot: ClusterSnapshot) -> Iterator[Observation]:
    for name, found in snapshot.config_maps.items():
        yield Observation(f"ConfigMap kube-system/{name}", _digest(found.data))
    for node in snapshot.nodes:
        yield Observation(f"Node {node.name}", _digest(_steady(node)))
    for digest in snapshot.patch_sets:
        yield Observation(f"patch set {digest}", digest)
    if snapshot.members is not None:
        names = sorted([each.name, each.member_id, each.is_learner] for each in snapshot.members)
        yield Observation("members of etcd", _digest(names))
    yield Observation("ServiceCIDRs", _digest([[each.name, each.cidrs] for each in snapshot.service_ranges]))


def _steady(node: SnapshotNode) -> dict[str, object]:
    members = contents_of(node)
    pods = {
        name: {key: value for key, value in contents_of(pod).items() if key not in _VOLATILE_POD}
        for name, pod in node.mirror_pods.items()
    }
    steady = {name: value for name, value in members.items() if name not in _VOLATILE_NODE}
    taints = [each for each in node.settings.taints if not each.get("key", "").startswith(_CONDITIONS)]
    settings = contents_of(msgspec.structs.replace(node.settings, taints=taints))
    return {**steady, "settings": settings, "mirrorPods": pods}


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
