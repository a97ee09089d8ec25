"""The objects of an API server become the snapshot that they were made from."""

import msgspec
import pytest

from garboard.change import reads
from garboard.change.observing import FoundObjects, at, pod_facts, snapshot_of
from garboard.change.reads import ADOPT_READS, Read
from garboard.change.snapshot import ClusterSnapshot, PodCounts, SnapshotService, snapshot_text
from garboard.documents import Json
from garboard.manifests.objects import config_map
from garboard.phases.node.records import PatchSetContent
from tests.support.change.api_objects import SECRET, stored_objects
from tests.support.change.snapshots import f1, f2, f3


def path_of(read: Read) -> str:
    group = f"/apis/{read.group}/v1" if read.group else "/api/v1"
    place = f"/namespaces/{read.namespace}" if read.namespace else ""
    return f"{group}{place}/{read.resource}" + (f"/{read.name}" if read.name else "")


def observed(objects: dict[str, dict[str, Json]], at_time: str) -> ClusterSnapshot:
    """Return the snapshot of what is stored by path, as an observer reads it."""
    found = {}
    for each in ADOPT_READS:
        stored = objects.get(path_of(each))
        if stored is not None:
            found[each] = (stored,) if each.name else tuple(stored["items"])  # type: ignore[arg-type]
    pods = tuple(map(pod_facts, found.pop(reads.PODS)))  # type: ignore[arg-type]
    return snapshot_of(FoundObjects(found, pods, at_time))  # type: ignore[arg-type]


def shown(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Return what an API server shows of a made up cluster: no members of etcd, a label on each control plane."""
    nodes = [
        msgspec.structs.replace(
            each,
            labels={"node-role.kubernetes.io/control-plane": ""} if each.is_control_plane else {},
            annotations={"kubeadm.alpha.kubernetes.io/cri-socket": each.settings.cri_socket},
            mirror_pods=dict(sorted(each.mirror_pods.items())),
            pods=PodCounts(count=each.pods.count if each.pods else 0, requests={"cpu": "1", "memory": str(1 << 30)}),
        )
        for each in snapshot.nodes
    ]
    return msgspec.structs.replace(snapshot, nodes=nodes, members=None, server_version="")


@pytest.mark.parametrize("made", [f1(), f2(pods={"w1": 35}), f3()], ids=["F1", "F2", "F3"])
def test_snapshot_is_what_the_objects_were_made_from(made: ClusterSnapshot) -> None:
    found = observed(stored_objects(made), made.observed_at)
    assert snapshot_text(found) == snapshot_text(shown(made))
    assert found == shown(made)


def test_snapshot_has_none_of_the_secrets_that_objects_have() -> None:
    objects = stored_objects(f2())
    assert SECRET in str(objects)
    assert SECRET not in snapshot_text(observed(objects, ""))


def test_recorded_patches_are_in_the_snapshot_and_each_node_names_its_own() -> None:
    content = PatchSetContent({"kube-apiserver+args.yaml": b"profiling: 'false'\n"})
    data = {f"set.{content.digest}": content.packed(), "node.cp1": content.digest}
    objects = stored_objects(f1())
    objects[path_of(reads.PATCH_RECORD)] = config_map("garboard-patches", "kube-system", data).content
    worker = objects[path_of(reads.NODES)]["items"][1]["metadata"]
    worker["annotations"]["garboard.dev/patch-set"] = f"sha256:{content.digest}"
    found = observed(objects, "")
    assert found.patch_sets == {content.digest: {"kube-apiserver+args.yaml": "profiling: 'false'\n"}}
    assert [each.patch_set for each in found.nodes] == [content.digest, content.digest, ""]


def test_services_with_ports_on_nodes_are_kept() -> None:
    made = msgspec.structs.replace(f1(), services=[SnapshotService(namespace="web", name="shop", node_ports=[30080])])
    assert observed(stored_objects(made), "").services == made.services


def container(cpu: str, memory: str) -> dict[str, Json]:
    return {"resources": {"requests": {"cpu": cpu, "memory": memory}}}


@pytest.mark.parametrize(
    ("spec", "requests"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param(
            {"containers": [container("1", "1Gi"), container("500m", "1Mi")]},
            {"cpu": "1500m", "memory": "1074790400"},
            id="containers together",
        ),
        pytest.param(
            {"containers": [container("100m", "1")], "initContainers": [container("2", "1")]},
            {"cpu": "2", "memory": "1"},
            id="a larger init container",
        ),
        pytest.param(
            {
                "containers": [container("1", "1")],
                "initContainers": [{**container("1", "1"), "restartPolicy": "Always"}],
            },
            {"cpu": "2", "memory": "2"},
            id="a sidecar",
        ),
        pytest.param(
            {"containers": [container("1", "1")], "overhead": {"cpu": "250m"}},
            {"cpu": "1250m", "memory": "1"},
            id="overhead",
        ),
    ],
)
def test_requests_are_counted_as_the_scheduler_counts_them(spec: dict[str, Json], requests: dict[str, str]) -> None:
    pod: dict[str, Json] = {"spec": {**spec, "nodeName": "w1"}, "status": {"phase": "Running"}}
    made = stored_objects(f1())
    made[path_of(reads.PODS)] = {"items": [pod]}
    node = observed(made, "").node("w1")
    assert node is not None
    assert node.pods is not None
    assert node.pods.requests == requests


@pytest.mark.parametrize("value", [None, 1, "x", [], {"a": None}, {"a": []}, {"a": {"b": 1}}])
def test_nothing_is_found_where_nothing_is(value: object) -> None:
    assert at(value, "a", "b", "c") is None
