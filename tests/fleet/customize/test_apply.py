"""Entries of installerManifestPatches on a tree: what is matched, what is applied, and how each failure is told."""

import pytest

from garboard.fleet import CustomizationFailed, CustomizationFailure, Irregular, ManifestTree, customize
from garboard.fleet.customize import CustomizedTree, TreeEntry, compile_customization
from garboard.fleet.documents import ObjectKey
from tests.support.fleet.pool import MANIFESTS, documents_of, rules
from tests.support.fleet.pool import customization as customization_text

WORKER = "openshift/99_worker.yaml"


def applied(spec: str, entries: dict[str, TreeEntry] | None = None, secrets: tuple[str, ...] = ()) -> CustomizedTree:
    """Apply one customization to the manifests."""
    written = documents_of(customization_text("site", spec)).customizations[ObjectKey("default", "site")]
    tree = ManifestTree.of({**MANIFESTS, **(entries or {})})
    return customize(tree, [compile_customization(written)], rules(secrets))


def failure(
    spec: str, entries: dict[str, TreeEntry] | None = None, secrets: tuple[str, ...] = ()
) -> CustomizationFailure:
    with pytest.raises(CustomizationFailed) as raised:
        applied(spec, entries, secrets)
    return raised.value.failures[0]


def text(outcome: CustomizedTree, file: str) -> str:
    content = outcome.tree.content(file)
    assert isinstance(content, bytes)
    return content.decode()


def entry(selector: str, patches: str = "[{op: add, path: /metadata/annotations, valueJSON: '{}'}]") -> str:
    return f"installerManifestPatches:\n- manifestSelector: {selector}\n  patches: {patches}\n"


def patch(type_: str, body: str, selector: str = "{kind: MachineSet}", more: str = "") -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"installerManifestPatches:\n- manifestSelector: {selector}\n  type: {type_}\n{more}  patch: |\n{lines}"


@pytest.mark.parametrize(
    ("spec", "reason", "file", "op", "words"),
    [
        pytest.param(entry("{glob: 'manifests/no*'}"), "ManifestPatchNoMatch", "", None, "no manifest", id="none"),
        pytest.param(entry("{kind: Nothing}"), "ManifestPatchNoMatch", "", None, "no manifest", id="no such kind"),
        pytest.param(entry("{glob: /etc/passwd}"), "ManifestPatchPathEscape", "", None, "absolute", id="absolute"),
        pytest.param(entry("{glob: '../manifests2/*'}"), "ManifestPatchPathEscape", "", None, "..", id="a sibling"),
        pytest.param(entry("{glob: 'a/../../x'}"), "ManifestPatchPathEscape", "", None, "..", id="dots in the middle"),
        pytest.param(entry("{glob: 'a/[x'}"), "ManifestPatchInvalid", "", None, "not a pattern", id="malformed glob"),
        pytest.param(entry("{glob: '*/*'}"), "ManifestPatchProtected", "auth/kubeconfig", None, "installer", id="auth"),
        pytest.param(entry("{glob: '*.json'}"), "ManifestPatchProtected", ".openshift_install_state.json", None,
                     "installer", id="state"),
        pytest.param(entry("{glob: openshift}"), "ManifestIOError", "openshift", None, "folder", id="a folder"),
        pytest.param(entry("{glob: '*/99_worker.yaml'}", "[{op: remove, path: /spec/absent}]"), "ManifestPatchFailed",
                     WORKER, 0, "absent", id="remove of nothing"),
        pytest.param(entry("{kind: Network}", "[{op: test, path: /spec/mtu, valueJSON: '1500'}, "
                                              "{op: replace, path: /spec/absent, value: x}]"),
                     "ManifestPatchFailed", "manifests/cluster-network.yaml", 1, "not there", id="strict replace"),
        pytest.param(entry("{kind: Network}", "[{op: test, path: /spec/mtu, valueJSON: '1500.0'}]"),
                     "ManifestPatchFailed", "manifests/cluster-network.yaml", 0, "test of", id="a float is no integer"),
        pytest.param(entry("{kind: Network}", "[{op: test, path: /spec/absent, valueJSON: 'null'}]"),
                     "ManifestPatchFailed", "manifests/cluster-network.yaml", 0, "null", id="null is not absent"),
        pytest.param(entry("{kind: Network}", "[{op: copy, from: /spec/absent, path: /spec/x}]"),
                     "ManifestPatchFailed", "manifests/cluster-network.yaml", 0, "not there", id="copy of nothing"),
        pytest.param(entry("{kind: Network}", "[{op: add, path: /a/b, value: x}]"),
                     "ManifestPatchFailed", "manifests/cluster-network.yaml", 0, "nothing at", id="no parent"),
        pytest.param(patch("strategic", "spec: {replicas: 1}"), "ManifestPatchFailed", "openshift/99_master.yaml", None,
                     "kind whose fields are known", id="strategic for an unknown kind"),
        pytest.param(patch("merge", "spec: {absent: null}"), "ManifestPatchFailed", "openshift/99_master.yaml", None,
                     "not there", id="merge that removes nothing"),
    ],
)  # fmt: skip
def test_failure_is_told_with_its_reason_entry_file_and_operation(
    spec: str, reason: str, file: str, op: int | None, words: str
) -> None:
    found = failure(spec)
    assert (str(found.reason), found.entry, found.file, found.op) == (reason, 0, file, op)
    assert found.customization == "site"
    assert words in found.message
    assert found.where.startswith("fleet.yaml:")
    assert str(found).startswith(found.where)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(Irregular("permission denied"), "permission denied", id="unreadable"),
        pytest.param(b"a: [", "cannot be parsed", id="no YAML"),
        pytest.param(b"\xff\xfe\xff", "cannot be parsed", id="no text"),
        pytest.param(b"", "empty", id="empty"),
        pytest.param(b"# nothing but a comment\n", "empty", id="a comment"),
        pytest.param(b"a: " + b"x" * 2_000_000, "at most 1.5 MiB", id="too large"),
    ],
)
def test_file_that_cannot_be_patched_is_told(content: TreeEntry, words: str) -> None:
    found = failure(entry("{glob: 'manifests/odd.yaml'}"), {"manifests/odd.yaml": content})
    assert (str(found.reason), found.file) == ("ManifestIOError", "manifests/odd.yaml")
    assert words in found.message


@pytest.mark.parametrize("glob", ["linked/x.yaml", "linked/*.yaml", "*/x.yaml", "manifests/linked.yaml", "manifests/*"])
def test_link_is_never_followed(glob: str) -> None:
    links: dict[str, TreeEntry] = dict.fromkeys(
        ("linked", "manifests/linked.yaml"), Irregular("a symbolic link", is_link=True)
    )
    found = failure(entry(f"{{glob: '{glob}'}}"), links)
    assert str(found.reason) == "ManifestPatchPathEscape"
    assert "symbolic link" in found.message


def test_selector_by_content_finds_group_kind_name_and_labels() -> None:
    for selector in (
        "{group: machine, kind: MachineSet, name: work*}",
        "{labelSelector: role=worker}",
        "{name: worker}",
    ):
        assert applied(entry(selector)).tree.patched_names == (WORKER,)


def test_glob_and_content_have_to_match_both() -> None:
    outcome = applied(entry("{glob: 'openshift/*', labelSelector: '!role'}"))
    assert outcome.tree.patched_names == ("openshift/99_master.yaml",)


def test_entry_may_match_nothing_if_it_says_so() -> None:
    spec = entry("{glob: 'none/*'}").replace("  patches:", "  onNoMatch: warn\n  patches:")
    outcome = applied(spec)
    assert outcome.tree.patched_names == ()
    assert "no manifest matches" in outcome.warnings[0]


def test_entry_without_patches_needs_a_match_and_writes_nothing() -> None:
    assert applied(entry("{glob: 'openshift/*'}", "[]")).tree.patched_names == ()
    assert str(failure(entry("{glob: 'none/*'}", "[]")).reason) == "ManifestPatchNoMatch"


def test_lenient_replace_is_allowed_by_compat_and_nothing_else_is() -> None:
    replace = entry("{kind: Network}", "[{op: replace, path: /spec/new, value: x}]")
    assert "  new: x\n" in text(applied(f"compat: true\n{replace}"), "manifests/cluster-network.yaml")
    copy = entry("{kind: Network}", "[{op: copy, from: /spec/absent, path: /spec/x}]")
    assert str(failure(f"compat: true\n{copy}").reason) == "ManifestPatchFailed"


def test_merge_and_strategic_patches_are_those_of_the_patch_engine() -> None:
    pod = b"apiVersion: v1\nkind: Pod\nspec: {containers: [{name: a, image: x}, {name: b, image: y}]}\n"
    outcome = applied(
        patch("merge", "metadata: {labels: {role: null, tier: one}}", "{name: worker}")
        + patch("strategic", "spec: {containers: [{name: b, image: z}]}", "{kind: Pod}").partition("\n")[2],
        {"manifests/pod.yaml": pod},
    )
    assert "labels:\n    tier: one\n" in text(outcome, WORKER)
    assert text(outcome, "manifests/pod.yaml").count("image:") == 2
    assert "image: z\n    name: b\n" in text(outcome, "manifests/pod.yaml")


@pytest.mark.parametrize(
    "body", ["- {op: replace, path: /spec/replicas, value: 7}", "- op: replace\n  path: /spec/replicas\n  value: 7"]
)
def test_json_patch_may_stand_in_patch_as_rfc_6902_writes_it(body: str) -> None:
    assert "replicas: 7\n" in text(applied(patch("json", body, "{name: worker}")), WORKER)


def test_patch_may_be_written_as_it_is_instead_of_as_text() -> None:
    spec = (
        "installerManifestPatches:\n- manifestSelector: {name: worker}\n  type: merge\n  patch: {spec: {replicas: 9}}\n"
    )
    assert "replicas: 9\n" in text(applied(spec), WORKER)


def test_value_is_always_text_and_value_json_any_json() -> None:
    spec = entry(
        "{name: worker}",
        "[{op: add, path: /spec/a, value: '3'}, {op: add, path: /spec/b, valueJSON: '3'}, {op: add, path: /spec/c},"
        " {op: add, path: /spec/d, value: x, valueJSON: 'null'},"
        " {op: add, path: /spec/e, valueJSON: '9007199254740993'}]",
    )
    assert 'a: "3"\n  b: 3\n  c: ""\n  d: null\n  e: 9007199254740993\n' in text(applied(spec), WORKER)


def test_pointer_escapes_slash_and_tilde() -> None:
    spec = entry("{name: worker}", "[{op: add, path: /metadata/labels/a~1b~0c, value: x}]")
    assert "a/b~c: x\n" in text(applied(spec), WORKER)


def test_later_entry_sees_what_an_earlier_one_made() -> None:
    first = entry("{name: worker}", "[{op: add, path: /metadata/labels/new, value: made}]")
    second = (
        "- manifestSelector: {labelSelector: new=made}\n  patches: [{op: add, path: /spec/seen, valueJSON: 'true'}]\n"
    )
    assert "seen: true\n" in text(applied(first + second), WORKER)


def test_every_document_of_a_file_is_patched_and_none_is_lost() -> None:
    two = b"kind: A\nmetadata: {name: one}\n---\n# second\nkind: B\nmetadata: {name: two}\n"
    outcome = applied(entry("{glob: manifests/two.yaml}"), {"manifests/two.yaml": two})
    assert text(outcome, "manifests/two.yaml").count("annotations: {}") == 2
    one = applied(entry("{glob: manifests/two.yaml, kind: B}"), {"manifests/two.yaml": two})
    assert text(one, "manifests/two.yaml").startswith("kind: A\nmetadata: {name: one}\n---\n")
    assert text(one, "manifests/two.yaml").count("annotations: {}") == 1


def test_file_without_a_patch_keeps_its_bytes_and_json_stays_json() -> None:
    outcome = applied(entry("{kind: J}"), {"manifests/x.json": b'{"kind": "J", "metadata": {}}'})
    assert outcome.tree.content(WORKER) == MANIFESTS[WORKER]
    assert text(outcome, "manifests/x.json").startswith("{")
    assert '"annotations": {}' in text(outcome, "manifests/x.json")


def test_tree_that_was_given_is_as_it_was_after_a_failure() -> None:
    tree = ManifestTree.of(MANIFESTS)
    spec = entry("{name: worker}") + "- manifestSelector: {glob: none}\n  patches: []\n"
    written = documents_of(customization_text("site", spec)).customizations[ObjectKey("default", "site")]
    with pytest.raises(CustomizationFailed):
        customize(tree, [compile_customization(written)], rules())
    assert tree.patched_names == ()
    assert tree.content(WORKER) == MANIFESTS[WORKER]


def test_value_that_is_there_already_is_no_failure_but_told() -> None:
    outcome = applied(entry("{name: worker}", "[{op: replace, path: /spec/replicas, valueJSON: '2'}]"))
    assert "changes nothing" in outcome.warnings[0]
    assert WORKER in outcome.warnings[0]


def test_known_secret_is_in_no_failure() -> None:
    secret = "do-not-show-this-1"
    pod = {"manifests/pod.yaml": b"apiVersion: v1\nkind: Pod\nspec: {containers: []}\n"}
    found = failure(patch("strategic", f"spec: {{containers: [{{{secret}: 1}}]}}", "{kind: Pod}"), dict(pod), (secret,))
    assert secret not in str(found)
