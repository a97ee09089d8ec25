"""Differences as text and as JSON."""

from typing import Any

from garboard.drift import compare, differences_as_json, differences_as_text
from tests.support.drift.subjects import patch, subject


def edit(document: Any) -> Any:
    document["spec"]["containers"][0]["command"].append("--profiling=false")
    return document


FOUND = compare(subject("kube-scheduler", edit, patches=(patch("spec: {priority: 7}"),)))
NOTHING = "neither the configuration nor a patch has it so"
TEXT = f"""\
/etc/kubernetes/manifests/kube-scheduler.yaml:
  spec.priority  [patch]: a patch of this node has it so
    rendered:  2000001000    # the default of Kubernetes 1.37
    declared:  7    # patch.yaml:1:8 (strategic patch)
    on disk:   7    # /etc/kubernetes/manifests/kube-scheduler.yaml
  spec.containers[name=kube-scheduler].command[--profiling]  [hand-edit]: {NOTHING}
    declared:  not there    # not declared
    on disk:   "false"    # /etc/kubernetes/manifests/kube-scheduler.yaml
"""


def test_text_has_each_place_with_its_source() -> None:
    by_name = sorted(FOUND, key=lambda each: each.kind.value, reverse=True)
    assert differences_as_text(by_name) == TEXT


def test_json_has_each_place_that_was_looked_at() -> None:
    edited = next(each for each in FOUND if each.kind.value == "hand-edit")
    assert differences_as_json([edited]) == [
        {
            "component": "kube-scheduler",
            "where": "/etc/kubernetes/manifests/kube-scheduler.yaml",
            "field": "spec.containers[name=kube-scheduler].command[--profiling]",
            "kind": "hand-edit",
            "reason": "neither the configuration nor a patch has it so",
            "rendered": {"isKnown": True, "source": "not declared"},
            "declared": {"isKnown": True, "source": "not declared"},
            "onDisk": {"value": "false", "isKnown": True, "source": "/etc/kubernetes/manifests/kube-scheduler.yaml"},
        }
    ]


def test_cosmetic_differences_are_shown_when_asked_for() -> None:
    found = compare(subject("etcd", text=lambda text: f"# note\n{text}"))
    assert differences_as_text(found) == ""
    assert "[cosmetic]: comments, order or spelling" in differences_as_text(found, shows_explained=True)


def with_proxy(document: Any) -> Any:
    document["spec"]["containers"][0]["env"] = [{"name": "HTTPS_PROXY", "value": "http://u:secret@proxy:3128"}]
    return document


def test_password_of_a_proxy_is_not_shown() -> None:
    found = compare(subject("kube-scheduler", with_proxy))
    texts = (differences_as_text(found, shows_explained=True), str(differences_as_json(found)))
    assert all("http://<hidden>@proxy:3128" in text and "secret" not in text for text in texts)
