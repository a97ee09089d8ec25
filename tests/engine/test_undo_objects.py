import pytest

from garboard.documents import Json
from garboard.engine.undo_objects import inverse_patch


@pytest.mark.parametrize(
    ("patch", "found", "inverse"),
    [
        pytest.param({"a": 1}, {"a": 2, "b": 3}, {"a": 2}, id="changed"),
        pytest.param({"a": 1}, {"b": 3}, {"a": None}, id="added"),
        pytest.param({"m": {"x": "1", "y": "2"}}, {"m": {"x": "0"}}, {"m": {"x": "0", "y": None}}, id="nested"),
        pytest.param({"a": None}, {"a": 1}, {"a": 1}, id="removed"),
        pytest.param(
            {"taints": [{"key": "t"}]},
            {"taints": [{"key": "u"}]},
            {"taints": [{"$patch": "replace"}, {"key": "u"}]},
            id="list with merge keys",
        ),
    ],
)
def test_patch_is_taken_back(patch: Json, found: Json, inverse: Json) -> None:
    assert inverse_patch(patch, found) == inverse
