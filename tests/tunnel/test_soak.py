"""One minute of the soak, smaller than `make soak`; bytes, connections and what the server holds are judged alike."""

from pathlib import Path

import pytest

from tools.harness.soak.run import SoakPlan, running_soak

pytestmark = [pytest.mark.real, pytest.mark.alone]  # it keeps every processor busy


@pytest.mark.timeout(600)
def test_no_byte_is_wrong_and_nothing_leaks_while_agents_are_killed(tmp_path: Path, seed: int) -> None:
    plan = SoakPlan(
        seed=seed, minutes=0.5, agents=200, agent_processes=4, connections=2000, client_processes=1, kill_every_s=5,
        stay_s=8, pause_s=2, idle_s=1,
    )  # fmt: skip
    with running_soak(plan, tmp_path, print) as soak:
        result = soak.run()
    print(result.table())
    assert result.problems() == []
    assert result.kills["processes of agents"]
