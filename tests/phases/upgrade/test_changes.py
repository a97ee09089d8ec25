"""What an upgrade changes: diffs, and what restarts for them and why, from the plan itself."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from garboard.documents import Json, write_yaml
from garboard.engine import ControlService, Note, Plan, PutObject, RemoveFile, Step, WriteFile
from garboard.manifests.kubelet import CONFIG_FILE
from garboard.model.paths import KUBELET_CONF
from garboard.phases.upgrade.changes import UpgradeChange, UpgradeChanges, changes_of, other_steps, restarted
from garboard.phases.upgrade.context import UpgradeContext
from garboard.phases.upgrade.control_plane import render_pods
from garboard.phases.upgrade.differences import find_drift
from garboard.phases.upgrade.drift_choices import DriftChoices
from garboard.phases.upgrade.tree import plan_dns, plan_proxy
from garboard.schema import load_schema
from tests.support.drift.subjects import NEWEST
from tests.support.phases.upgraded_nodes import MemoryObjects, edited, patch_files, upgraded_node

SCHEMA = load_schema(NEWEST)


def nothing(_action: PutObject) -> Mapping[str, Json] | None:
    return None


def pods_plan(context: UpgradeContext) -> Plan:
    """Return the writes and removals of a swap, as a plan."""
    steps: list[Step] = []
    for pod in render_pods(context)[1]:
        if pod.is_changed:
            steps.append(Step(RemoveFile(path=pod.path), "it goes up", restarts=(pod.component,)))
            steps.append(Step(WriteFile(path=pod.path, content=pod.manifest, mode=0o600), "it goes up"))
    return Plan(tuple(steps))


def by_name(changes: tuple[UpgradeChange, ...]) -> dict[str, UpgradeChange]:
    return {each.name: each for each in changes}


def test_static_pods_are_shown_with_patches_and_what_restarts() -> None:
    context = upgraded_node(patches=patch_files(etcd="metadata: {annotations: {team: blue}}"))
    context = edited(context, "etcd", "    team: blue\n", "")
    found = by_name(changes_of(pods_plan(context), context.manifests, lambda _: None, nothing, SCHEMA))
    assert "+    team: blue\n" in found["etcd"].diff.lines
    assert found["etcd"].title == "etcd: restarts etcd: it goes up"
    assert {"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"} <= set(found)


def test_a_pod_that_stays_is_told_to_stay() -> None:
    context = upgraded_node()
    found = by_name(changes_of(Plan(), context.manifests, lambda _: None, nothing, SCHEMA))
    assert found["etcd"].title == "etcd: is as it should be"
    assert found["etcd"].is_quiet


def test_a_pod_that_restarts_without_a_change_is_no_quiet_one() -> None:
    context = upgraded_node()
    path, data = "/etc/kubernetes/manifests/kube-apiserver.yaml", context.manifests["kube-apiserver"]
    removal = Step(RemoveFile(path=path), "with its etcd", restarts=("kube-apiserver",))
    plan = Plan((removal, Step(WriteFile(path=path, content=data, mode=0o600), "")))
    found = by_name(changes_of(plan, context.manifests, lambda _: None, nothing, SCHEMA))
    assert found["kube-apiserver"].title == "kube-apiserver: restarts kube-apiserver: with its etcd"
    assert restarted((found["kube-apiserver"],)) == ("kube-apiserver",)


def test_the_configuration_of_the_kubelet_waits_for_its_package() -> None:
    plan = Plan((Step(WriteFile(path=CONFIG_FILE, content=b"maxPods: 9\n", mode=0o644), "its content differs"),))
    (found,) = changes_of(plan, {}, lambda _: b"maxPods: 8\n", nothing, SCHEMA)
    assert found.title.endswith("nothing restarts: it takes effect when the kubelet is restarted, with its new package")
    assert ("-maxPods: 8\n" in found.diff.lines, "+maxPods: 9\n" in found.diff.lines) == (True, True)


KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{{name: k, cluster: {{server: 'https://{}:6443'}}}}]
contexts: [{{name: c, context: {{cluster: k, user: u}}}}]
current-context: c
users: [{{name: u, user: {{token: secret-token}}}}]
"""


def test_of_kubelet_conf_only_the_server_is_shown() -> None:
    write = WriteFile(path=KUBELET_CONF, content=KUBECONFIG.format("own").encode(), mode=0o600, is_secret=True)
    restart = ControlService(service="kubelet", verb="restart")
    plan = Plan((Step(write, "it uses its own API server"), Step(restart, "")))
    found = by_name(changes_of(plan, {}, lambda _: KUBECONFIG.format("shared").encode(), nothing, SCHEMA))[KUBELET_CONF]
    assert [each for each in found.diff.lines if each.startswith(("-s", "+s"))] == [
        "-server: https://shared:6443\n",
        "+server: https://own:6443\n",
    ]
    assert "secret-token" not in str(found)
    assert found.restarts == ("kubelet",)


def object_plan(context: UpgradeContext) -> Plan:
    steps = [each for each in (*plan_dns(context), *plan_proxy(context)) if isinstance(each, Step)]
    return Plan(tuple(steps))


def objects_of(context: UpgradeContext) -> dict[str, UpgradeChange]:
    objects = context.objects
    assert isinstance(objects, MemoryObjects)
    plan = object_plan(context)
    return by_name(changes_of(plan, {}, lambda _: None, lambda each: objects.find(each.kind, "", each.name), SCHEMA))


def test_addons_say_what_is_rolled_out() -> None:
    found = objects_of(upgraded_node())
    proxy = found["DaemonSet kube-system/kube-proxy"]
    assert proxy.restarts == ("DaemonSet kube-proxy",)
    assert "+        image: registry.k8s.io/kube-proxy:v1.37.1\n" in proxy.diff.lines
    assert found["Deployment kube-system/coredns"].restarts == ("Deployment coredns",)


def test_what_the_cluster_adds_to_objects_is_no_change() -> None:
    context = upgraded_node(target="v1.36.4")
    assert isinstance(context.objects, MemoryObjects)
    live: Any = context.objects.objects["Deployment", "coredns"]
    live["metadata"] |= {"uid": "1", "resourceVersion": "2", "generation": 3}
    live["status"] = {"replicas": 2}
    live["spec"]["revisionHistoryLimit"] = 10
    assert objects_of(context)["Deployment kube-system/coredns"].is_quiet


def test_a_changed_object_without_another_template_rolls_nothing_out() -> None:
    context = upgraded_node(target="v1.36.4")
    assert isinstance(context.objects, MemoryObjects)
    live: Any = context.objects.objects["Deployment", "coredns"]
    live["spec"]["minReadySeconds"] = 5
    found = objects_of(context)["Deployment kube-system/coredns"]
    assert (found.restarts, found.why) == ((), "its pods stay as they are")
    assert "-  minReadySeconds: 5\n" in found.diff.lines


def test_secrets_and_long_texts_are_not_shown() -> None:
    secret = PutObject.of({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "c2VjcmV0"}})
    packed: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "p"}, "data": {"set": "x" * 5000}}
    plan = Plan((Step(replace(secret, is_secret=True), ""), Step(PutObject.of(packed), "")))  # type: ignore[arg-type]
    found = by_name(changes_of(plan, {}, lambda _: None, nothing, SCHEMA))
    assert "Secret s" not in found
    assert "+  set: xxxxxxxxxxxxxxxx… (5000 characters)\n" in found["ConfigMap p"].diff.lines


def test_password_of_a_proxy_is_not_shown() -> None:
    pod: dict[str, Json] = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "p"}, "data": {"proxy": "http://u:secret@proxy"},
    }  # fmt: skip
    changes = changes_of(Plan((Step(PutObject.of(pod), ""),)), {}, lambda _: None, nothing, SCHEMA)
    found = UpgradeChanges("node-1", "v1.36.4", "v1.37.1", changes)
    for text in (found.as_text(), write_yaml(found.as_json())):
        assert "proxy: http://<hidden>@proxy" in text
        assert "secret" not in text


def test_what_else_is_done_is_named_without_waiting() -> None:
    context = find_drift(upgraded_node(), DriftChoices())
    plan = Plan((Step(ControlService(service="kubelet", verb="restart"), ""), *pods_plan(context).steps))
    assert other_steps(plan) == ()


def test_text_and_json_have_the_same_changes() -> None:
    context = upgraded_node()
    changes = changes_of(pods_plan(context), context.manifests, lambda _: None, nothing, SCHEMA)
    found = UpgradeChanges("node-1", "v1.36.4", "v1.37.1", changes, ("pull x",), (Note("kept", phase="addon"),))
    document = found.as_json()
    assert [each["name"] for each in document["changes"]] == [each.name for each in changes]  # type: ignore[index,union-attr,call-overload]
    assert document["restarts"] == ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"]
    assert write_yaml(document).startswith("also:\n- pull x\n")
    assert found.as_text().endswith("\nalso: pull x\n")
    assert found.as_text().count("+++ /etc/kubernetes/manifests/") == 4


@pytest.mark.parametrize("lines", [0, 3])
def test_a_diff_has_as_many_lines_around_as_are_asked_for(lines: int) -> None:
    context = upgraded_node()
    (pod, *_) = changes_of(pods_plan(context), context.manifests, lambda _: None, nothing, SCHEMA, lines)
    assert len(pod.diff.lines) == 3 + 2 + 2 * lines
