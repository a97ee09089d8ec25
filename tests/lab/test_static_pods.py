"""Static pods of real nodes replaced: quickly, one outage, and old or new whatever happens on the way."""

import pytest

from tests.support.phases.static_pods import swap_of_all
from tools.harness.faults import ANSWERS_AND_ENDS, FOLDER, MOUNTED, PATH
from tools.harness.killing import KillPoint
from tools.harness.lab import LabUnderTest, put
from tools.harness.swapping import COMPONENTS, Swapping

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]
STEPS = len(swap_of_all().steps)


@pytest.fixture
def node(one_node: LabUnderTest, garboard_in_node: tuple[str, ...]) -> Swapping:
    return Swapping(one_node, garboard_in_node)


def succeeded(done: object) -> None:
    assert done.returncode == 0, done.stderr  # type: ignore[attr-defined]


def test_all_pods_are_replaced_and_the_node_is_well(node: Swapping) -> None:
    former = node.containers()
    succeeded(node.swap("first"))
    assert node.notes() == dict.fromkeys(COMPONENTS, "first")
    assert not {*former.values()} & {*node.containers().values()}
    assert node.is_ready()


def test_scheduler_alone_leaves_the_others_running(node: Swapping) -> None:
    former = node.containers()
    succeeded(node.swap("alone", ["kube-scheduler"]))
    found = node.containers()
    assert [name for name in COMPONENTS if found[name] != former[name]] == ["kube-scheduler"]


@pytest.mark.sampled(9)
@pytest.mark.parametrize("then", ["resume", "undo"])
@pytest.mark.parametrize("moment", ["begin", "end"])
@pytest.mark.parametrize("index", range(STEPS))
def test_swap_that_was_killed_is_carried_to_its_end_or_taken_back(
    node: Swapping, index: int, moment: str, then: str
) -> None:
    before, former = node.manifests(), node.notes()
    note = f"k{index}{moment}{then}"
    killed = node.swap(note, killed_at=KillPoint(moment, index))  # type: ignore[arg-type]
    assert killed.returncode != 0
    succeeded(node.run(then))
    assert node.is_ready()
    if then == "resume":
        assert node.notes() == dict.fromkeys(COMPONENTS, note)
    else:
        assert node.manifests() == before
        assert node.notes() == former


def test_component_that_cannot_start_is_taken_back_with_the_reason(node: Swapping) -> None:
    before = node.manifests()
    failed = node.swap("broken", ["kube-scheduler"], flag="--no-such-flag", undoes=True, within_s=20)
    assert failed.returncode == 1
    assert "kube-scheduler to run steadily" in failed.stderr
    assert "unknown flag: --no-such-flag" in failed.stderr
    assert "what the run had done was undone" in failed.stderr
    assert node.manifests() == before
    assert node.is_ready()


def test_component_that_answers_its_probes_and_then_ends_is_not_settled(node: Swapping) -> None:
    before = node.manifests()
    node.lab.exec("cp1", "mkdir", "-p", FOLDER)
    put(node.lab, "cp1", f"{FOLDER}/kube-scheduler", ANSWERS_AND_ENDS)
    node.lab.exec("cp1", "chmod", "755", f"{FOLDER}/kube-scheduler")
    failed = node.swap("exits", ["kube-scheduler"], edits=exiting(), undoes=True, within_s=40)
    assert failed.returncode == 1
    assert "kube-scheduler to run steadily" in failed.stderr
    answers = node.lab.exec("cp1", "cat", f"{FOLDER}/answers").stdout
    assert answers.startswith("ok"), "its own probe was answered before it ended"
    assert node.manifests() == before
    assert node.is_ready()


def exiting() -> list[tuple[str, str]]:
    """Return the edits of a manifest after which the script is what its command runs."""
    mounts = "".join(f"    - {{mountPath: {inside}, name: f{n}}}\n" for n, inside in enumerate(MOUNTED.values()))
    volumes = "".join(f"  - {{name: f{n}, hostPath: {{path: {path}}}}}\n" for n, path in enumerate(MOUNTED))
    env = f"    env:\n    - {{name: PATH, value: '{PATH}'}}\n"
    return [
        ("    volumeMounts:\n", f"{env}    volumeMounts:\n{mounts}"),
        ("  volumes:\n", f"  volumes:\n{volumes}"),
    ]


def test_api_server_that_lives_and_is_not_ready_is_taken_back(node: Swapping) -> None:
    before = node.manifests()
    failed = node.swap("unready", ["kube-apiserver"], flag="--etcd-readycheck-timeout=1ns", undoes=True, within_s=30)
    assert failed.returncode == 1
    reason = failed.stderr.partition("[undo] ")[2].partition("\n")[0]
    assert "this node's API server to be ready" in reason, "it lives, so that no other gate was closed"
    assert "[-]etcd-readiness failed" in failed.stderr
    assert node.manifests() == before
    assert node.is_ready()
