"""Which images are pulled, and how."""

from dataclasses import replace

import pytest

from garboard.engine import Note, PullImage, Step
from garboard.model.cluster import ClusterConfiguration
from garboard.model.images import control_plane_images
from garboard.model.node import NodeRegistration
from garboard.phases.preflight import plan_images
from tests.phases.preflight.exams import MemoryExam

CLUSTER = ClusterConfiguration(kubernetes_version="v1.37.1")
IMAGES = control_plane_images(CLUSTER)
NODE = NodeRegistration(name="node-1", cri_socket="unix:///x")


def pulls(node: NodeRegistration, exam: MemoryExam, *ignored: str) -> list[PullImage]:
    planned = plan_images(CLUSTER, node, exam, frozenset(ignored))
    return [each.action for each in planned if isinstance(each, Step) and isinstance(each.action, PullImage)]


def test_only_what_is_missing_is_pulled_one_after_the_other() -> None:
    exam = MemoryExam(images=set(IMAGES[1:-1]))
    assert pulls(NODE, exam) == [PullImage(image=IMAGES[0]), PullImage(image=IMAGES[-1])]
    assert pulls(NODE, MemoryExam(images=set(IMAGES))) == []


def test_always_pulls_what_is_there() -> None:
    found = pulls(replace(NODE, image_pull_policy="Always"), MemoryExam(images=set(IMAGES)))
    assert [each.image for each in found] == list(IMAGES)
    assert all(each.is_always for each in found)


def test_never_pulls_nothing_and_asks_nobody() -> None:
    planned = list(plan_images(CLUSTER, replace(NODE, image_pull_policy="Never"), MemoryExam(), frozenset()))
    assert planned == [Note("imagePullPolicy is Never: no image is pulled")]


def test_side_by_side_is_one_step() -> None:
    (found,) = pulls(replace(NODE, image_pull_serial=False), MemoryExam())
    assert (found.image, *found.beside) == IMAGES


@pytest.mark.parametrize("ignored", ["imagepull", "all"])
def test_ignored_failure_does_not_stop_the_plan(ignored: str) -> None:
    assert not any(each.is_needed for each in pulls(NODE, MemoryExam(), ignored))
