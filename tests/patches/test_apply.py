"""Strict runs refuse what the patches show by themselves; compat runs do not even look."""

import pytest

from garboard.documents import Json
from garboard.model import DEFAULT_VERSION
from garboard.patches import (
    Patch,
    PatchChecks,
    PatchRefused,
    PatchSubject,
    PatchType,
    SourceText,
    apply_patches,
    find_target,
    refuse_errors,
)
from garboard.schema import load_schema

SCHEMA = load_schema(DEFAULT_VERSION)
POD = PatchSubject(SCHEMA.find_kind("Pod").type)


def pod() -> Json:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "etcd"}, "spec": {"nodeName": "a"}}


def patch(text: str, type_: PatchType = PatchType.STRATEGIC) -> Patch:
    return Patch.from_yaml(SourceText("patch.yaml", text), type_)


def test_traced_run_carries_static_findings() -> None:
    applied = apply_patches(pod(), [patch("spec: {nodeNam: b}")], POD, is_traced=True, checks=PatchChecks(SCHEMA))
    assert [(each.error_class, each.where) for each in applied.findings] == [("unknown-field", "patch.yaml:1:8")]


def test_target_is_checked_as_well() -> None:
    etcd = PatchSubject.of_target(find_target("etcd", DEFAULT_VERSION), SCHEMA)
    wrong = patch("spec: {nodeNam: b}")
    applied = apply_patches(pod(), [wrong], etcd, is_traced=True, checks=PatchChecks(SCHEMA))
    assert [each.error_class for each in applied.findings] == ["unknown-field"]


def test_untraced_run_has_no_findings() -> None:
    applied = apply_patches(pod(), [patch("spec: {nodeNam: b}")], POD, is_traced=False, checks=PatchChecks(SCHEMA))
    assert applied.findings == ()


def test_misspelling_is_told_rather_than_the_failure_it_leads_to() -> None:
    wrong = patch("- {op: add, path: /spek/nodeName, value: b}", PatchType.JSON)
    with pytest.raises(PatchRefused) as refused:
        apply_patches(pod(), [wrong], POD, is_traced=True, checks=PatchChecks(SCHEMA))
    assert (refused.value.error_class, refused.value.hint) == ("unknown-field", "did you mean 'spec'?")


def test_patch_that_everybody_refuses_is_not_advised_to_leave_strict_mode() -> None:
    wrong = patch("- {op: remove, path: /spec/containers/0/nope}", PatchType.JSON)
    with pytest.raises(PatchRefused) as refused:
        apply_patches(pod(), [wrong], POD, is_traced=True, checks=PatchChecks(SCHEMA))
    assert refused.value.hint == "correct the patch; kubeadm and kubectl refuse it too"


def test_finding_that_many_objects_share_is_refused_once() -> None:
    checks = PatchChecks(SCHEMA)
    wrong = patch("spec: {nodeNam: b}")
    findings = [
        finding
        for _ in range(3)
        for finding in apply_patches(pod(), [wrong], POD, is_traced=True, checks=checks).findings
    ]
    with pytest.raises(PatchRefused) as refused:
        refuse_errors(findings)
    assert len(refused.value.findings) == 1
