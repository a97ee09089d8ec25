"""Nothing is left behind: full listings of the kernel's state before and after, on a machine where nobody else is."""

import os
import random
from typing import cast

import pytest

from tests.lab.alone import STAGES, run_alone
from tests.lab.conftest import Bare

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]


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
    assert answer["pruned"] == ["lab"]
    assert answer["left"] == {}


def test_prune_clears_away_what_a_killed_up_leaves_in_each_of_its_stages() -> None:
    seed = os.environ.get("GARBOARD_TEST_SEED") or str(random.SystemRandom().randrange(10**6))
    os.write(2, f"\nGARBOARD_TEST_SEED={seed}\n".encode())
    answer = run_alone("up-killed", seed)
    assert answer["left"] == {stage: {} for stage in [*STAGES, "taken over"]}, f"GARBOARD_TEST_SEED={seed}"
