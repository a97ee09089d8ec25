"""Patch sets: which objects an entry is for, and what a wrong file says."""

import pytest

from garboard.documents import Json
from garboard.errors import BadDocument, GarboardError, InvalidValue
from garboard.patches import ObjectPatches, read_patch_set, unmatched
from garboard.patches.objects import LabelSelector

WEB: Json = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web-1", "namespace": "shop", "labels": {"tier": "front"}},
}

LABELS = {"app": "web", "tier": "front", "example.com/team": "a"}


def patch_set(target: str) -> ObjectPatches:
    text = f"patches:\n- target: {target}\n  file: patch.yaml\n"
    return read_patch_set(text.encode(), source="set.yaml", load=lambda _: b"a: 1\n")


@pytest.mark.parametrize(
    ("target", "is_selected"),
    [
        ("{}", True),
        ("{kind: Deployment}", True),
        ("{kind: deployment}", False),
        ("{group: apps}", True),
        ('{group: ""}', False),
        ("{version: v1}", True),
        ("{version: v1beta1}", False),
        ("{name: web-1}", True),
        ("{name: web-*}", True),
        ("{name: web}", False),
        ("{name: 'web-?', namespace: sh*}", True),
        ("{namespace: other}", False),
        ("{labelSelector: tier=front}", True),
        ("{labelSelector: tier=back}", False),
        ("{kind: Deployment, group: apps, labelSelector: '!canary'}", True),
    ],
)
def test_target_selects(target: str, is_selected: bool) -> None:
    assert bool(patch_set(target).for_object(WEB)) is is_selected


@pytest.mark.parametrize("odd", [None, 1, [], {}, {"kind": []}, {"metadata": 1}, {"metadata": {"labels": []}}])
def test_odd_document_is_selected_by_nothing_that_names_something(odd: Json) -> None:
    assert patch_set("{kind: Deployment, name: '*', labelSelector: a}").for_object(odd) == []


def test_entries_keep_their_order_and_know_what_matched_nothing() -> None:
    text = b"patches:\n- {file: a.yaml}\n- {file: b.yaml, target: {kind: Pod}}\n- {file: c.yaml, type: merge}\n"
    patches = read_patch_set(text, source="set.yaml", load=lambda _: b"a: 1\n")
    entries = patches.for_object(WEB)
    assert [entry.file for entry in entries] == ["a.yaml", "c.yaml"]
    assert [(entry.file, entry.position.line) for entry in unmatched(patches, entries)] == [("b.yaml", 3)]


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "patches: 1", "patches: [1]", "patches: [{}]", "patches: [{file: 1}]", "patch: []",
        "patches: [{file: a, typ: json}]", "patches: [{file: a, type: yaml}]", "patches: [{file: a, target: {kin: b}}]",
        "patches: [{file: a, target: {labelSelector: '!'}}]",
    ],
)  # fmt: skip
def test_file_that_is_no_patch_set_is_refused(text: str) -> None:
    with pytest.raises(BadDocument) as failure:
        read_patch_set(text.encode(), source="set.yaml", load=lambda _: b"a: 1\n")
    assert failure.value.hint


def test_unreadable_patch_file_is_told() -> None:
    def fail(name: str) -> bytes:
        raise GarboardError(f"cannot read {name}", hint="look", error_class="unreadable")

    with pytest.raises(GarboardError, match=r"cannot read a\.yaml"):
        read_patch_set(b"patches: [{file: a.yaml}]", source="set.yaml", load=fail)


@pytest.mark.parametrize(
    ("text", "is_selected"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app!=web", False),
        ("env!=prod", True),
        ("app", True),
        ("env", False),
        ("!env", True),
        ("!app", False),
        ("app in (web, db)", True),
        ("app notin (web, db)", False),
        ("env notin (prod)", True),
        ("env in (prod)", False),
        ("app=web,tier=front", True),
        ("app=web, tier=back", False),
        ("example.com/team=a", True),
        ("app=", False),
    ],
)
def test_selector_selects(text: str, is_selected: bool) -> None:
    assert LabelSelector.parse(text).matches(LABELS) is is_selected


@pytest.mark.parametrize("text", ["=web", "app=web tier=front", "app in web", "!", "app in (a", ",", "a b", "app><b"])
def test_text_that_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue) as failure:
        LabelSelector.parse(text)
    assert failure.value.hint


@pytest.mark.parametrize("entry", ["{}", "{file: a.yaml, patch: 'a: 1'}"], ids=["neither", "both"])
def test_entry_has_a_file_or_an_inline_patch(entry: str) -> None:
    with pytest.raises(InvalidValue, match=r"set\.yaml:2:3: an entry needs either `file` or `patch`"):
        read_patch_set(f"patches:\n- {entry}\n".encode(), source="set.yaml", load=lambda _: b"a: 1\n")


def test_inline_patch_is_applied_like_one_in_a_file() -> None:
    text = "patches:\n- target: {kind: Deployment}\n  type: json\n  patch: |\n    - op: remove\n      path: /a\n"
    [entry] = read_patch_set(text.encode(), source="set.yaml", load=lambda _: b"").for_object(WEB)
    assert [patch.value for patch in entry.patches] == [[{"op": "remove", "path": "/a"}]]
