"""Objects put and patched as actions ask for it, through real TLS on loopback; and whom a node asks, as which user."""

import dataclasses
from typing import Any

import pytest

from garboard.documents import Json
from garboard.engine import DeleteObject, Observation, PatchObject, PutObject, SharedKey, StalePlan, StepContext
from garboard.errors import ClusterUnreachable, GarboardError
from garboard.host.node_machine import NodeMachine
from garboard.kube import Forbidden, KubeClient, ObjectConflict, ObjectInvalid, ObjectMissing, ServerBusy
from garboard.model.paths import KUBELET_CONF
from garboard.node.interpreters.objects import NodeCluster, ObjectInterpreter, delete_object, patch_object, put_object
from garboard.pki.kubeconfig import Kubeconfig
from garboard.retry import Clock
from tests.support.engine.actions import MemoryFiles
from tests.support.kube.api_server import FakeApi

MAPS = "/api/v1/namespaces/kube-system/configmaps"
SERVICES = "/api/v1/namespaces/kube-system/services"
NODE = "/api/v1/nodes/n1"
SECRETS = "/api/v1/namespaces/kube-system/secrets"
OURS: Json = {"key": "ours", "effect": "NoSchedule"}
THEIRS: Json = {"key": "theirs", "effect": "NoExecute"}
BOOTSTRAP_CONF = "/etc/kubernetes/bootstrap-kubelet.conf"
_KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: k, user: u}}}}]
clusters: [{{name: k, cluster: {{server: 'https://192.0.2.1:6443', insecure-skip-tls-verify: true}}}}]
users: [{{name: u, user: {user}}}]
"""
TOKEN = _KUBECONFIG.format(user="{token: abcdef.0123456789abcdef}").encode()
# What a kubelet writes before it has asked for its certificate.
WITHOUT_CERTIFICATE = _KUBECONFIG.format(user="{client-certificate: /gone.pem, client-key: /gone.pem}").encode()


def action(kind: str = "ConfigMap", *, keeps_other_data: bool = False, **more: Json) -> PutObject:
    content: dict[str, Any] = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, **more}
    return PutObject(
        api_version="v1",
        kind=kind,
        name="x",
        namespace="kube-system",
        content=content,
        keeps_other_data=keeps_other_data,
    )


def test_new_object_is_created_by_the_user_of_the_kubeconfig(api: FakeApi, client: KubeClient) -> None:
    put_object(client, action(data={"a": "1"}))
    assert api.objects[f"{MAPS}/x"]["data"] == {"a": "1"}
    assert api.asked == [("POST", MAPS)]
    assert api.users == ["client"]


def test_existing_object_is_replaced_without_being_read(api: FakeApi, client: KubeClient) -> None:
    api.objects[f"{MAPS}/x"] = {"data": {"b": "2"}}
    put_object(client, action(data={"a": "1"}))
    assert api.objects[f"{MAPS}/x"]["data"] == {"a": "1"}
    assert api.asked == [("POST", MAPS), ("PUT", f"{MAPS}/x")]


def test_existing_object_stays_where_it_is_to_be_kept(api: FakeApi, client: KubeClient) -> None:
    api.objects[f"{MAPS}/x"] = {"data": {"b": "2"}}
    put_object(client, dataclasses.replace(action(data={"a": "1"}), keeps_existing=True))
    assert api.objects[f"{MAPS}/x"]["data"] == {"b": "2"}
    assert api.asked == [("POST", MAPS)]


def test_other_keys_are_kept_where_they_shall_be(api: FakeApi, client: KubeClient) -> None:
    api.objects[f"{MAPS}/x"] = {"metadata": {"name": "x", "resourceVersion": "7"}, "data": {"a": "0", "b": "2"}}
    api.refuse("PUT", f"{MAPS}/x", 409, "Conflict", "changed in between")
    put_object(client, action(data={"a": "1"}, keeps_other_data=True))
    assert api.objects[f"{MAPS}/x"]["data"] == {"a": "1", "b": "2"}
    assert api.objects[f"{MAPS}/x"]["metadata"]["resourceVersion"] == "7"


def test_a_conflict_that_does_not_end_is_told(api: FakeApi, client: KubeClient) -> None:
    api.objects[f"{MAPS}/x"] = {"data": {}}
    for _ in range(5):
        api.refuse("PUT", f"{MAPS}/x", 409, "Conflict", "changed in between")
    with pytest.raises(ObjectConflict, match="update ConfigMap kube-system/x: changed in between"):
        put_object(client, action(data={"a": "1"}, keeps_other_data=True))


def versioned(**data: Json) -> PutObject:
    return dataclasses.replace(action(data=data), resource_version="7")


def test_version_that_was_planned_for_is_sent_along_and_nothing_is_created(api: FakeApi, client: KubeClient) -> None:
    api.objects[f"{MAPS}/x"] = {"data": {"b": "2"}}
    put_object(client, versioned(a="1"))
    assert api.objects[f"{MAPS}/x"]["metadata"]["resourceVersion"] == "7"
    assert api.asked == [("PUT", f"{MAPS}/x")]


def test_version_that_was_planned_for_keeps_the_other_keys_where_these_are_not_ours(
    api: FakeApi, client: KubeClient
) -> None:
    api.objects[f"{MAPS}/x"] = {"data": {"b": "2"}, "metadata": {"name": "x", "annotations": {"of": "others"}}}
    put_object(client, dataclasses.replace(versioned(a="1"), keeps_other_data=True))
    assert api.objects[f"{MAPS}/x"]["data"] == {"a": "1", "b": "2"}
    assert api.objects[f"{MAPS}/x"]["metadata"]["annotations"] == {"of": "others"}


@pytest.mark.parametrize(
    ("found", "event"),
    [
        pytest.param({"data": {"b": "2"}}, "has changed since version 7", id="changed"),
        pytest.param({"data": {"a": "1", "b": "2"}}, "has changed since version 7", id="with a key of somebody else"),
        pytest.param(None, "has gone", id="deleted"),
    ],
)
def test_object_of_another_version_makes_the_plan_stale(
    api: FakeApi, client: KubeClient, found: dict[str, Any] | None, event: str
) -> None:
    if found:
        api.objects[f"{MAPS}/x"] = {**found, "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    api.refuse("PUT", f"{MAPS}/x", 409 if found else 404, "Conflict" if found else "NotFound", "changed in between")
    before = dict(api.objects)
    with pytest.raises(StalePlan, match=f"the plan is stale: ConfigMap kube-system/x {event}") as caught:
        put_object(client, versioned(a="1"))
    assert caught.value.error_class == "stale-plan"
    assert api.objects == before


def test_own_write_whose_answer_was_lost_is_recognised(api: FakeApi, client: KubeClient) -> None:
    """By the request that is repeated, and by a run that was killed before it had noted the end of its step."""
    api.objects[f"{MAPS}/x"] = {"data": {}}
    api.fail("PUT", f"{MAPS}/x", "unanswered")
    put_object(client, versioned(a="1"))
    api.refuse("PUT", f"{MAPS}/x", 409, "Conflict", "changed in between")
    put_object(client, versioned(a="1"))
    assert api.objects[f"{MAPS}/x"]["data"] == {"a": "1"}


def test_service_whose_address_is_its_own_is_updated(api: FakeApi, client: KubeClient) -> None:
    api.objects[f"{SERVICES}/x"] = {"spec": {}}
    api.refuse("POST", SERVICES, 422, "Invalid", "provided IP is already allocated")
    put_object(client, action("Service", spec={"clusterIP": "10.96.0.10"}))
    assert api.objects[f"{SERVICES}/x"]["spec"] == {"clusterIP": "10.96.0.10"}


@pytest.mark.parametrize("kind", ["Service", "ConfigMap"])
def test_what_is_invalid_is_told_in_the_words_of_the_server(api: FakeApi, client: KubeClient, kind: str) -> None:
    api.refuse("POST", SERVICES if kind == "Service" else MAPS, 422, "Invalid", "spec.x: Required value")
    with pytest.raises(ObjectInvalid, match=r"cannot create .* spec\.x: Required value"):
        put_object(client, action(kind))


def test_forbidden_hints_at_another_kubeconfig(api: FakeApi, client: KubeClient) -> None:
    api.refuse("POST", MAPS, 403, "Forbidden", "User cannot create")
    with pytest.raises(Forbidden) as caught:
        put_object(client, action())
    assert caught.value.error_class == "forbidden"
    assert "--kubeconfig" in (caught.value.hint or "")


def taint() -> PatchObject:
    content: Json = {"spec": {"taints": [OURS]}}
    return PatchObject(api_version="v1", kind="Node", name="n1", content=content, united=(("spec", "taints"),))


def node(*taints: Json) -> dict[str, Json]:
    return {"metadata": {"name": "n1", "resourceVersion": "7"}, "spec": {"taints": [*taints]}}


@pytest.mark.parametrize("held", [(), (THEIRS,), (OURS,), (THEIRS, OURS)])
def test_united_list_has_what_is_asked_and_what_was_there(
    api: FakeApi, client: KubeClient, held: tuple[Json, ...]
) -> None:
    api.objects[NODE] = node(*held)
    patch_object(client, taint())
    spec = api.objects[NODE]["spec"]
    assert spec["taints"] == [OURS, *([THEIRS] if THEIRS in held else [])]


def test_a_change_in_between_is_looked_at_again(api: FakeApi, client: KubeClient) -> None:
    api.objects[NODE] = node(THEIRS)
    api.refuse("PATCH", NODE, 409, "Conflict", "changed in between")
    patch_object(client, taint())
    assert api.objects[NODE]["spec"]["taints"] == [OURS, THEIRS]


def test_a_conflict_of_a_patch_that_does_not_end_is_told(api: FakeApi, client: KubeClient) -> None:
    api.objects[NODE] = node()
    for _ in range(5):
        api.refuse("PATCH", NODE, 409, "Conflict", "changed in between")
    with pytest.raises(ObjectConflict):
        patch_object(client, taint())


RECORD = "/api/v1/namespaces/kube-system/configmaps/garboard-patches"
NODES = "/api/v1/nodes"
SET = SharedKey("set.d1", value="d1", annotation="garboard.dev/patch-set", annotated="sha256:d1")


def record(**data: str) -> dict[str, Json]:
    named = {key.replace("_", "."): value for key, value in data.items()}
    return {"metadata": {"name": "garboard-patches", "resourceVersion": "7"}, "data": {**named}}


def taking_back() -> PatchObject:
    """The undo of a node that put its patch set where there was none."""
    return PatchObject(
        api_version="v1",
        kind="ConfigMap",
        name="garboard-patches",
        namespace="kube-system",
        content={"data": {"set.d1": None, "node.cp1": None}},
        shared_keys=(SET,),
        deletes_empty=True,
    )


@pytest.mark.parametrize(
    ("held", "digests", "left"),
    [
        pytest.param(record(set_d1="x", node_cp1="d1"), (), None, id="nobody else"),
        pytest.param(
            record(set_d1="x", node_cp1="d1", node_cp2="d1"), (), {"set.d1": "x", "node.cp2": "d1"}, id="another node"
        ),
        pytest.param(
            record(set_d1="x", node_cp1="d1", set_d2="y", node_cp2="d2"), (), {"set.d2": "y", "node.cp2": "d2"},
            id="a node with another set",
        ),
        pytest.param(record(set_d1="x", node_cp1="d1"), ("sha256:d1",), {"set.d1": "x"}, id="a worker"),
        pytest.param(record(set_d1="x", node_cp1="d1"), ("sha256:d2",), None, id="a worker with another set"),
    ],
)  # fmt: skip
def test_patch_set_that_another_node_uses_stays(
    api: FakeApi, client: KubeClient, held: dict[str, Json], digests: tuple[str, ...], left: dict[str, str] | None
) -> None:
    api.objects[RECORD] = held
    for number, digest in enumerate(("", *digests)):
        api.objects[f"{NODES}/w{number}"] = {"metadata": {"annotations": {"garboard.dev/patch-set": digest}}}
    patch_object(client, taking_back())
    found = api.objects.get(RECORD)
    assert (found and {key: value for key, value in found["data"].items() if value is not None}) == left


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_node_that_joins_while_a_set_is_taken_back_is_noticed(
    api: FakeApi, client: KubeClient, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    api.objects[f"{NODES}/cp1"] = {"metadata": {"name": "cp1"}}
    others = {"node_cp3": "d2"} if method == "PATCH" else {}
    api.objects[RECORD] = record(set_d1="x", node_cp1="d1", **others)
    answer = api.answer

    def joined(asked: str, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
        if asked == method:
            api.objects[RECORD]["data"]["node.cp2"] = "d1"
            api.refuse(method, RECORD, 409, "Conflict", "changed in between")
            monkeypatch.setattr(api, "answer", answer)
        return answer(asked, path, body)

    monkeypatch.setattr(api, "answer", joined)
    patch_object(client, taking_back())
    assert api.objects[RECORD]["data"]["set.d1"] == "x"


def test_set_that_has_gone_is_no_failure(api: FakeApi, client: KubeClient) -> None:
    patch_object(client, taking_back())
    with pytest.raises(ObjectMissing):
        patch_object(client, dataclasses.replace(taking_back(), deletes_empty=False))


@pytest.mark.parametrize("is_there", [True, False])
def test_object_that_serves_another_one_stays_with_it(api: FakeApi, client: KubeClient, is_there: bool) -> None:
    role = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles/patches"
    api.objects[role] = {"metadata": {"name": "patches"}}
    if is_there:
        api.objects[RECORD] = record()
    delete_object(
        client,
        DeleteObject(
            api_version="rbac.authorization.k8s.io/v1",
            kind="Role",
            name="patches",
            namespace="kube-system",
            unless=("ConfigMap", "kube-system", "garboard-patches"),
        ),
    )
    assert (role in api.objects) == is_there


def owned() -> PutObject:
    reference: Json = {"kind": "Secret", "name": "token", "uid": ""}
    content: Json = {"metadata": {"name": "x", "ownerReferences": [reference]}}
    return PutObject(api_version="v1", kind="Secret", name="x", namespace="kube-system", content=content)


def test_owner_gives_its_uid(api: FakeApi, client: KubeClient) -> None:
    api.objects[f"{SECRETS}/token"] = {"metadata": {"name": "token", "uid": "abc"}}
    put_object(client, owned())
    assert api.objects[f"{SECRETS}/x"]["metadata"]["ownerReferences"][0]["uid"] == "abc"


def test_owner_that_is_not_there_is_refused(api: FakeApi, client: KubeClient) -> None:
    with pytest.raises(ObjectMissing, match="get Secret token"):
        put_object(client, owned())


class Files(NodeMachine):
    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(None)
        self.files = files

    def read(self, path: str) -> bytes | None:
        return self.files.get(path)


@pytest.mark.parametrize(
    ("own", "why"),
    [
        pytest.param({}, "no-kubeconfig", id="no kubeconfig"),
        pytest.param({KUBELET_CONF: WITHOUT_CERTIFICATE}, "bad-kubeconfig", id="no certificate"),
    ],
)
def test_kubelet_without_a_certificate_is_who_it_joins_as(own: dict[str, bytes], why: str) -> None:
    NodeCluster(Files({**own, BOOTSTRAP_CONF: TOKEN}), KUBELET_CONF, "").check()
    with pytest.raises(GarboardError) as raised:
        NodeCluster(Files(own), KUBELET_CONF, "").check()
    assert raised.value.error_class == why


def test_nobody_stands_in_for_an_administrator() -> None:
    files = {"/etc/kubernetes/admin.conf": WITHOUT_CERTIFICATE, BOOTSTRAP_CONF: TOKEN}
    with pytest.raises(GarboardError, match="gone"):
        NodeCluster(Files(files), "/etc/kubernetes/admin.conf", "").check()


def test_node_waits_for_an_api_server_that_is_busy_and_its_gates_ask_again_by_themselves(
    api: FakeApi, kubeconfig: Kubeconfig
) -> None:
    pauses: list[float] = []
    reported: list[str] = []
    clock = Clock(now_s=lambda: sum(pauses), sleep=pauses.append)
    files = Files({"/etc/kubernetes/other.conf": kubeconfig.to_bytes()})
    cluster = NodeCluster(files, "/etc/kubernetes/other.conf", "", clock, report=reported.append)
    api.refuse("GET", NODE, 503, "", "etcdserver: leader changed")
    assert cluster.find("Node", "", "n1") is None
    assert (len(pauses), reported) == (1, ["[api] trying again: cannot get Node n1: etcdserver: leader changed"])
    api.refuse("GET", NODE, 503, "", "etcdserver: leader changed")
    with pytest.raises(ServerBusy):
        cluster.without_patience().find("Node", "", "n1")
    assert len(pauses) == 1


class Refusing:
    """Deletes nothing, for a reason."""

    def __init__(self, error: GarboardError) -> None:
        self.error = error

    def put(self, action: PutObject) -> None:
        raise self.error

    def patch(self, action: PatchObject) -> None:
        raise self.error

    def delete(self, action: DeleteObject) -> None:
        raise self.error


def test_object_of_another_version_is_left_with_a_warning_where_it_is_to_be_kept() -> None:
    """Such as the record of a cluster, if somebody else has written it while the cluster went up."""
    lines: list[str] = []
    interpreter = ObjectInterpreter(Refusing(StalePlan("the plan is stale: ConfigMap a/x has gone")), MemoryFiles())
    run = StepContext({}, lines.append, lambda _facts: None)
    with pytest.raises(StalePlan):
        interpreter.put(versioned(a="1"), run)
    interpreter.put(dataclasses.replace(versioned(a="1"), keeps_existing=True), run)
    assert lines == ["warning: ConfigMap a/x has gone; it is left as it is"]


def deleting(error: GarboardError, *, may_be_left: bool) -> list[str]:
    lines: list[str] = []
    action = DeleteObject(api_version="v1", kind="Node", name="n", is_needed=False, may_be_left=may_be_left)
    run = StepContext({}, lines.append, lambda _facts: None)
    ObjectInterpreter(Refusing(error), MemoryFiles()).delete(action, run)
    return lines


def test_object_that_may_be_left_is_named_if_the_cluster_does_not_answer() -> None:
    silent = ClusterUnreachable("nobody answers")
    assert deleting(silent, may_be_left=True) == [
        "warning: this node cannot delete Node n (nobody answers); please do: kubectl delete node n"
    ]
    with pytest.raises(ClusterUnreachable):
        deleting(silent, may_be_left=False)


def test_object_that_a_node_may_not_delete_is_named() -> None:
    refused = GarboardError("no", error_class="forbidden")
    assert deleting(refused, may_be_left=False) == [
        "warning: this node may not delete Node n; please do: kubectl delete node n"
    ]


def test_object_that_planning_has_read_is_in_what_was_observed_and_what_moves_by_itself_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Reader:
        version = 7

        def find(self, _kind: str, _namespace: str, name: str, *, api_version: str = "") -> dict[str, Any] | None:
            return None if name == "absent" else {"metadata": {"name": name, "resourceVersion": str(self.version)}}

    reader = Reader()
    cluster = NodeCluster(Files({}), KUBELET_CONF, "")
    monkeypatch.setitem(cluster.__dict__, "reader", reader)
    for kind, name in (("ConfigMap", "kubeadm-config"), ("ConfigMap", "absent"), ("Node", "cp1")):
        cluster.find(kind, "kube-system", name)
    reader.version = 8
    cluster.find("ConfigMap", "kube-system", "kubeadm-config")
    assert cluster.observed() == (
        Observation("object ConfigMap kube-system/absent"),
        Observation("object ConfigMap kube-system/kubeadm-config", "7"),
    )
