"""Images pulled by a real containerd from a registry that the test serves."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from garboard.cli.workflow.exam import NodeExam
from garboard.cli.workflow.runtime import NodeRuntime, PullFailed
from garboard.cri import CriClient
from garboard.engine import PullImage
from tests.cri.containerd import Registry, Runtime, build_program, containerd

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    folder = tmp_path_factory.mktemp("pull")
    with ExitStack() as stack:
        host = stack.enter_context(Registry(build_program(folder)).serve())
        yield stack.enter_context(containerd(folder, f"{host}/pause:1"))


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def hands(runtime: Runtime, told: list[str]) -> NodeRuntime:
    return NodeRuntime(runtime.socket, told.append, pause_s=0)


def absent(runtime: Runtime) -> str:
    return f"{runtime.image.partition('/')[0]}/absent:1"


def test_missing_image_is_pulled_and_then_seen(runtime: Runtime, hands: NodeRuntime) -> None:
    assert not NodeExam(None).has_image(runtime.socket, runtime.image)
    hands.pull(PullImage(image=runtime.image))
    assert NodeExam(None).has_image(runtime.socket, runtime.image)
    hands.pull(PullImage(image=runtime.image, is_always=True))


def test_runtime_is_seen_as_ready_and_by_what_it_can_tell(runtime: Runtime) -> None:
    seen = NodeExam(None).runtime(runtime.socket)
    assert seen.problem == ""
    with CriClient(runtime.socket) as client:
        assert seen.has_runtime_config is (client.cgroup_driver() is not None)


def test_image_that_the_registry_has_not_got_is_named(runtime: Runtime, hands: NodeRuntime) -> None:
    with pytest.raises(PullFailed, match=r"cannot pull .*/absent:1") as failed:
        hands.pull(PullImage(image=absent(runtime)))
    assert failed.value.error_class == "image-pull"
    assert failed.value.hint is not None
    assert "ImagePull" in failed.value.hint


def test_of_several_side_by_side_only_the_failures_are_told(runtime: Runtime, hands: NodeRuntime) -> None:
    with pytest.raises(PullFailed) as failed:
        hands.pull(PullImage(image=runtime.image, beside=(absent(runtime),)))
    assert runtime.image not in failed.value.message
    assert NodeExam(None).has_image(runtime.socket, runtime.image)


def test_ignored_failure_is_told_and_goes_on(runtime: Runtime, hands: NodeRuntime, told: list[str]) -> None:
    hands.pull(PullImage(image=absent(runtime), is_needed=False))
    assert told[0].startswith("warning: [ImagePull] cannot pull")
