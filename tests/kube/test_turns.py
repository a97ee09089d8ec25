"""Turns of several processes at a Lease of a real API server."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from garboard.engine import DeleteObject, EndTurn, TakeTurn
from garboard.kube import Access, KubeClient, LeaseTurns, TurnFailed
from garboard.kube.turns import DURATION_S
from garboard.lab.binaries import Binaries
from garboard.model import SUPPORTED_VERSIONS
from tests.kube.one_turn import PLACE
from tests.kube.real_server import real_api_server

pytestmark = pytest.mark.real


@pytest.fixture(scope="module", params=SUPPORTED_VERSIONS, ids=str)
def access(
    request: pytest.FixtureRequest, binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Access]:
    with real_api_server(binaries, str(request.param), tmp_path_factory.mktemp("server")) as running:
        yield running


class Process:
    """One that takes a turn, and the lines that it has written so far."""

    def __init__(self, access: Access, holder: str, seconds: float, timeout_s: float = 60.0) -> None:
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.kube.one_turn", str(access.port), holder, str(seconds), str(timeout_s)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=Path(__file__).parents[2],
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line.strip())

    def at(self, word: str) -> float:
        found = self.line(word)
        assert found, self.lines
        return float(found.split()[1])

    def line(self, word: str) -> str | None:
        return next((line for line in self.lines if line.startswith(word)), None)

    def wait_for(self, word: str, timeout_s: float = 20.0) -> None:
        give_up_at = time.monotonic() + timeout_s
        while not any(word in line for line in self.lines):
            assert time.monotonic() < give_up_at, self.lines
            time.sleep(0.02)

    def wait(self, timeout_s: float = 60.0) -> int:
        status = self.process.wait(timeout_s)
        self._reader.join(5)
        return status

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)


@pytest.fixture
def start(access: Access) -> Iterator[Callable[..., Process]]:
    started: list[Process] = []

    def starting(*arguments: object) -> Process:
        started.append(Process(access, *arguments))  # type: ignore[arg-type]
        return started[-1]

    yield starting
    for each in started:
        each.kill()
    with KubeClient(access) as client:
        name, namespace = PLACE["name"], PLACE["namespace"]
        client.delete(DeleteObject(api_version="coordination.k8s.io/v1", kind="Lease", name=name, namespace=namespace))


def lease(access: Access) -> dict[str, object] | None:
    with KubeClient(access) as client:
        return client.find("Lease", "kube-system", PLACE["name"])  # type: ignore[return-value]


def test_one_at_a_time_and_the_others_say_for_whom_they_wait(access: Access, start: Callable[..., Process]) -> None:
    first = start("cp-1", 4.0)
    first.wait_for("took")
    others = [start(f"cp-{number}", 1.0) for number in (2, 3)]
    for each in others:
        each.wait_for("it is the turn of cp-1")
    assert [each.wait() for each in (first, *others)] == [0, 0, 0]
    turns = sorted((each.at("took"), each.at("ended")) for each in (first, *others))
    assert all(before[1] <= after[0] for before, after in pairwise(turns))
    assert turns[1][0] - turns[0][1] < 2.0
    assert all(len(each.lines) <= 4 for each in others), "told once for each holder"
    assert lease(access) is None


def test_holder_that_lives_keeps_its_turn_beyond_the_duration(access: Access, start: Callable[..., Process]) -> None:
    first = start("cp-1", DURATION_S + 6)
    first.wait_for("took")
    second = start("cp-2", 0.1)
    assert (first.wait(), second.wait()) == (0, 0)
    assert second.at("took") > first.at("ended")


def test_killed_holder_blocks_nobody_for_long_and_leaves_its_peer_url(
    access: Access, start: Callable[..., Process]
) -> None:
    first = start("cp-1", 600.0)
    first.wait_for("took")
    others = [start(f"cp-{number}", 0.5) for number in (2, 3)]
    others[0].wait_for("it is the turn of cp-1")
    killed_at = time.monotonic()
    first.kill()
    assert [each.wait() for each in others] == [0, 0]
    taken = sorted(others, key=lambda each: each.at("took"))
    assert taken[0].at("took") - killed_at < DURATION_S + 5
    assert taken[0].line("took").split("left=")[1] == "https://cp-1:2380"  # type: ignore[union-attr]
    assert lease(access) is None


def test_what_two_dead_holders_left_is_handed_on(access: Access, start: Callable[..., Process]) -> None:
    for name in ("cp-1", "cp-2"):
        holder = start(name, 600.0)
        holder.wait_for("took", DURATION_S + 10)
        holder.kill()
    third = start("cp-3", 0.1)
    assert third.wait() == 0
    assert third.line("took").split("left=")[1] == "https://cp-1:2380,https://cp-2:2380"  # type: ignore[union-attr]


def test_node_that_comes_again_has_its_turn_at_once(access: Access, start: Callable[..., Process]) -> None:
    first = start("cp-1", 600.0)
    first.wait_for("took")
    first.kill()
    again_at = time.monotonic()
    again = start("cp-1", 0.1)
    assert again.wait() == 0
    assert again.at("took") - again_at < 5
    assert again.line("took").split("left=")[1] == ""  # type: ignore[union-attr]


def test_waiting_ends_with_the_holder_named(access: Access, start: Callable[..., Process]) -> None:
    first = start("cp-1", 600.0)
    first.wait_for("took")
    turns = LeaseTurns(lambda: KubeClient(access), lambda _line: None)
    with pytest.raises(TurnFailed, match="held by cp-1") as caught:
        turns.take(TakeTurn(**PLACE, holder="cp-2", timeout_s=1.0))
    assert "kubectl -n kube-system delete lease garboard-etcd" in (caught.value.hint or "")


def test_ending_a_turn_of_another_leaves_it_alone(access: Access, start: Callable[..., Process]) -> None:
    first = start("cp-1", 600.0)
    first.wait_for("took")
    LeaseTurns(lambda: KubeClient(access), lambda _line: None).end(EndTurn(**PLACE, holder="cp-2"))
    found = lease(access)
    assert found is not None
    assert found["spec"]["holderIdentity"] == "cp-1"  # type: ignore[index]


def test_run_that_fails_in_between_ends_its_turn(access: Access, start: Callable[..., Process]) -> None:
    with LeaseTurns(lambda: KubeClient(access), lambda _line: None) as turns:
        turns.take(TakeTurn(**PLACE, holder="cp-1", timeout_s=5.0))
        assert lease(access) is not None
    assert lease(access) is None
