"""What the checks of a workflow do to its plan, and which images it pulls.

A blocked plan can be shown, and is refused where it would be carried out.
"""

from dataclasses import replace

import pytest

from garboard.engine import Note, PullImage, Step, plan_as_text
from garboard.errors import NotReady
from garboard.model.cluster import ClusterConfiguration, control_plane_images
from garboard.model.node import NodeRegistration
from garboard.phases import plan_workflow, select
from garboard.phases.init import INIT
from garboard.phases.join import JOIN
from garboard.phases.preflight import plan_images
from garboard.phases.preflight.plan import PreflightFailed, PreflightFinding
from tests.support.phases.join.clusters import JOIN as JOIN_TEXT
from tests.support.phases.join.clusters import MemoryCluster, context_of
from tests.support.phases.machines import MemoryMachine, context_on
from tests.support.phases.preflight.inspectors import MemoryInspector

CLUSTER = ClusterConfiguration(kubernetes_version="v1.37.1")
IMAGES = control_plane_images(CLUSTER)
NODE = NodeRegistration(name="node-1", cri_socket="unix:///x")
UNFIT = {"cpus": 1, "taken": {("", 6443)}, "names": set[str]()}
PREFLIGHT = select(INIT, only="preflight")
UNSHARED = JOIN_TEXT + "controlPlane: {}\n"


def unfit() -> MemoryInspector:
    """Return a machine with two errors and a warning."""
    return MemoryInspector(**UNFIT)  # type: ignore[arg-type]


def test_refusal_tells_everything_at_once_and_how_to_go_on() -> None:
    with pytest.raises(PreflightFailed) as failed:
        plan_workflow(select(INIT), context_on(MemoryMachine(), inspector=unfit()))
    assert (failed.value.exit_code, failed.value.error_class) == (4, "preflight")
    head, cpu, port = failed.value.message.splitlines()
    assert head == "this machine is not ready; nothing has been changed:"
    assert cpu.startswith("  [NumCPU] ")
    assert port.startswith("  [Port-6443] ")
    assert port.endswith(" (phase preflight)")
    assert failed.value.hint is not None
    assert failed.value.hint.endswith("--ignore-preflight-errors=NumCPU,Port-6443")


def test_plan_that_is_only_shown_has_errors_among_its_warnings_and_pulls_nothing() -> None:
    plan = plan_workflow(PREFLIGHT, context_on(MemoryMachine(), inspector=unfit()), refuses_blocked=False)
    assert [note.text.partition("]")[0] for note in plan.warnings] == ["[NumCPU", "[Port-6443", "[Hostname"]
    assert plan.steps == ()
    assert "[preflight] warning: [NumCPU] " in plan_as_text(plan)


def test_without_root_nothing_else_is_told() -> None:
    inspector = MemoryInspector(uid=1000, **UNFIT)  # type: ignore[arg-type]
    plan = plan_workflow(PREFLIGHT, context_on(MemoryMachine(), inspector=inspector), refuses_blocked=False)
    assert [note.text.partition("]")[0] for note in plan.notes] == ["[IsPrivilegedUser"]


def test_ignored_errors_block_nothing() -> None:
    context = context_on(MemoryMachine(), inspector=unfit(), ignored_checks=frozenset({"all"}))
    plan = plan_workflow(PREFLIGHT, context)
    assert any(isinstance(step.action, PullImage) for step in plan.steps)


def test_blocked_join_tells_the_machine_before_the_cluster() -> None:
    inspector = MemoryInspector(cpus=1, names={"node-2"})
    context = context_of(MemoryCluster.made(), MemoryMachine(), UNSHARED, inspector=inspector)
    with pytest.raises(PreflightFailed, match=r"\[NumCPU\]"):
        plan_workflow(select(JOIN), context)
    assert inspector.images_asked == 0, "nobody asks a runtime that may be what is missing"
    with pytest.raises(NotReady, match="another control plane"):
        plan_workflow(select(JOIN), context, refuses_blocked=False)


def test_name_of_a_check_that_failed_twice_is_given_once() -> None:
    error = PreflightFailed([PreflightFinding("CRI", text) for text in ("gone", "twice")])
    assert "\n  [CRI] gone\n  [CRI] twice" in error.message
    assert (error.hint or "").endswith("--ignore-preflight-errors=CRI")


def pulls(node: NodeRegistration, inspector: MemoryInspector, *ignored: str) -> list[PullImage]:
    planned = plan_images(CLUSTER, node, inspector, frozenset(ignored))
    return [each.action for each in planned if isinstance(each, Step) and isinstance(each.action, PullImage)]


def test_only_what_is_missing_is_pulled_one_after_the_other() -> None:
    inspector = MemoryInspector(images=set(IMAGES[1:-1]))
    assert pulls(NODE, inspector) == [PullImage(image=IMAGES[0]), PullImage(image=IMAGES[-1])]
    assert pulls(NODE, MemoryInspector(images=set(IMAGES))) == []


def test_always_pulls_what_is_there() -> None:
    found = pulls(replace(NODE, image_pull_policy="Always"), MemoryInspector(images=set(IMAGES)))
    assert [each.image for each in found] == list(IMAGES)
    assert all(each.is_always for each in found)


def test_never_pulls_nothing_and_asks_nobody() -> None:
    planned = list(plan_images(CLUSTER, replace(NODE, image_pull_policy="Never"), MemoryInspector(), frozenset()))
    assert planned == [Note("imagePullPolicy is Never: no image is pulled")]


def test_side_by_side_is_one_step() -> None:
    (found,) = pulls(replace(NODE, image_pull_serial=False), MemoryInspector())
    assert (found.image, *found.beside) == IMAGES


@pytest.mark.parametrize("ignored", ["imagepull", "all"])
def test_ignored_failure_does_not_stop_the_plan(ignored: str) -> None:
    assert not any(each.is_needed for each in pulls(NODE, MemoryInspector(), ignored))
