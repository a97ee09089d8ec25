"""What `make test` and `make verify` run of the tests that have a day each, in a pytest of its own."""

import pytest

pytest_plugins = ["pytester"]

CONFTEST = """
import pytest
from tests.support.tiers import leave_to_verify

@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    leave_to_verify(items, seed=SEED)
"""
TESTS = """
import pytest

@pytest.fixture(scope="module", params=["old", "new"])
def cluster(request):
    return request.param

@pytest.mark.sampled(2, by="cluster")
@pytest.mark.parametrize("cause", ["a", "b", "c"])
def test_joins(cluster, cause):
    print(f"<join {cluster} {cause}>")

@pytest.mark.sampled(2, by="cluster")
def test_works(cluster):
    print(f"<works {cluster}>")

@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", range(7))
def test_number(number):
    print(f"<number {number}>")

def test_always():
    print("<always>")
"""


def ran(pytester: pytest.Pytester, seed: int, selected: str) -> set[str]:
    """Return what is printed by the tests that run."""
    pytester.makeini("[pytest]\nmarkers =\n    sampled\n    verify\n")
    pytester.makeconftest(CONFTEST.replace("SEED", str(seed)))
    pytester.makepyfile(TESTS)
    lines = pytester.runpytest("-s", "-q", "-p", "no:cacheprovider", "-m", selected).outlines
    return {word for line in lines for word in line.replace(">", "<").split("<")[1::2]}


def test_each_parameter_has_its_day_and_a_file_makes_one_cluster(pytester: pytest.Pytester) -> None:
    days = [ran(pytester, seed, "not verify") for seed in range(3)]
    assert days[0] == {"join old a", "join old b", "join old c", "works old", "number 0", "number 3", "number 6"} | {
        "always"
    }
    assert days[1] >= {"join new a", "join new b", "join new c", "works new", "number 2", "number 5", "always"}
    assert not any("old" in each for each in days[1])
    assert set().union(*days) >= {f"number {number}" for number in range(7)}


def test_verify_runs_all_that_is_sampled(pytester: pytest.Pytester) -> None:
    found = ran(pytester, 0, "verify or sampled")
    assert len(found) == 6 + 2 + 7


def test_nothing_is_in_neither(pytester: pytest.Pytester) -> None:
    assert len(ran(pytester, 5, "not verify") | ran(pytester, 5, "verify")) == 6 + 2 + 7 + 1
