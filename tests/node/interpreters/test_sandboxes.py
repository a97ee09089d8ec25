"""Sandboxes go until none is left, whatever the runtime does meanwhile."""

import pytest

from garboard.cri import RuntimeCallFailed, Sandbox, SandboxMetadata
from garboard.node.interpreters.runtime import NodeRuntime, remove_all
from garboard.rpc import RpcFailed, Status, StatusCode


class Runtime:
    """Knows some sandboxes at once and others a listing later; some do not go before so many tries."""

    def __init__(self, *ids: str, later: tuple[str, ...] = (), stubborn: dict[str, int] | None = None) -> None:
        self._there = list(ids)
        self._later = list(later)
        self._stubborn = dict(stubborn or {})

    def list_sandboxes(self) -> tuple[Sandbox, ...]:
        listed = tuple(Sandbox(id=each, metadata=SandboxMetadata(name=each, namespace="n")) for each in self._there)
        if self._later:
            self._there.append(self._later.pop(0))
        return listed

    def stop_sandbox(self, sandbox_id: str) -> None:
        if self._stubborn.get(sandbox_id, 0):
            self._stubborn[sandbox_id] -= 1
            raise RuntimeCallFailed("/sock", RpcFailed("/x/StopPodSandbox", Status(StatusCode.UNKNOWN, "busy")))

    def remove_sandbox(self, sandbox_id: str) -> None:
        self._there.remove(sandbox_id)


def test_sandbox_that_is_listed_only_later_goes_too() -> None:
    runtime = Runtime("a", later=("b",))
    assert remove_all(runtime, pause_s=0) == []
    assert runtime.list_sandboxes() == ()


def test_sandbox_that_goes_at_the_last_try_is_gone() -> None:
    assert remove_all(Runtime("a", stubborn={"a": 4}), pause_s=0) == []


def test_sandbox_that_stays_is_named_with_the_reason() -> None:
    (left,) = remove_all(Runtime("a", "b", stubborn={"b": 9}), pause_s=0)
    assert left.startswith("n/b: ")
    assert "busy" in left


def test_sandbox_that_always_comes_anew_is_named() -> None:
    assert remove_all(Runtime("a", later=tuple("bcdefgh")), pause_s=0) == ["n/f"]


def test_sandboxes_that_are_to_be_kept_stay() -> None:
    runtime = Runtime("a", "b", "c")
    assert remove_all(runtime, pause_s=0, keeps=("b",)) == []
    assert [each.id for each in runtime.list_sandboxes()] == ["b"]


@pytest.mark.parametrize("socket", ["", "unix:///nowhere/containerd.sock"])
def test_runtime_that_is_not_there_does_not_say_that_there_are_no_pods(socket: str) -> None:
    assert NodeRuntime(socket, lambda _line: None).sandboxes() is None
