"""What is wrong with a patch by itself: for every rule a case that is fine and one that is not, at its place."""

import json
from pathlib import Path
from typing import Any

import pytest

from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.patches import (
    Finding,
    Patch,
    PatchChecks,
    PatchType,
    Severity,
    SourceText,
    check_patch,
    find_target,
)
from garboard.schema import load_schema

VECTORS = Path(__file__).parent.parent / "vectors" / "patches"
V1_36, V1_37 = SUPPORTED_VERSIONS[:2]


def check(
    text: str,
    type_: PatchType = PatchType.STRATEGIC,
    *,
    kind: str = "Pod",
    version: KubernetesVersion = V1_37,
    line: int = 1,
) -> list[Finding]:
    schema = load_schema(version)
    shape = schema.find_kind(kind).type if kind else None
    return check_patch(Patch.from_yaml(SourceText("patch.yaml", text, line), type_), shape, schema)


def places(findings: list[Finding]) -> list[tuple[str, int, int]]:
    return [(each.error_class, each.position.line, each.position.column) for each in findings]


FINE = [
    pytest.param("", id="an empty document"),
    pytest.param("spec: {priority: 5, hostNetwork: true, nodeName: a}", id="scalars of the right types"),
    pytest.param("spec: {priority: 80.0}", id="a float that is whole, which YAML spells as an integer"),
    pytest.param("spec: {priority: null, tolerations: null, securityContext: null}", id="null removes anything"),
    pytest.param("spec: {securityContext: {$patch: delete}}", id="a map is deleted"),
    pytest.param("spec: {tolerations: {$patch: delete}}", id="a list is deleted"),
    pytest.param("spec: {nodeName: {$patch: delete}}", id="a scalar is deleted"),
    pytest.param("spec: {securityContext: {$patch: replace, fsGroup: 1}}", id="a map is replaced"),
    pytest.param("spec: {volumes: [{name: a, $patch: delete}]}", id="an element is deleted"),
    pytest.param("spec: {volumes: [{$patch: replace}, {name: a}, {name: a}]}", id="a list is replaced"),
    pytest.param("spec: {volumes: [{name: a, $patch: delete}, {name: a}]}", id="an element is deleted and added again"),
    pytest.param("spec: {volumes: [{name: a, $retainKeys: [name, emptyDir], emptyDir: {}}]}", id="keys are retained"),
    pytest.param("spec: {$setElementOrder/volumes: [{name: a}]}", id="an order"),
    pytest.param("spec: {containers: [{name: a, $deleteFromPrimitiveList/args: [x]}]}", id="values are deleted"),
    pytest.param(
        "metadata: {$deleteFromPrimitiveList/finalizers: [x], labels: {a: b, $patch: replace}}", id="plain map"
    ),
    pytest.param("spec: {containers: [{name: a, livenessProbe: {httpGet: {port: http}}}]}", id="a port by name"),
    pytest.param("spec: {containers: [{name: a, livenessProbe: {httpGet: {port: 80}}}]}", id="a port by number"),
    pytest.param("spec: {containers: [{name: a, resources: {limits: {cpu: 500m, memory: 1Gi}}}]}", id="quantities"),
    pytest.param("spec: {containers: [{name: a, resources: {limits: {cpu: 2}}}]}", id="a quantity as a number"),
    pytest.param("apiVersion: v1\nkind: Pod\nmetadata: {name: a}", id="the patch names its own kind"),
    pytest.param("spec: {containers: [{name: a, ports: [{containerPort: 1}, {containerPort: 2}]}]}", id="two ports"),
    pytest.param("metadata: {labels: &x {a: b}, annotations: {<<: *x, a: c}}", id="a merged key is overridden"),
]


@pytest.mark.parametrize("text", FINE)
def test_patch_without_fault_has_no_findings(text: str) -> None:
    assert check(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("spec:\n  contaners: []", [("unknown-field", 2, 3)], id="misspelt field"),
        pytest.param("Spec: {}", [("unknown-field", 1, 1)], id="field in another case, which kubeadm would drop"),
        pytest.param("spec: {image: x}", [("unknown-field", 1, 8)], id="field of another type"),
        pytest.param("spec: {contaners: null}", [("unknown-field", 1, 8)], id="removal of a misspelt field"),
        pytest.param("$pach: delete", [("unknown-field", 1, 1)], id="misspelt directive"),
        pytest.param("spec: {priority: high}", [("wrong-type", 1, 8)], id="text for a number"),
        pytest.param("spec: {priority: 1.5}", [("wrong-type", 1, 8)], id="fraction for a whole number"),
        pytest.param("spec: {priority: 3000000000}", [("wrong-type", 1, 8)], id="number out of range"),
        pytest.param("spec: {hostNetwork: 'yes'}", [("wrong-type", 1, 8)], id="text for a boolean"),
        pytest.param("spec: {nodeName: yes}", [("wrong-type", 1, 8)], id="boolean for text"),
        pytest.param("metadata: {labels: {a: 1}}", [("wrong-type", 1, 21)], id="number for the text of a label"),
        pytest.param("spec: {tolerations: {key: a}}", [("wrong-type", 1, 8)], id="map for a list"),
        pytest.param("spec: {securityContext: []}", [("wrong-type", 1, 8)], id="list for a map"),
        pytest.param("metadata: {labels: []}", [("wrong-type", 1, 12)], id="list for a plain map"),
        pytest.param("spec: {tolerations: [x]}", [("wrong-type", 1, 22)], id="text for an element that is a map"),
        pytest.param(
            "spec: {containers: [{name: a, resources: {limits: {cpu: 5x}}}]}", [("wrong-type", 1, 52)], id="quantity"
        ),
        pytest.param(
            "spec: {containers: [{name: a, livenessProbe: {httpGet: {port: true}}}]}",
            [("wrong-type", 1, 57)],
            id="boolean for a number or text",
        ),
        pytest.param("spec:\n  containers:\n  - image: x", [("no-merge-key", 3, 5)], id="container without name"),
        pytest.param(
            "spec: {containers: [{name: a, env: [{value: x}]}]}", [("no-merge-key", 1, 37)], id="variable without name"
        ),
        pytest.param("spec: {volumes: [{$patch: delete}]}", [("no-merge-key", 1, 18)], id="deletion without name"),
        pytest.param("spec: {volumes: [null]}", [("element-types", 1, 18)], id="null in a merged list"),
        pytest.param("spec: {volumes: [a]}", [("wrong-type", 1, 18)], id="text in a merged list of maps"),
        pytest.param("spec: {$patch: merge}", [("bad-directive", 1, 8)], id="$patch: merge"),
        pytest.param("spec: {volumes: [{name: a, $patch: x}]}", [("bad-directive", 1, 28)], id="$patch in an element"),
        pytest.param("spec: {$retainKeys: containers}", [("bad-directive-format", 1, 8)], id="$retainKeys is no list"),
        pytest.param(
            "spec: {volumes: [{name: a, $retainKeys: [name], emptyDir: {}}]}",
            [("bad-directive-format", 1, 49)],
            id="a member that $retainKeys does not list",
        ),
        pytest.param("spec: {$retainKeys: [volums]}", [("unknown-field", 1, 22)], id="$retainKeys names no field"),
        pytest.param("spec: {$setElementOrder/contaners: []}", [("unknown-field", 1, 8)], id="order of no field"),
        pytest.param("spec: {$setElementOrder: []}", [("bad-directive-format", 1, 8)], id="order without a field"),
        pytest.param("spec: {$setElementOrder/nodeName: []}", [("bad-directive-format", 1, 8)], id="order of text"),
        pytest.param("spec: {$setElementOrder/volumes: a}", [("bad-directive-format", 1, 8)], id="order that is text"),
        pytest.param(
            "spec: {$setElementOrder/volumes: [a]}", [("bad-directive-format", 1, 35)], id="order without merge keys"
        ),
        pytest.param(
            "metadata: {$deleteFromPrimitiveList/finalizers: x}", [("bad-directive-format", 1, 12)], id="one value"
        ),
        pytest.param(
            "spec: {$deleteFromPrimitiveList/volumes: []}", [("bad-directive-format", 1, 8)], id="values of a map list"
        ),
        pytest.param(
            "metadata: {labels: {$setElementOrder/a: []}}", [("bad-directive-format", 1, 21)], id="order in labels"
        ),
        pytest.param(
            "spec: {tolerations: [{key: a, $patch: delete}]}", [("leaked-directive", 1, 31)], id="in an atomic list"
        ),
        pytest.param(
            "spec: {securityContext: {$patch: replace, seLinuxOptions: {$patch: delete}}}",
            [("leaked-directive", 1, 60)],
            id="below a replaced map",
        ),
        pytest.param("spec: {nodeName: a}\nspec: {}", [("repeated-key", 2, 1)], id="key that stands twice"),
        pytest.param("kind: Node", [("kind-change", 1, 1)], id="another kind"),
        pytest.param("apiVersion: v2", [("kind-change", 1, 1)], id="another apiVersion"),
        pytest.param("kind: []", [("wrong-type", 1, 1), ("kind-change", 1, 1)], id="a kind that is a list"),
        pytest.param("- spec", [("bad-document", 1, 1)], id="a list for a patch"),
        pytest.param("spec", [("bad-document", 1, 1)], id="text for a patch"),
    ],
)
def test_fault_of_a_strategic_patch_is_found_at_its_place(text: str, expected: list[tuple[str, int, int]]) -> None:
    findings = check(text)
    assert places(findings) == expected
    assert all(finding.severity is Severity.ERROR for finding in findings)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "spec: {containers: [{name: a, ports: [{containerPort: 53, protocol: UDP}, {containerPort: 53}]}]}",
            [("repeated-element", 1, 76)],
            id="one port twice",
        ),
        pytest.param(
            "spec: {securityContext: {$patch: delete, fsGroup: 1}}", [("ignored-content", 1, 42)], id="beside delete"
        ),
        pytest.param(
            "spec: {volumes: [{name: a, $patch: delete, emptyDir: {}}]}",
            [("ignored-content", 1, 44)],
            id="in a deleted element",
        ),
        pytest.param(
            "spec: {volumes: [{name: a, $patch: replace}]}", [("ignored-content", 1, 19)], id="in a replacing element"
        ),
    ],
)
def test_doubtful_part_of_a_strategic_patch_is_warned_of(text: str, expected: list[tuple[str, int, int]]) -> None:
    findings = check(text)
    assert places(findings) == expected
    assert all(finding.severity is Severity.WARNING for finding in findings)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("spec: {containers: [{image: a}], priority: null}", [], id="lists need no merge key"),
        pytest.param("spec: {contaners: []}", [("unknown-field", 1, 8)], id="misspelt field"),
        pytest.param("spec: {priority: x}", [("wrong-type", 1, 8)], id="wrong type"),
        pytest.param("spec: {$patch: delete}", [("leaked-directive", 1, 8)], id="directives are data"),
        pytest.param("metadata: {labels: {$patch: delete}}", [("leaked-directive", 1, 21)], id="also in plain maps"),
        pytest.param("", [("bad-document", 1, 1)], id="nothing, which strategic takes and merge does not"),
        pytest.param("# only a comment", [("bad-document", 1, 1)], id="a comment"),
    ],
)
def test_fault_of_a_merge_patch_is_found_at_its_place(text: str, expected: list[tuple[str, int, int]]) -> None:
    assert places(check(text, PatchType.MERGE)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("- {op: add, path: /metadata/labels/a~1b, value: c}", [], id="a label"),
        pytest.param("- {op: add, path: /spec/containers/0/command/-, value: x}", [], id="an element"),
        pytest.param("- {op: replace, path: /spec/priority, value: 5}", [], id="a scalar"),
        pytest.param("- {op: test, path: /spec/nodeName}", [], id="a test that nothing is there"),
        pytest.param("- {op: move, from: /metadata/labels/a, path: /metadata/labels/b}", [], id="a move"),
        pytest.param("- {op: add, path: /spec/contaners/0, value: {}}", [("unknown-field", 1, 25)], id="misspelt"),
        pytest.param("- {op: copy, from: '/spek', path: /spec/nodeName}", [("unknown-field", 1, 22)], id="in from"),
        pytest.param('- {op: remove, path: "/spec/\\x6eope"}', [("unknown-field", 1, 22)], id="escaped pointer"),
        pytest.param(
            "- {op: add, path: /spec/containers/-, value: {nam: a}}", [("unknown-field", 1, 47)], id="in the value"
        ),
        pytest.param(
            "- {op: add, path: /spec/priority, value: x}", [("wrong-type", 1, 35)], id="value of another type"
        ),
        pytest.param("- {op: test, path: /spec/priority, value: x}", [("wrong-type", 1, 36)], id="test never passes"),
        pytest.param("- {op: add, path: '', value: {}}", [], id="the whole document"),
        pytest.param("- {op: add, path: /spec/containers/a, value: {}}", [("bad-index", 1, 36)], id="no index"),
        pytest.param("- {op: add, path: /spec/containers/01, value: {}}", [("bad-index", 1, 36)], id="leading zero"),
        pytest.param("- {op: add, path: /spec/nodeName/a, value: b}", [("path-missing", 1, 34)], id="below text"),
        pytest.param("- {op: add, path: spec/nodeName, value: b}", [("path-missing", 1, 13)], id="no leading slash"),
        pytest.param("- {op: Add, path: /spec/nodeName, value: b}", [("bad-operation", 1, 4)], id="unknown operation"),
        pytest.param("- {path: /spec/nodeName}", [("bad-operation", 1, 3)], id="no operation"),
        pytest.param("- {op: add, path: /spec/nodeName}", [("bad-operation", 1, 3)], id="add without value"),
        pytest.param("- {op: add, value: b}", [("bad-operation", 1, 3)], id="add without path"),
        pytest.param("- {op: move, path: /spec/nodeName}", [("bad-operation", 1, 3)], id="move without from"),
        pytest.param("- {op: add, path: 5, value: b}", [("bad-operation", 1, 13)], id="path is a number"),
        pytest.param("- null", [("bad-operation", 1, 3)], id="null for an operation"),
        pytest.param("op: add", [("bad-document", 1, 1)], id="a mapping for the list"),
        pytest.param(
            "- {op: add, path: /spec/tolerations/-, value: {$patch: delete}}",
            [("leaked-directive", 1, 48)],
            id="directives are data",
        ),
    ],
)
def test_fault_of_a_json_patch_is_found_at_its_place(text: str, expected: list[tuple[str, int, int]]) -> None:
    assert places(check(text, PatchType.JSON)) == expected


def test_unknown_member_of_an_operation_is_a_warning_because_the_rfc_has_it_ignored() -> None:
    [finding] = check("- {op: remove, path: /spec/nodeName, comment: x}", PatchType.JSON)
    assert (finding.error_class, finding.severity) == ("unknown-field", Severity.WARNING)


def test_place_counts_from_the_start_of_the_file_not_of_the_document() -> None:
    assert places(check("spec:\n  contaners: []", line=10)) == [("unknown-field", 11, 3)]


def test_nearest_name_is_offered() -> None:
    assert [each.hint for each in check("spec: {contaners: []}")] == ["did you mean 'containers'?"]


def test_field_of_another_minor_is_said_to_be_so() -> None:
    text = "spec: {evictionResponders: []}"
    assert check(text, version=V1_37) == []
    [finding] = check(text, version=V1_36)
    assert finding.hint == "Kubernetes 1.37 has it; the patch cannot serve both minors"


def test_without_a_type_only_the_patch_language_is_checked() -> None:
    assert check("spec: {anything: goes}", PatchType.MERGE, kind="") == []
    assert places(check("- {op: nope}", PatchType.JSON, kind="")) == [("bad-operation", 1, 4)]


def test_messages_never_repeat_a_value() -> None:
    for finding in check("spec: {priority: s3cret, hostNetwork: s3cret}"):
        assert "s3cret" not in finding.message + (finding.hint or "")


def test_patch_for_many_objects_is_checked_once() -> None:
    checks = PatchChecks(load_schema(V1_37))
    shape = load_schema(V1_37).find_kind("Pod").type
    patch = Patch.from_yaml(SourceText("patch.yaml", "spec: {contaners: []}"), PatchType.STRATEGIC)
    assert checks.check([patch], shape)[0] is checks.check([patch], shape)[0]


@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
@pytest.mark.parametrize("path", sorted((VECTORS / "kubeadm-base").iterdir()), ids=lambda path: path.stem)
@pytest.mark.parametrize("type_", [PatchType.STRATEGIC, PatchType.MERGE], ids=str)
def test_what_kubeadm_generates_is_fine_as_a_patch(path: Path, version: KubernetesVersion, type_: PatchType) -> None:
    target = find_target(path.stem, version)
    schema = load_schema(version)
    patch = Patch.from_yaml(SourceText(path.name, path.read_text()), type_)
    assert check_patch(patch, target.shape(schema), schema, target.component) == []


# Vectors that the reference accepts although something in them is not as it should be; each has its reason in its text.
SURPRISES = {
    "strategic": {
        "null-scalar-to-map-drops-nulls", "list-duplicate-key-in-patch-collapses",
        "list-crd-style-merge-key-number-kind",
        "list-merge-key-float-in-yaml", "dir-map-delete-ignores-siblings", "dir-map-merge-absent-dropped",
        "dir-list-replace-element-content-ignored", "dir-atomic-list-leaks-directive",
        "dir-atomic-list-absent-strips-directive", "dir-in-new-nested-map-dropped", "prim-delete-scalar-ignored",
        "prim-list-of-lists-atomic-ok", "mismatch-list-to-map", "mismatch-map-to-scalar", "mismatch-int-to-string",
        "mismatch-scalar-to-list", "unknown-scalar-ok", "unknown-new-ok", "unknown-null-delete-ok",
        "case-insensitive-field-lookup", "no-merge-key-absent-list-ok", "patch-duplicate-json-keys",
        "yaml-quoted-octal",
        "list-command-atomic", "kubelet-map-merge",  # a flag and a feature gate that do not exist
        "kubelet-list-directive-leaks", "kubelet-unknown-scalar", "map-value-for-list-field",
    },
    "merge-patch": {
        "delete-absent", "directives-are-plain-keys", "absent-parent-nested-nulls", "null-in-new-list-objects-pruned",
        "null-in-list-over-object-kept", "scalar-to-object-prunes", "list-to-object", "object-to-scalar",
        "scalar-to-empty-object", "patch-duplicate-keys", "patch-yaml-booleans", "numbers-large",
        "array-patch-on-object-library", "deep-delete",
    },
}  # fmt: skip


def accepted(name: str) -> list[Any]:
    loaded = json.loads((VECTORS / f"{name}.json").read_text())["vectors"]
    return [pytest.param(each, id=each["name"]) for each in loaded if "error" not in each]


@pytest.mark.parametrize(
    ("vector", "surprises"),
    [
        pytest.param(*param.values, surprises, id=param.id)
        for name, surprises in SURPRISES.items()
        for param in accepted(name)
    ],
)
def test_accepted_patch_has_findings_only_where_it_surprises(vector: dict[str, Any], surprises: set[str]) -> None:
    type_ = PatchType(vector["type"])
    source = SourceText("patch.yaml", vector.get("patchText") or json.dumps(vector.get("patch")))
    schema = load_schema(V1_36)
    kinds = {kind.name: kind.type for kind in reversed(schema.kinds())}
    shape = kinds.get(vector.get("kind", ""))
    findings = check_patch(Patch.from_kubectl(source, type_), shape, schema)
    assert bool(findings) == (vector["name"] in surprises), findings
