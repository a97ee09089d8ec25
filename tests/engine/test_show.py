import hashlib
import json

import pytest

from garboard.engine import (
    ControlService,
    EmptyFolder,
    MakeFolder,
    Note,
    Observation,
    Plan,
    PutObject,
    QuorumChange,
    Step,
    WriteFile,
    plan_as_json,
    plan_as_text,
)
from garboard.engine.action import Action
from tests.support.engine.actions import issue

SECRET = b"token: abcdef.0123456789abcdef\n"
ACTIONS: tuple[Action, ...] = (
    MakeFolder(path="/var/lib/etcd", mode=0o700),
    WriteFile(path="/etc/a.yaml", content=b"kind: Pod\n", mode=0o600),
    WriteFile(path="/etc/b.conf", content=SECRET, mode=0o600, is_secret=True),
    issue("certificate ca", "/pki/ca.key", "/pki/ca.crt"),
    PutObject(api_version="v1", kind="ConfigMap", name="c", namespace="kube-system", content={"data": {"x": "v"}}),
    PutObject(api_version="v1", kind="Secret", name="d", content={"data": "hidden"}, is_secret=True),
    ControlService(service="kubelet", verb="restart"),
)
PLAN = Plan(
    tuple(Step(action, "because", "certs/ca", "node-1") for action in ACTIONS),
    (Note("stays", phase="certs/sa"), Note("odd", is_warning=True, phase="certs/sa")),
)


def test_every_action_has_a_line_and_what_it_writes() -> None:
    text = plan_as_text(PLAN)
    assert text.splitlines()[:2] == ["[certs/sa] stays", "[certs/sa] warning: odd"]
    for line in (
        "[certs/ca] make folder /var/lib/etcd (0700)  # because",
        "[certs/ca] write /etc/a.yaml (0600)  # because",
        "    kind: Pod",
        "[certs/ca] issue certificate ca  # because",
        "    -> /pki/ca.key (0600): </pki/ca.key>",
        "[certs/ca] put ConfigMap kube-system/c  # because",
        "      x: v",
        "[certs/ca] restart service kubelet  # because",
        "plan: 7 steps on node-1",
    ):
        assert line in text.splitlines()


def test_secrets_are_shown_by_their_digest_only() -> None:
    shown = plan_as_text(PLAN) + json.dumps(plan_as_json(PLAN))
    assert "0123456789abcdef" not in shown
    assert "hidden" not in shown
    assert shown.count(hashlib.sha256(SECRET).hexdigest()) == 2
    assert "0123456789abcdef" not in repr(PLAN)


def test_document_names_every_step_with_its_action() -> None:
    document = plan_as_json(PLAN)
    assert isinstance(document, dict)
    assert isinstance(document["steps"], list)
    types = [step["action"]["type"] for step in document["steps"]]  # type: ignore[index,call-overload]
    assert types == [
        "make-folder", "write-file", "write-file", "issue", "put-object", "put-object", "restart-service"
    ]  # fmt: skip


def test_content_that_is_no_text_is_shown_by_its_digest() -> None:
    step = Step(WriteFile(path="/a", content=b"\xff\x00", mode=0o600), "because")
    assert "sha256" in plan_as_text(Plan((step,)))


@pytest.mark.parametrize(
    ("change", "text", "document"),
    [
        (QuorumChange(up=-1, voters_before=3), "2 of 3 voting members up, 2 needed",
         {"voters": 3, "up": 2, "needed": 2}),
        (QuorumChange(up=-1, voters_before=1), "0 of 1 voting members up, 1 needed",
         {"voters": 1, "up": 0, "needed": 1}),
        (QuorumChange(voters=1, up=1, voters_before=3), "4 of 4 voting members up, 3 needed",
         {"voters": 4, "up": 4, "needed": 3}),
        (QuorumChange(voters=1, up=1), "voting members +1, up +1", {"votersAdded": 1, "upAdded": 1}),
        (QuorumChange(), "as many voting members as before", {"votersAdded": 0, "upAdded": 0}),
    ],
    ids=["one of three away", "the only one away", "one more", "one more of unknown", "a learner"],
)  # fmt: skip
def test_step_shows_what_it_restarts_and_what_is_left_of_etcd(
    change: QuorumChange, text: str, document: dict[str, int]
) -> None:
    step = Step(EmptyFolder(path="/a"), "", "p", restarts=("kube-apiserver", "etcd"), quorum_after=change)
    lines = plan_as_text(Plan((step,))).splitlines()
    assert lines[1:3] == ["    restarts kube-apiserver, etcd", f"    etcd: {text}"]
    (shown,) = json.loads(json.dumps(plan_as_json(Plan((step,)))))["steps"]
    assert (shown["restarts"], shown["quorumAfter"]) == (["kube-apiserver", "etcd"], document)


def test_step_that_restarts_nothing_has_no_such_member() -> None:
    document = json.dumps(plan_as_json(PLAN))
    assert "restarts" not in document
    assert "quorumAfter" not in document


def test_empty_plan_says_so() -> None:
    assert plan_as_text(Plan()) == "plan: nothing to do\n"


def test_point_of_no_return_is_the_first_step_that_takes_something_away_for_good() -> None:
    empty = (EmptyFolder(path="/var/lib/etcd"), EmptyFolder(path="/var/lib/kubelet"))
    plan = Plan(tuple(Step(action, "because", "cleanup-node") for action in (*ACTIONS, *empty)))
    lines = plan_as_text(plan).splitlines()
    at = lines.index("    point of no return: nobody can bring back what is in the folder")
    assert lines[at - 1] == "[cleanup-node] empty /var/lib/etcd  # because"
    assert sum("point of no return" in line for line in lines) == 1
    steps = json.loads(json.dumps(plan_as_json(plan)))["steps"]
    assert [index for index, step in enumerate(steps) if step.get("pointOfNoReturn")] == [len(ACTIONS)]
    assert "point of no return" not in plan_as_text(PLAN)


def test_what_was_observed_is_shown_with_one_digest_for_all() -> None:
    observed = (Observation("file /etc/a", "1f"), Observation("file /etc/b"))
    plan = Plan(observed=observed)
    document = plan_as_json(plan)
    assert isinstance(document, dict)
    assert document["observed"] == {
        "sha256": plan.observed_digest,
        "of": [{"name": "file /etc/a", "digest": "1f"}, {"name": "file /etc/b", "absent": True}],
    }
    assert f"observed: 2 files and objects, sha256:{plan.observed_digest[:16]}\n" in plan_as_text(plan)
    assert "observed" not in plan_as_text(Plan())
