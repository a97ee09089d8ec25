import hashlib
import json

from garboard.engine import (
    ControlService,
    MakeFolder,
    Note,
    Plan,
    PutObject,
    Step,
    Unsupported,
    WriteFile,
    plan_as_json,
    plan_as_text,
)
from garboard.engine.action import Action
from tests.engine.actions import issue

SECRET = b"token: abcdef.0123456789abcdef\n"
ACTIONS: tuple[Action, ...] = (
    MakeFolder(path="/var/lib/etcd", mode=0o700),
    WriteFile(path="/etc/a.yaml", content=b"kind: Pod\n", mode=0o600),
    WriteFile(path="/etc/b.conf", content=SECRET, mode=0o600, is_secret=True),
    issue("certificate ca", "/pki/ca.key", "/pki/ca.crt"),
    PutObject(api_version="v1", kind="ConfigMap", name="c", namespace="kube-system", content={"data": {"x": "v"}}),
    PutObject(api_version="v1", kind="Secret", name="d", content={"data": "hidden"}, is_secret=True),
    ControlService(service="kubelet", verb="restart"),
    Unsupported(what="waiting"),
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
        "[certs/ca] not built yet: waiting  # because",
        "plan: 8 steps on node-1",
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
        "make-folder", "write-file", "write-file", "issue", "put-object", "put-object", "restart-service", "unsupported"
    ]  # fmt: skip


def test_content_that_is_no_text_is_shown_by_its_digest() -> None:
    step = Step(WriteFile(path="/a", content=b"\xff\x00", mode=0o600), "because")
    assert "sha256" in plan_as_text(Plan((step,)))


def test_empty_plan_says_so() -> None:
    assert plan_as_text(Plan()) == "plan: nothing to do\n"
