import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.documents import DocumentPath, Json
from garboard.errors import BadUsage
from garboard.patches import FieldPath, show_path

POD: Json = {
    "metadata": {"labels": {"a.b/c": "1"}},
    "spec": {
        "containers": [
            {"name": "x"},
            {"name": "web", "command": ["p", "--profiling=true", "--v=2"], "ports": [{"containerPort": 80}]},
        ]
    },
}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        pytest.param("spec.containers[1].name", ("spec", "containers", 1, "name"), id="index"),
        pytest.param("spec.containers[name=web].name", ("spec", "containers", 1, "name"), id="key and value"),
        pytest.param("spec.containers[web].name", ("spec", "containers", 1, "name"), id="word finds the name"),
        pytest.param("spec.containers[web].command[--profiling]", ("spec", "containers", 1, "command", 1), id="flag"),
        pytest.param("spec.containers[web].command[--v=2]", ("spec", "containers", 1, "command", 2), id="whole word"),
        pytest.param("spec.containers[web].ports[80]", None, id="a number is an index"),
        pytest.param(
            "spec.containers[web].ports[containerPort=80]", ("spec", "containers", 1, "ports", 0), id="number key"
        ),
        pytest.param('metadata.labels["a.b/c"]', ("metadata", "labels", "a.b/c"), id="quoted key"),
        pytest.param("/metadata/labels/a.b~1c", ("metadata", "labels", "a.b/c"), id="pointer"),
        pytest.param("spec.nodeName", None, id="absent"),
        pytest.param("spec.containers[7]", None, id="index out of range"),
    ],
)
def test_path_is_resolved(text: str, path: DocumentPath | None) -> None:
    assert FieldPath.parse(text).resolve(POD) == path


@pytest.mark.parametrize("text", ["a[", "a]", "a..b", "[]", "."])
def test_unreadable_path_is_refused(text: str) -> None:
    with pytest.raises(BadUsage, match="not a field path"):
        FieldPath.parse(text)


def test_shown_path_reads_back() -> None:
    path = ("spec", "containers", 1, "ports", 0, "containerPort")
    shown = show_path(path, POD)
    assert shown == "spec.containers[name=web].ports[containerPort=80].containerPort"
    assert FieldPath.parse(shown).resolve(POD) == path


@given(st.text(max_size=40))
def test_any_text_is_a_path_or_refused(text: str) -> None:
    try:
        FieldPath.parse(text).resolve(POD)
    except BadUsage as refused:
        assert refused.hint  # noqa: PT017
