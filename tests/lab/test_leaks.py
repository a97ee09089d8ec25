"""Nothing is left behind: full listings of the kernel's state before and after, on a machine where nobody else is."""

from typing import cast

import pytest

from tests.support.lab.alone import STAGES, run_alone
from tests.support.lab.clusters import Bare

# The machine's limit of inotify instances is in the listings, and labs of other tests change it.
pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.timeout(600)]


@pytest.fixture(autouse=True)
def images_are_there(bare: Bare) -> None:
    """The images are made once on the machine itself; a test's own machine shares them."""
    bare()


def test_a_cluster_leaves_nothing_behind() -> None:
    answer = run_alone("up-and-down")
    # A listing that sees nothing would find nothing left either. (The limit of inotify instances is raised too, unless
    # a lab outside has done so already.)
    assert {"control groups", "namespaces", "processes"} == set(cast(list[str], answer["during"])) - {"sysctls"}
    assert answer["left"] == {}


def test_a_lab_whose_supervisor_was_killed_is_pruned() -> None:
    answer = run_alone("supervisor-killed")
    assert answer["states"] == ["ready", "left over"]
    assert [(each["kind"], each["name"]) for each in cast(list[dict[str, str]], answer["pruned"])] == [("lab", "lab")]
    assert answer["left"] == {}


def test_prune_clears_away_what_an_up_killed_in_one_of_todays_stages_leaves(seed: int) -> None:
    stages = list(STAGES)
    assert_pruned(seed, [stages[(seed + number) % len(stages)] for number in (0, 4)])


@pytest.mark.verify
@pytest.mark.timeout(1200)
def test_prune_clears_away_what_a_killed_up_leaves_in_each_of_its_stages(seed: int) -> None:
    assert_pruned(seed, list(STAGES))


def assert_pruned(seed: int, stages: list[str]) -> None:
    answer = run_alone("up-killed", str(seed), *stages)
    assert answer["left"] == {stage: {} for stage in [*stages, "taken over"]}
