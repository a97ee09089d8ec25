"""Which capability a test belongs to."""

import re
from pathlib import Path

import pytest

from tools.harness.capabilities import BUDGET_MINUTES, capability_of, owned_paths

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("test", "capability"),
    [
        pytest.param("tests/patches/test_merge.py::test_one[a/b::c]", "patches", id="a folder"),
        pytest.param("tests/cli/patch/test_lint.py", "patches", id="a folder in another"),
        pytest.param("tests/lab/test_bare.py::test_two", "lab", id="the lab"),
        pytest.param("tests/lab/test_tunnel.py::test_three", "tunnel", id="a file that is not its folder's"),
        pytest.param("tests/lab/test_static_pods.py::test_four", "engine", id="kills of a swap"),
        pytest.param("tests/test_retry.py", "shared", id="no folder"),
        pytest.param("tests/model/test_go.py", "shared", id="a folder of nobody"),
    ],
)
def test_path_tells_the_capability(test: str, capability: str) -> None:
    assert capability_of(test) == capability


def test_every_path_of_the_table_is_there() -> None:
    assert [path for path in owned_paths() if not (ROOT / path).exists()] == []


def test_what_is_left_to_verify_belongs_to_a_capability_that_a_change_touches() -> None:
    left = re.compile(r"^@pytest\.mark\.(verify|sampled)\b", re.MULTILINE)
    files = [path.relative_to(ROOT) for path in (ROOT / "tests").rglob("test_*.py") if left.search(path.read_text())]
    assert len(files) > 20
    tiers = Path("tests/tools/test_tiers.py")  # has these marks in the text of a sample
    assert [path for path in files if path != tiers and capability_of(str(path)) == "shared"] == []


def test_every_capability_has_tests_and_the_budgets_add_up() -> None:
    assert {capability_of(path) for path in (*owned_paths(), "tests/test_retry.py")} == set(BUDGET_MINUTES)
    assert sum(BUDGET_MINUTES.values()) == 64.5
