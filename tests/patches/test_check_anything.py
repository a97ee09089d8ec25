"""No patch whatever makes the checks fail: they return findings."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from garboard.documents import Json, write_json
from garboard.errors import GarboardError
from garboard.model import DEFAULT_VERSION
from garboard.patches import (
    Patch,
    PatchChecks,
    PatchSubject,
    PatchType,
    SourceText,
    find_target,
    findings_as_json,
    findings_as_sarif,
    findings_as_text,
    lint_patches,
)
from garboard.schema import load_schema

SCHEMA = load_schema(DEFAULT_VERSION)
NAMES = st.sampled_from(
    [
        "apiVersion", "kind", "metadata", "name", "labels", "finalizers", "spec", "containers", "command", "args",
        "env",
        "ports", "containerPort", "volumes", "tolerations", "securityContext", "priority", "featureGates", "profiling",
        "op", "path", "from", "value", "$patch", "$retainKeys", "$setElementOrder", "$setElementOrder/containers",
        "$deleteFromPrimitiveList", "$deleteFromPrimitiveList/args", "-", "0", "x",
    ]
)  # fmt: skip
SCALARS = (
    st.sampled_from(
        [None, True, 0, 1.5, "etcd", "--v=2", "--feature-gates=A", "replace", "delete", "add", "/spec/containers/0"]
    )
    | st.text(max_size=3)
    | NAMES
    | st.lists(NAMES, max_size=5).map(lambda names: "/" + "/".join(names))
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=25
)
ORIGINALS: tuple[Json, ...] = (
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "etcd", "labels": {"x": "y"}},
        "spec": {"containers": [{"name": "etcd", "command": ["etcd", "--v=2"]}], "tolerations": [], "priority": 1},
    },
)


@given(
    documents=st.lists(st.tuples(st.sampled_from(PatchType), VALUES), min_size=1, max_size=3),
    target=st.sampled_from(["etcd", "kubeletconfiguration", "kubeproxydaemonset"]),
    is_tried=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_any_document_can_be_linted(documents: list[tuple[PatchType, Json]], target: str, is_tried: bool) -> None:
    patches = [
        Patch(SourceText(f"{number}.yaml", write_json(value)), type_, value)
        for number, (type_, value) in enumerate(documents)
    ]
    subject = PatchSubject.of_target(find_target(target, DEFAULT_VERSION), SCHEMA)
    findings = lint_patches(patches, subject, PatchChecks(SCHEMA), ORIGINALS if is_tried else ())
    for finding in findings:
        assert finding.position.line >= 1
        assert finding.message
    findings_as_text(findings)
    findings_as_json(findings, DEFAULT_VERSION)
    findings_as_sarif(findings, tool_version="1")


@given(text=st.text(max_size=60), type_=st.sampled_from(PatchType))
@settings(max_examples=100, deadline=None)
def test_any_text_that_reads_as_a_document_can_be_linted(text: str, type_: PatchType) -> None:
    try:
        patch = Patch.from_yaml(SourceText("patch.yaml", text), type_)
    except GarboardError:
        return
    for target in ("kube-apiserver", "corednsdeployment"):
        subject = PatchSubject.of_target(find_target(target, DEFAULT_VERSION), SCHEMA)
        lint_patches([patch], subject, PatchChecks(SCHEMA))
