"""Asking for a field: what is not there is told, what is misspelt is refused with the name that was meant."""

import pytest

from garboard.documents import read_yaml
from garboard.errors import BadDocument
from garboard.model import DEFAULT_VERSION
from garboard.patches import (
    History,
    Origins,
    Patch,
    PatchSubject,
    PatchType,
    SourceText,
    TextBase,
    apply_patches,
    asked_history,
)
from garboard.patches.json_values import ABSENT
from garboard.schema import load_schema

SCHEMA = load_schema(DEFAULT_VERSION)
BASE = """\
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {tier: a, team: b}
spec:
  containers:
  - name: web
    image: web:1
    command: [kube-scheduler, --profiling=true]
"""


def ask(field: str, patch: str = "metadata: {labels: {team: null}}", *, is_typed: bool = True) -> History:
    subject = PatchSubject(SCHEMA.find_kind("Pod").type if is_typed else None)
    run = [Patch.from_yaml(SourceText("p.yaml", patch), PatchType.MERGE)]
    applied = apply_patches(read_yaml(BASE, source="base.yaml"), run, subject, is_traced=True)
    return asked_history(field, Origins(applied, TextBase(SourceText("base.yaml", BASE))), SCHEMA)


@pytest.mark.parametrize(
    ("field", "meant"),
    [
        pytest.param("metadata.annotatons", "annotations", id="a field of the type"),
        pytest.param("spec.securityContext.runAsUsr", "runAsUser", id="below a field that is not set"),
        pytest.param("/spec/containers/0/imag", "image", id="in a JSON pointer"),
        pytest.param("metadata.labels.teir", "tier", id="a key of a map"),
        pytest.param("spec.containers[wbe].image", "web", id="an element by name"),
        pytest.param("spec.containers[web].command[--profling]", "--profiling", id="a flag that is there"),
        pytest.param("spec.containers[web].command[--leader-elct]", "--leader-elect", id="a flag of the program"),
    ],
)
def test_misspelt_field_is_refused_with_what_was_meant(field: str, meant: str) -> None:
    with pytest.raises(BadDocument) as refused:
        ask(field)
    assert refused.value.error_class == "unknown-field"
    assert refused.value.hint == f"did you mean {meant!r}?"


@pytest.mark.parametrize(
    "field",
    [
        pytest.param("spec.nodeName", id="a field of the type that is not set"),
        pytest.param("spec.securityContext.runAsUser", id="two of them"),
        pytest.param("metadata.labels.elsewhere", id="a key unlike those that are there"),
        pytest.param("spec.volumes[audit]", id="an element of a list that is not there"),
        pytest.param("spec.containers[7].image", id="an index past the end"),
        pytest.param("spec.containers[web].command[--leader-elect]", id="a flag of the program that is not set"),
        pytest.param("metadata.labels.team", id="what a patch removed"),
    ],
)
def test_field_that_is_not_there_is_no_mistake(field: str) -> None:
    assert ask(field).value is ABSENT


def test_without_a_type_only_near_names_are_refused() -> None:
    assert ask("spec.anything.at.all", is_typed=False).value is ABSENT
    with pytest.raises(BadDocument, match="no 'spce' in the document"):
        ask("spce", is_typed=False)


def test_unknown_field_unlike_any_other_lists_the_fields() -> None:
    with pytest.raises(BadDocument) as refused:
        ask("spec.containers[web].resources.zzzzzz")
    assert refused.value.hint == "the fields are claims, limits, requests"


@pytest.mark.parametrize("field", ["spec.containers[apiserver].image", "spec.containers[name=apiserver]"])
def test_element_that_a_list_does_not_have_is_refused_with_those_that_it_has(field: str) -> None:
    with pytest.raises(BadDocument, match=r"there is no 'apiserver' in spec\.containers") as refused:
        ask(field)
    assert refused.value.hint == "its elements are web"
