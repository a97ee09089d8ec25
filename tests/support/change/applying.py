"""A snapshot as it is after a plan has been carried out."""

from collections.abc import Sequence

import msgspec

from garboard.change.hand_edits import live_command
from garboard.change.plan import ChangePlan, PlannedFile
from garboard.change.snapshot import ClusterSnapshot, SnapshotNode, StoredConfig
from garboard.documents import read_yaml
from garboard.manifests.kubelet import CONFIG_FILE
from garboard.model.paths import manifest_path
from garboard.phases.node.records import ANNOTATION, RECORD, unpack
from garboard.rules import DocumentField


def applied(snapshot: ClusterSnapshot, plan: ChangePlan) -> ClusterSnapshot:
    """Return what would be seen afterwards; files that were assumed show in what the API shows."""
    files = {each.node: [file for step in each.steps for file in step.files] for each in plan.nodes}
    maps, sets = dict(snapshot.config_maps), dict(snapshot.patch_sets)
    own: dict[str, str] = {}
    for each in plan.objects:
        data = dict(each.data)
        if each.name == RECORD:
            own |= {key.removeprefix("node."): digest for key, digest in data.items() if key.startswith("node.")}
            for key in (key for key in data if key.startswith("set.")):
                found = unpack(data[key])
                sets[found.digest] = {path: text.decode() for path, text in found.files.items()}
        elif each.kind == "Node":
            own[each.name] = data[ANNOTATION]
        elif each.name in maps:
            before = maps[each.name]
            maps[each.name] = StoredConfig(
                data={**before.data, **data},
                resource_version=f"{before.resource_version}1",
                annotations=before.annotations,
                labels=before.labels,
            )
    nodes = [_node(each, files.get(each.name, ()), own) for each in snapshot.nodes]
    return msgspec.structs.replace(snapshot, config_maps=maps, nodes=nodes, patch_sets=sets)


def _node(node: SnapshotNode, files: Sequence[PlannedFile], own: dict[str, str]) -> SnapshotNode:
    written = {each.path: each.content.decode() for each in files if each.content is not None}
    manifests, pods = dict(node.manifests or {}), dict(node.mirror_pods)
    for component, pod in node.mirror_pods.items():
        text = written.get(manifest_path(component))
        if text is not None:
            seen = SnapshotNode(name=node.name, manifests={component: text})
            image = DocumentField(read_yaml(text, source=component)).at("spec")["containers"].elements()
            pods[component] = msgspec.structs.replace(
                pod, command=live_command(seen, component) or [], image=next(iter(image))["image"].text
            )
            manifests[component] = text
    return msgspec.structs.replace(
        node,
        manifests=None if node.manifests is None else manifests,
        mirror_pods=pods,
        kubelet_config=node.kubelet_config and written.get(CONFIG_FILE, node.kubelet_config),
        patch_set=own.get(node.name, node.patch_set),
    )
