"""Images pulled by a real containerd from a registry that the test serves."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from garboard.cli.main import run
from garboard.cri import CriClient
from garboard.engine import PullImage
from garboard.node.interpreters.runtime import NodeRuntime, PullFailed
from garboard.node.observe import NodeInspector
from tests.support.cri.containerd import Registry, Runtime, build_program, containerd

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
def interpreters(runtime: Runtime, told: list[str]) -> NodeRuntime:
    return NodeRuntime(runtime.socket, told.append, pause_s=0)


def absent(runtime: Runtime) -> str:
    return f"{runtime.image.partition('/')[0]}/absent:1"


def test_missing_image_is_pulled_and_then_seen(runtime: Runtime, interpreters: NodeRuntime) -> None:
    assert not NodeInspector(None).has_image(runtime.socket, runtime.image)
    interpreters.pull(PullImage(image=runtime.image))
    assert NodeInspector(None).has_image(runtime.socket, runtime.image)
    interpreters.pull(PullImage(image=runtime.image, is_always=True))


def test_runtime_is_seen_as_ready_and_by_what_it_can_tell(runtime: Runtime) -> None:
    seen = NodeInspector(None).runtime(runtime.socket)
    assert seen.problem == ""
    with CriClient(runtime.socket) as client:
        assert seen.has_runtime_config is (client.cgroup_driver() is not None)


def test_image_that_the_registry_has_not_got_is_named(runtime: Runtime, interpreters: NodeRuntime) -> None:
    with pytest.raises(PullFailed, match=r"cannot pull .*/absent:1") as failed:
        interpreters.pull(PullImage(image=absent(runtime)))
    assert failed.value.error_class == "image-pull"
    assert failed.value.hint is not None
    assert "ImagePull" in failed.value.hint


def test_of_several_side_by_side_only_the_failures_are_told(runtime: Runtime, interpreters: NodeRuntime) -> None:
    with pytest.raises(PullFailed) as failed:
        interpreters.pull(PullImage(image=runtime.image, beside=(absent(runtime),)))
    assert runtime.image not in failed.value.message
    assert NodeInspector(None).has_image(runtime.socket, runtime.image)


def test_ignored_failure_is_told_and_goes_on(runtime: Runtime, interpreters: NodeRuntime, told: list[str]) -> None:
    interpreters.pull(PullImage(image=absent(runtime), is_needed=False))
    assert told[0].startswith("warning: [ImagePull] cannot pull")


def test_images_are_pulled_one_after_the_other_and_failures_told_at_the_end(
    runtime: Runtime, interpreters: NodeRuntime
) -> None:
    pulled = interpreters.pull_each([absent(runtime), runtime.image])
    assert next(pulled) == runtime.image
    with pytest.raises(PullFailed, match=r"cannot pull .*/absent:1"):
        next(pulled)


def test_command_pulls_what_it_lists(runtime: Runtime, capsys: pytest.CaptureFixture[str]) -> None:
    host = runtime.image.partition("/")[0]
    words = ["--image-repository", f"{host}/none", "--cri-socket", runtime.socket]
    assert run(["config", "images", "pull", *words]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"error[image-pull]: cannot pull {host}/none/kube-apiserver:v1.37.1")
    assert err.count("cannot pull") == 7
