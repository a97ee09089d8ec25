"""Patch sets: which objects an entry is for, and what a wrong file says."""

import pytest

from garboard.documents import Json
from garboard.errors import BadDocument, GarboardError
from garboard.patches import ObjectPatches, read_patch_set, unmatched

WEB: Json = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web-1", "namespace": "shop", "labels": {"tier": "front"}},
}


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
