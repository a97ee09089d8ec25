"""Runs that make files only, on machines of their own: killed at every point, on a full disk, and seen from outside."""

import json
from pathlib import Path

import pytest

from tools.harness.machine import Machine
from tools.harness.scratch import kill_everywhere, run_script, scratch_machine
from tools.harness.scratch_kills import CONFIGURATION, LIVE, SCENARIOS
from tools.harness.trees import Tree, read_tree

pytestmark = pytest.mark.real
SAMPLED = 12  # every twelfth point, so that all of them have their day in a fortnight
INIT = f"garboard init --config /kubeadm.yaml --skip-phases {LIVE}"


every_scenario = pytest.mark.parametrize("scenario", [pytest.param(each.name, id=each.name) for each in SCENARIOS])


@pytest.mark.verify
@pytest.mark.timeout(3600)
@every_scenario
def test_run_killed_at_any_point_is_resumed_or_undone(scenario: str) -> None:
    outcomes = kill_everywhere(scenario)
    assert len(outcomes) > 150
    assert {each["then"] for each in outcomes} >= {"resume", "undo"}
    assert [each for each in outcomes if each["problems"]] == []


@pytest.mark.timeout(600)
@every_scenario
def test_run_killed_at_one_of_todays_points_is_resumed_or_undone(scenario: str, seed: int) -> None:
    outcomes = kill_everywhere(scenario, every=SAMPLED, first=seed % SAMPLED)
    assert len(outcomes) > 150 // SAMPLED - 2
    assert {each["then"] for each in outcomes} >= {"resume", "undo"}
    assert all(each["of"] > len(outcomes) for each in outcomes), "a sample says of how many points it is"
    assert [each for each in outcomes if each["problems"]] == []


def seen(machine: Machine) -> Tree:
    """Return what is on the machine from outside, by its paths there, without garboard's own folder."""
    root = str(machine.root)
    found = read_tree([f"{root}/{name}" for name in ("etc", "var", "run")], without=[f"{root}/var/lib/garboard"])
    return {path.removeprefix(root): entry for path, entry in found.items()}


def test_nothing_outside_the_plan_changes_and_the_plan_is_that_of_the_dry_run() -> None:
    with scratch_machine() as machine:
        machine.put("/kubeadm.yaml", CONFIGURATION.format(more=""))
        shown = run_script(machine, f"{INIT} --dry-run -o json")
        plan = json.loads(shown.stdout)
        before = seen(machine)
        done = run_script(machine, INIT)
        assert done.returncode == 0, done.stderr
        after = seen(machine)
        (journal,) = (machine.root / "var/lib/garboard/runs").glob("*/journal.jsonl")
        journaled = json.loads(journal.read_text().splitlines()[0])["plan"]
    assert journaled == plan
    files, folders = _planned(plan)
    changed = {path for path in before.keys() | after.keys() if not _is_same(before.get(path), after.get(path))}
    assert files <= changed
    # The state of the service is the only thing that a step of the plan changes through somebody else.
    assert changed - files - folders == {"/run/kubelet.state"}


def _planned(plan: dict[str, list[dict[str, dict[str, object]]]]) -> tuple[set[str], set[str]]:
    actions = [step["action"] for step in plan["steps"]]
    files = {str(each["path"]) for each in actions if each["type"] == "write-file"}
    for each in actions:
        issued = each.get("files", [])
        assert isinstance(issued, list)
        files |= {file["path"] for file in issued}
    made = {str(each["path"]) for each in actions if each["type"] == "make-folder"}
    folders = made | {str(parent) for path in files | made for parent in Path(path).parents}
    return files, folders


def _is_same(before: object, after: object) -> bool:
    return before == after


_FULL = f"""
/bin/mkdir -p /etc/kubernetes
/bin/mount -t tmpfs -o size=40k none /etc/kubernetes
{INIT} && exit 1
echo; echo "--- failed"
/usr/bin/find /etc/kubernetes -name '.*' -o -name '*.key' -o -name '*.crt' | /usr/bin/sort
garboard undo
echo "--- undone"
/usr/bin/find /etc/kubernetes
"""


def test_full_disk_is_named_and_leaves_nothing_half_made() -> None:
    with scratch_machine() as machine:
        machine.put("/kubeadm.yaml", CONFIGURATION.format(more=""))
        done = run_script(machine, _FULL)
    assert done.returncode == 0, done.stderr
    assert "No space left on device" in done.stderr
    assert "garboard undo" in done.stderr
    failed, _, undone = done.stdout.partition("--- undone\n")
    names = failed.partition("--- failed\n")[2].split()
    assert [name for name in names if "/." in name] == []
    pairs = {name.rpartition(".")[0] for name in names if not name.endswith("/sa.key")}
    assert pairs
    assert all({f"{pair}.key", f"{pair}.crt"} <= set(names) for pair in pairs)
    assert undone == "/etc/kubernetes\n"
