"""`change rbac` prints roles with which everything can be read that is asked for, and nothing else be done."""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from garboard.change.reads import ADOPT_READS, READER, Read, rights
from garboard.cli.main import run
from garboard.documents import read_stream
from garboard.kube import Access, Forbidden, KubeClient, ObjectRef
from garboard.lab.binaries import Binaries
from garboard.model import DEFAULT_VERSION
from garboard.node.change_observe import observe_cluster
from garboard.node.tokens import find_kubeconfig
from garboard.retry import Pauses, wait_until
from tests.support.kube.real_server import real_api_server

USER = "system:serviceaccount:kube-system:reader"


def test_rules_name_what_is_read_and_allow_nothing_else() -> None:
    roles: Any = rights(ADOPT_READS)
    assert [(each["kind"], each["metadata"].get("namespace", "")) for each in roles] == [
        ("ClusterRole", ""),
        ("Role", "kube-public"),
        ("Role", "kube-system"),
    ]
    rules = [rule for role in roles for rule in role["rules"]]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list"}
    assert all(rule["resourceNames"] for rule in rules if rule["verbs"] == ["get"])
    assert "secrets" not in {name for rule in rules for name in rule["resources"]}


def test_right_to_ask_kubelets_is_given_to_those_alone_who_ask_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["change", "rbac", "--user", "alice"]) == 0
    assert "nodes/proxy" not in capsys.readouterr().out
    assert run(["change", "rbac", "--user", "alice", "--kubelets", "-o", "json"]) == 0
    roles = json.loads(capsys.readouterr().out)["items"]
    rules = [rule for role in roles for rule in role.get("rules", ())]
    assert [rule for rule in rules if rule["resources"] == ["nodes/proxy"]] == [
        {"apiGroups": [""], "resources": ["nodes/proxy"], "verbs": ["get"]}
    ]
    assert [role["kind"] for role in roles if any("nodes/proxy" in r["resources"] for r in role.get("rules", ()))] == [
        "ClusterRole"
    ]
    plain: Any = rights(ADOPT_READS)
    assert len(rules) == sum(len(role["rules"]) for role in plain) + 1
    assert run(["change", "rbac", "--help"]) == 0
    assert "powerful" in capsys.readouterr().out


def test_yaml_and_json_hold_the_same_objects(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["change", "rbac", "--user", "alice", "--group", "ops", "--group", "dev"]
    assert run(words) == 0
    documents = [each.value for each in read_stream(capsys.readouterr().out, source="answer")]
    assert run([*words, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["items"] == documents
    bindings: Any = documents[3:]
    assert [each["kind"] for each in bindings] == ["ClusterRoleBinding", "RoleBinding", "RoleBinding"]
    assert {each["roleRef"]["name"] for each in bindings} == {READER}
    assert [each["name"] for each in bindings[0]["subjects"]] == ["alice", "ops", "dev"]


@pytest.fixture(scope="module")
def access(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    with real_api_server(binaries, str(DEFAULT_VERSION), tmp_path_factory.mktemp("server")) as running:
        yield running


def put(admin: KubeClient, content: Any) -> None:
    metadata = content["metadata"]
    ref = ObjectRef(content["kind"], metadata.get("namespace", ""), metadata["name"])
    if admin.find(ref.kind, ref.namespace, ref.name) is None:
        admin.create(ref, content)
    else:
        admin.replace(ref, content)


def reader_kubeconfig(admin: KubeClient, access: Access, folder: Path) -> str:
    """Return a kubeconfig of a service account that has no rights."""
    account = ObjectRef("ServiceAccount", "kube-system", "reader")
    if admin.find("ServiceAccount", "kube-system", "reader") is None:
        content: Any = {"apiVersion": "v1", "kind": "ServiceAccount"}
        admin.create(account, {**content, "metadata": {"namespace": "kube-system", "name": "reader"}})
    request: Any = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer: Any = admin.create(account, request, subresource="token")
    cluster = {"server": access.server, "insecure-skip-tls-verify": True}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    path = folder / "reader.conf"
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [context],
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "u", "user": {"token": answer["status"]["token"]}}],
            }
        )
    )  # fmt: skip
    return str(path)


def grant(admin: KubeClient, reads: Iterable[Read]) -> None:
    reads = tuple(reads)
    for each in rights(reads, users=(USER,)):
        put(admin, each)
    for namespace in {each.namespace for each in ADOPT_READS} - {each.namespace for each in reads}:
        admin.delete(ObjectRef("Role", namespace, READER))


def awaited(problem: Callable[[], str | None]) -> None:
    """Wait until rights that were changed count: the API server watches them."""
    assert wait_until(problem, timeout_s=60, pauses=Pauses.every(0.05)) is None


def refusal(kubeconfig: str) -> str | None:
    """Return which right is missing to look at the cluster, if one is."""
    try:
        observe_cluster(kubeconfig, ADOPT_READS)
    except Forbidden as error:
        return error.message.partition(" is missing")[0]
    return None


@pytest.mark.real
def test_these_rights_suffice_and_none_can_be_left_out(access: Access, tmp_path: Path) -> None:
    with KubeClient(access) as admin:
        kubeconfig = reader_kubeconfig(admin, access, tmp_path)
        grant(admin, ADOPT_READS)
        awaited(lambda: refusal(kubeconfig))
        for left_out in ADOPT_READS:
            grant(admin, [each for each in ADOPT_READS if each != left_out])
            wanted = f"the right to {left_out}"
            awaited(lambda wanted=wanted: None if refusal(kubeconfig) == wanted else f"{wanted} is not missing")  # type: ignore[misc]
            grant(admin, ADOPT_READS)
            awaited(lambda: refusal(kubeconfig))


@pytest.mark.real
def test_with_these_rights_nothing_is_written_and_no_secret_read(access: Access, tmp_path: Path) -> None:
    with KubeClient(access) as admin:
        kubeconfig = reader_kubeconfig(admin, access, tmp_path)
        grant(admin, ADOPT_READS)
        awaited(lambda: refusal(kubeconfig))
    with find_kubeconfig(kubeconfig).connect() as reader:
        ref = ObjectRef("ConfigMap", "kube-system", "kubeadm-config")
        content: Any = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "kube-system"}}
        attempts: list[Callable[[], object]] = [
            lambda: reader.list_objects("Secret", "kube-system"),
            lambda: reader.list_objects("ConfigMap", "kube-system"),
            lambda: reader.create(ObjectRef("ConfigMap", "kube-system", "x"), content),
            lambda: reader.patch(ref, {"data": {}}),
            lambda: reader.delete(ref),
        ]
        for attempt in attempts:
            with pytest.raises(Forbidden):
                attempt()
