"""What was edited by hand is shown and blocks, unless it is accepted to stay; what surrounds a node is no edit."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from garboard.change.document import plan_document
from garboard.change.plan import ChangePlan
from garboard.change.snapshot import ClusterSnapshot, read_snapshot, snapshot_text
from garboard.documents import read_yaml, write_yaml
from tests.support.change.requests import attribute, codes, patch, planned, restarts
from tests.support.change.snapshots import f1, f2

API_SERVER, KCM, ETCD = "kube-apiserver", "kube-controller-manager", "etcd"
EVENT_TTL = "apiServer.extraArgs[event-ttl]=2h"
MAIN = "spec.containers[name=kube-apiserver]"
Edit = Callable[[Any], None]


def edited(edit: Edit, *, of: str = API_SERVER, is_seen: bool = True, node: str = "cp1") -> ClusterSnapshot:
    """Return a cluster of which somebody has edited the manifest of a component."""

    def change(name: str, component: str, text: str) -> str:
        if component != of or name != node:
            return text
        document: Any = read_yaml(text, source=component)
        edit(document)
        return write_yaml(document)

    return f1(is_seen=is_seen, change_manifest=change)


def container(pod: Any) -> Any:
    return pod["spec"]["containers"][0]


def with_volume(pod: Any) -> None:
    source = {"path": "/etc/audit", "type": "DirectoryOrCreate"}
    pod["spec"]["volumes"].append({"name": "audit", "hostPath": source})
    container(pod)["volumeMounts"].append({"name": "audit", "mountPath": "/etc/audit", "readOnly": True})


def with_variable(pod: Any) -> None:
    container(pod)["env"] = [{"name": "TOKEN", "value": "s3cret"}]


def with_image(pod: Any) -> None:
    container(pod)["image"] = "example.com/kube-apiserver:patched"


def with_sidecar(pod: Any) -> None:
    pod["spec"]["containers"].append({"name": "proxy", "image": "example.com/proxy:1", "args": ["--listen=:1"]})


EDITS: dict[str, tuple[Edit, list[str], bytes]] = {
    "a volume": (
        with_volume,
        [f"{MAIN}.volumeMounts[mountPath=/etc/audit]", "spec.volumes[name=audit]"],
        b"path: /etc/audit\n",
    ),
    "a variable": (with_variable, [f"{MAIN}.env[name=TOKEN]"], b"s3cret"),
    "another image": (with_image, [f"{MAIN}.image"], b"image: example.com/kube-apiserver:patched\n"),
    "a probe": (
        lambda pod: container(pod)["livenessProbe"].update(timeoutSeconds=99),
        [f"{MAIN}.livenessProbe.timeoutSeconds"],
        b"timeoutSeconds: 99\n",
    ),
    "a request": (
        lambda pod: container(pod)["resources"]["requests"].update(cpu="2"),
        [f"{MAIN}.resources.requests.cpu"],
        b"cpu: ",
    ),
    "a limit": (
        lambda pod: container(pod)["resources"].update(limits={"memory": "4Gi"}),
        [f"{MAIN}.resources.limits.memory"],
        b"memory: 4Gi\n",
    ),
    "a container beside it": (with_sidecar, ["spec.containers[name=proxy]"], b"name: proxy\n"),
    "a label": (lambda pod: pod["metadata"]["labels"].update(team="x"), ["metadata.labels.team"], b"team: x\n"),
}


def labels(plan: ChangePlan) -> list[str]:
    return sorted(each.label for each in plan.attributes if each.code == "hand-edit")


@pytest.mark.parametrize(("edit", "places", "kept"), EDITS.values(), ids=EDITS)
def test_edit_blocks_at_its_place_and_stays_if_that_is_accepted(edit: Edit, places: list[str], kept: bytes) -> None:
    snapshot = edited(edit)
    plan = planned(snapshot, EVENT_TTL)
    assert (plan.verdict, restarts(plan)) == ("blocked", {})
    assert labels(plan) == [f"kube-apiserver on cp1: {each}" for each in places]
    for each in plan.attributes[1:]:
        assert "by hand" in each.reason
        assert "--accept hand-edit" in each.route
    accepted = planned(snapshot, EVENT_TTL, "hand-edit")
    content = accepted.nodes[0].steps[0].files[0].content
    assert content is not None
    assert kept in content
    assert b"--event-ttl=2h" in content


def test_edit_of_a_component_that_is_not_replaced_is_no_matter_of_this_change() -> None:
    assert planned(edited(with_image), "scheduler.extraArgs[v]=2").verdict == "allowed"


def test_flag_and_field_that_were_edited_are_both_told() -> None:
    def edit(pod: Any) -> None:
        with_volume(pod)
        container(pod)["command"].append("--profiling=false")

    assert labels(planned(edited(edit), EVENT_TTL))[0] == "kube-apiserver on cp1: --profiling"
    assert len(labels(planned(edited(edit), EVENT_TTL))) == 3


def test_route_leads_to_the_configuration_where_that_has_such_a_field() -> None:
    route = attribute(planned(edited(with_volume), EVENT_TTL), "kube-apiserver on cp1: spec.volumes[name=audit]").route
    assert "put it into apiServer.extraVolumes" in route
    route = attribute(planned(edited(with_image), EVENT_TTL), f"kube-apiserver on cp1: {MAIN}.image").route
    assert route.startswith("make it a patch (on cp1: garboard change drift --capture DIR")


def test_what_the_change_itself_asks_for_is_adopted() -> None:
    text = """
kind: ClusterConfiguration
apiServer:
  extraArgs: [{name: event-ttl, value: 2h}]
  extraVolumes:
  - {name: audit, hostPath: /etc/audit, mountPath: /etc/audit, readOnly: true, pathType: DirectoryOrCreate}
"""
    plan = planned(edited(with_volume), patch(text))
    assert labels(plan) == []
    assert restarts(plan) == {"cp1": [API_SERVER]}


def test_edit_of_what_is_changed_as_well_is_a_conflict() -> None:
    plan = planned(edited(with_image), "imageRepository=mirror.example.com/k8s")
    assert plan.verdict == "blocked"
    assert "conflicting-edit" in codes(plan)
    assert labels(plan) == []


def _proxy(pod: Any) -> None:
    container(pod)["env"] = [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}]


def _authorities(pod: Any) -> None:
    source = {"path": "/usr/local/share/ca-certificates", "type": "DirectoryOrCreate"}
    pod["spec"]["volumes"].append({"name": "usr-local-share-ca-certificates", "hostPath": source})
    mount = {"name": "usr-local-share-ca-certificates", "mountPath": source["path"], "readOnly": True}
    container(pod)["volumeMounts"].append(mount)


@pytest.mark.parametrize("is_seen", [False, True], ids=["by the mirror pod", "by the manifest"])
@pytest.mark.parametrize("edit", [_proxy, _authorities], ids=["a proxy variable", "authorities of the host"])
def test_surroundings_of_a_node_are_no_edit(edit: Edit, is_seen: bool) -> None:
    plan = planned(edited(edit, is_seen=is_seen), EVENT_TTL)
    assert (plan.verdict, restarts(plan)) == ("allowed", {"cp1": [API_SERVER]})


def test_startup_threshold_that_the_components_of_a_node_share_is_no_edit() -> None:
    def change(_node: str, component: str, text: str) -> str:
        document: Any = read_yaml(text, source=component)
        container(document)["startupProbe"]["failureThreshold"] = 48
        return write_yaml(document)

    plan = planned(f1(is_seen=True, change_manifest=change), EVENT_TTL)
    assert plan.verdict == "allowed"
    content = plan.nodes[0].steps[0].files[0].content
    assert content is not None
    assert b"failureThreshold: 48\n" in content


def test_how_a_member_of_etcd_joined_is_no_edit() -> None:
    seen = f2(is_seen=True)
    plan = planned(seen, "etcd.local.extraArgs[quota-backend-bytes]=8589934592")
    assert labels(plan) == []
    assert "etcd" in restarts(plan)["cp3"]


def test_off_the_node_the_image_and_the_names_of_variables_are_seen() -> None:
    def edit(pod: Any) -> None:
        with_image(pod)
        with_variable(pod)
        with_volume(pod)  # no snapshot of what the API shows has it

    plan = planned(edited(edit, is_seen=False), EVENT_TTL)
    assert labels(plan) == [f"kube-apiserver on cp1: {MAIN}.env[name=TOKEN]", f"kube-apiserver on cp1: {MAIN}.image"]
    kept = planned(edited(edit, is_seen=False), EVENT_TTL, "hand-edit").nodes[0].steps[0].files[0]
    assert kept.is_assumed
    assert b"image: example.com/kube-apiserver:patched\n" in (kept.content or b"")


def test_value_of_a_variable_is_never_told_in_a_verdict() -> None:
    def with_values(pod: Any) -> None:
        container(pod)["env"] = [{"name": "HTTP_PROXY", "value": "a"}, {"name": "TOKEN", "value": "s3cret"}]

    plan = planned(edited(with_values), EVENT_TTL)
    assert labels(plan) == [f"kube-apiserver on cp1: {MAIN}.env[name=TOKEN]"]
    assert "s3cret" not in str(plan_document(plan))
    declared = f1(cluster={"apiServer": {"extraEnvs": [{"name": "TOKEN", "value": "0ther"}]}}, is_seen=True)
    text = (declared.nodes[0].manifests or {})[API_SERVER].replace("0ther", "s3cret")
    node = msgspec.structs.replace(declared.nodes[0], manifests={API_SERVER: text})
    changed = msgspec.structs.replace(declared, nodes=[node, *declared.nodes[1:]])
    found = planned(changed, EVENT_TTL)
    assert labels(found) == [f"kube-apiserver on cp1: {MAIN}.env[name=TOKEN].value"]
    assert "s3cret" not in str(plan_document(found))


def test_saved_snapshot_gives_the_same_verdicts() -> None:
    snapshot = edited(with_volume)
    again = read_snapshot(snapshot_text(snapshot).encode(), source="saved.json")
    assert plan_document(planned(again, EVENT_TTL)) == plan_document(planned(snapshot, EVENT_TTL))


def test_rendered_nodes_have_no_edits() -> None:
    for is_seen in (False, True):
        plan = planned(f2(is_seen=is_seen), "imageRepository=mirror.example.com/k8s", "hand-edit")
        assert labels(plan) == []
