"""The policy of the API server that keeps others from writing revisions, judged and in force."""

import time
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from garboard.change.write_policy import (
    API,
    BINDING_KIND,
    POLICY,
    POLICY_KIND,
    PROBE,
    READER,
    TAKES_EFFECT_WITHIN_S,
    WRITERS,
    policy_objects,
    policy_problem,
    revision_problem,
)
from garboard.kube import Access, KubeClient, ObjectRef, PatchFormat
from garboard.kube.errors import RequestRefused
from garboard.lab.binaries import Binaries
from garboard.model import SUPPORTED_VERSIONS
from garboard.phases.revision import Revision
from garboard.retry import Pauses, wait_until
from tests.support.kube.real_server import real_api_server

MADE = datetime.fromisoformat("2031-05-04T03:00:00+00:00")
RBAC = "rbac.authorization.k8s.io/v1"
# Who is who: whoever may write ConfigMaps of kube-system by roles, and those whom the policy lets write revisions.
USERS = {
    "worker": "system:nodes",
    "namespace-admin": "developers",
    "everywhere": "operators",
    "cluster-admin": WRITERS[0],
    "master": WRITERS[1],
}


def stored(content: Any, *, after_s: float = 0.0, **metadata: Any) -> Any:
    found = deepcopy(content)
    made = (MADE + timedelta(seconds=after_s)).isoformat().replace("+00:00", "Z")
    found["metadata"].update({"creationTimestamp": made, "generation": 1, **metadata})
    return found


CONTENTS: list[Any] = [each.content for each in policy_objects()]
POLICY_CONTENT, BINDING_CONTENT, *_ = CONTENTS
REVISION = Revision(number=1, created="now", kubernetes_version="v1.37.1", documents={}).as_object().content
IN_FORCE = {"policy": stored(POLICY_CONTENT), "binding": stored(BINDING_CONTENT)}


def test_revision_that_was_written_under_the_policy_is_acted_on() -> None:
    assert revision_problem(**IN_FORCE, revision=stored(REVISION, after_s=TAKES_EFFECT_WITHIN_S)) is None


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        pytest.param({"policy": None}, "there is no ValidatingAdmissionPolicy", id="no policy"),
        pytest.param({"binding": None}, "there is no ValidatingAdmissionPolicyBinding", id="no binding"),
        pytest.param(
            {"policy": stored(POLICY_CONTENT, deletionTimestamp="now")}, "being deleted", id="it is going away"
        ),
        pytest.param({"revision": stored(REVISION)}, "written before", id="a revision as old as the policy"),
        pytest.param({"policy": stored(POLICY_CONTENT, after_s=60)}, "written before", id="a policy that is younger"),
        pytest.param({"binding": stored(BINDING_CONTENT, after_s=60)}, "written before", id="a younger binding"),
        pytest.param({"policy": stored(POLICY_CONTENT, generation=2)}, "written before", id="it was another one"),
        pytest.param({"policy": stored(POLICY_CONTENT, creationTimestamp=None)}, "not as|written", id="no time"),
        pytest.param({"revision": {"metadata": {}}}, "written before", id="a revision without a time"),
    ],
)
def test_what_anybody_may_have_written_is_not_acted_on(changes: dict[str, Any], problem: str) -> None:
    given: dict[str, Any] = {**IN_FORCE, "revision": stored(REVISION, after_s=30), **changes}
    if changes.get("policy") and changes["policy"]["metadata"].get("creationTimestamp", "") is None:
        assert revision_problem(**given) is None, "the binding says when they came to be"
    else:
        assert problem in (revision_problem(**given) or "")


def edits() -> Iterator[tuple[str, Any, Any]]:
    """Yield every leaf of both specifications, taken out; and what makes a policy match less."""
    for kind, content in (("policy", POLICY_CONTENT), ("binding", BINDING_CONTENT)):
        for key in content["spec"]:
            changed = deepcopy(content)
            del changed["spec"][key]
            yield f"{kind}-{key}", kind, changed
    weaker = deepcopy(BINDING_CONTENT)
    weaker["spec"]["matchResources"] = {"namespaceSelector": {"matchLabels": {"x": "y"}}}
    yield "binding-matchResources", "binding", weaker
    audits = deepcopy(BINDING_CONTENT)
    audits["spec"]["validationActions"] = ["Audit"]
    yield "binding-audit", "binding", audits


@pytest.mark.parametrize(("which", "content"), [pytest.param(w, c, id=n) for n, w, c in edits()])
def test_policy_that_is_another_one_counts_for_none(which: str, content: Any) -> None:
    given: dict[str, Any] = {**IN_FORCE, which: stored(content)}
    assert "not as garboard writes it" in (policy_problem(**given) or "")


@pytest.fixture(scope="module", params=SUPPORTED_VERSIONS, ids=str)
def protected(
    request: pytest.FixtureRequest, binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Access]:
    """A real API server with the policy, and with roles by which everybody of `USERS` may write ConfigMaps."""
    folder = tmp_path_factory.mktemp("server")
    with real_api_server(binaries, str(request.param), folder, users=USERS) as access:
        with KubeClient(access) as admin:
            for content in (*CONTENTS, *roles()):
                metadata = content["metadata"]
                ref = ObjectRef(
                    str(content["kind"]), metadata.get("namespace", ""), metadata["name"], str(content["apiVersion"])
                )
                admin.create(ref, content)
            await_policy(admin)
        yield access


def roles() -> list[dict[str, Any]]:
    """The rights of an administrator of kube-system, and a role for ConfigMaps everywhere."""
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}
    role = {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": "writer"}, "rules": [rule]}
    return [
        role,
        # What the roles `admin` and `edit` consist of; no controller puts them together here.
        binding("RoleBinding", "namespace-admin", "system:aggregate-to-edit", namespace="kube-system"),
        binding("ClusterRoleBinding", "everywhere", "writer"),
        binding("ClusterRoleBinding", "worker", "writer"),
        binding("ClusterRoleBinding", "cluster-admin", "cluster-admin"),
    ]


def binding(kind: str, user: str, role: str, **place: str) -> dict[str, Any]:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": RBAC,
        "kind": kind,
        "metadata": {"name": f"of-{user}", **place},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }


def await_policy(admin: KubeClient) -> None:
    def problem() -> str | None:
        try:
            admin.create(config_map(PROBE), {"metadata": {"name": PROBE}})
        except RequestRefused as error:
            return None if "it shows that the policy is in force" in error.message else error.message
        admin.delete(config_map(PROBE))
        return "the policy is not in force"

    assert wait_until(problem, timeout_s=60, pauses=Pauses.every(0.2)) is None


def config_map(name: str, namespace: str = "kube-system") -> ObjectRef:
    return ObjectRef("ConfigMap", namespace, name)


def as_user(access: Access, name: str) -> KubeClient:
    return KubeClient(replace(access, token=name))


NAMES = ["garboard-change", "garboard-revision-0", "garboard-revision-12", "garboard-patches"]


@pytest.mark.real
def test_what_is_stored_is_what_was_written(protected: Access) -> None:
    with as_user(protected, "worker") as node:
        policy = node.find(POLICY_KIND, "", POLICY, api_version=API)
        bound = node.find(BINDING_KIND, "", POLICY, api_version=API)
    assert policy_problem(policy, bound) is None
    assert READER in {each.name for each in policy_objects()}, "a node may look, as it just did"


@pytest.mark.real
@pytest.mark.parametrize("user", ["worker", "namespace-admin", "everywhere"])
def test_who_may_write_config_maps_may_not_write_revisions(protected: Access, user: str) -> None:
    content: Any = {"data": {"revision": "{}"}}
    with as_user(protected, user) as other, KubeClient(protected) as admin:
        for name in NAMES:
            with pytest.raises(RequestRefused, match="only kubeadm:cluster-admins and system:masters"):
                other.create(config_map(name), {"metadata": {"name": name}, **content})
            admin.create(config_map(name), {"metadata": {"name": name}})
            with pytest.raises(RequestRefused, match="nodes carry them out as root"):
                other.patch(config_map(name), content)
            with pytest.raises(RequestRefused, match="nodes carry them out as root"):
                other.patch(
                    config_map(name),
                    {**content, "apiVersion": "v1", "kind": "ConfigMap"},
                    PatchFormat.APPLY,
                    forces=True,
                )
            with pytest.raises(RequestRefused, match="nodes carry them out as root"):
                other.delete(config_map(name))
            admin.delete(config_map(name))
        generated = {"metadata": {"generateName": "garboard-revision-"}, **content}
        with pytest.raises(RequestRefused, match="only kubeadm:cluster-admins"):
            other.create(config_map(""), generated)


@pytest.mark.real
@pytest.mark.parametrize("user", ["cluster-admin", "master"])
def test_administrators_write_them(protected: Access, user: str) -> None:
    content: Any = {"data": {"revision": "{}"}}
    with as_user(protected, user) as writer:
        for name in NAMES:
            writer.create(config_map(name), {"metadata": {"name": name}})
            writer.patch(config_map(name), content)
            writer.delete(config_map(name))


@pytest.mark.real
def test_other_config_maps_are_nobodys_business(protected: Access) -> None:
    with as_user(protected, "namespace-admin") as other:
        other.create(config_map("app"), {"metadata": {"name": "app"}})
        other.delete(config_map("app"))
    with as_user(protected, "everywhere") as other:
        other.create(config_map("garboard-change", "default"), {"metadata": {"name": "garboard-change"}})


@pytest.mark.real
def test_revision_is_younger_than_the_policy_once_the_probe_is_refused_for_long_enough(protected: Access) -> None:
    with KubeClient(protected) as admin:
        policy = admin.find(POLICY_KIND, "", POLICY, api_version=API)
        bound = admin.find(BINDING_KIND, "", POLICY, api_version=API)
        problems: list[str | None] = []
        for number in (1, 2):
            made = Revision(number=number, created="now", kubernetes_version="v1.37.1", documents={}).as_object()
            found = admin.create(config_map(made.name), made.content)
            problems.append(revision_problem(policy, bound, found))
            admin.delete(config_map(made.name))
            time.sleep(TAKES_EFFECT_WITHIN_S)
    assert problems[1] is None
