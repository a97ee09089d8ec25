import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from garboard.engine import AddMember, AwaitGate, PromoteMember, RemoveFile, Step
from garboard.errors import GarboardError
from garboard.host.node_machine import NodeMachine
from garboard.node.interpreters import ProbingWaiter
from garboard.node.interpreters.objects import NodeCluster
from garboard.node.node_view import LiveNodeView
from garboard.node.step_hooks import Boundaries, Interrupted, Interruption, Stopwatch
from garboard.phases.gates import EtcdHealthy, KubeletHealthy


def step(phase: str) -> Step:
    return Step(RemoveFile(path="/a"), "because", phase)


def ticking(*seconds: float) -> Iterator[float]:
    """Give the moments at which steps begin and end that take so long each."""
    now = 0.0
    for each in seconds:
        yield now
        now += each
        yield now


def test_phases_are_told_with_their_parts_when_they_end() -> None:
    told: list[str] = []
    moments = ticking(1.0, 2.0, 0.5)
    watch = Stopwatch(told.append, lambda: next(moments))
    for phase in ("certs/ca", "certs/apiserver", "kubelet-start"):
        with watch.around(step(phase)):
            pass
    assert told == ["[certs] done in 3.00 s"]
    watch.finish()
    assert told[1:] == ["[kubelet-start] done in 0.50 s"]
    assert watch.as_json() == {
        "phases": [
            {"phase": "certs/ca", "seconds": 1.0},
            {"phase": "certs/apiserver", "seconds": 2.0},
            {"phase": "kubelet-start", "seconds": 0.5},
        ],
        "seconds": 3.5,
    }
    assert watch.as_text().splitlines()[-1].split() == ["all", "phases", "3.50", "s"]


def _kill_three_times(number: int, attempts: list[str]) -> None:
    for _ in range(3):
        attempts.append("one more")
        with suppress(GarboardError):
            os.kill(os.getpid(), number)


WAIT = Step(AwaitGate(gate=EtcdHealthy(timeout_s=1)), "because", "wait")


PEER = "https://192.0.2.2:2380"
ADD = Step(AddMember(name="a", peer_url=PEER, outcome="members"), "because", "etcd-join")
PROMOTE = Step(PromoteMember(peer_url=PEER, timeout_s=120.0), "because", "etcd-join")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("waiting", [WAIT, ADD, PROMOTE], ids=["a gate", "for other learners", "for its data"])
def test_signal_ends_a_wait_at_once(number: int, waiting: Step) -> None:
    interruption, left = Interruption(), list[str]()
    with pytest.raises(Interrupted), interruption.watching(), interruption.around(waiting):
        _kill_three_times(number, left)
    assert len(left) == 1


def test_signal_lets_a_step_that_changes_something_end_and_stops_before_the_next() -> None:
    interruption, ended = Interruption(), []
    with interruption.watching():
        with interruption.around(step("files")):
            os.kill(os.getpid(), signal.SIGTERM)
            ended.append("files")
        with pytest.raises(Interrupted, match="interrupted before next"), interruption.around(step("next")):
            ended.append("next")
    assert ended == ["files"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_a_wait_whose_probe_takes_every_failure_for_a_reason_to_look_again(number: int) -> None:
    interruption, probes = Interruption(), list[str]()
    with pytest.raises(Interrupted), interruption.watching(), interruption.around(WAIT):
        _kill_three_times(number, probes)
    assert len(probes) == 1


def test_signal_does_not_end_a_wait_within_a_unit_but_a_second_one_does() -> None:
    interruption, ended = Interruption(), []
    with interruption.watching():
        with interruption.around(WAIT, may_stop=False):
            os.kill(os.getpid(), signal.SIGTERM)
            ended.append("waited")
        with pytest.raises(Interrupted, match="interrupted before next"), interruption.around(step("next")):
            ended.append("next")
    assert ended == ["waited"]
    interruption = Interruption()
    attempts: list[str] = []
    with pytest.raises(Interrupted), interruption.watching(), interruption.around(WAIT, may_stop=False):
        _kill_three_times(signal.SIGTERM, attempts)
    assert len(attempts) == 2


def test_second_signal_leaves_a_step_that_retries() -> None:
    interruption, attempts = Interruption(), list[str]()
    with pytest.raises(Interrupted), interruption.watching(), interruption.around(step("files")):
        _kill_three_times(signal.SIGTERM, attempts)
    assert len(attempts) == 2


def test_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Interruption().watching():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_a_wait_for_a_server_that_hangs(number: int, tmp_path: Path) -> None:
    """It accepts the connection and never answers, as a process does that is stopped."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        config = tmp_path / "config.yaml"
        config.write_text(f"kind: KubeletConfiguration\nhealthzPort: {server.getsockname()[1]}\n")
        pid = os.fork()
        if pid == 0:
            _wait_for_kubelet(str(config))
        accepted, _ = server.accept()
        os.kill(pid, number)
        started_at = time.monotonic()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        accepted.close()
    assert status == Interrupted.exit_code
    assert time.monotonic() - started_at < 4  # a probe gives up after 5 s, and the gate after 60


def _wait_for_kubelet(config: str) -> None:
    gate = KubeletHealthy(timeout_s=60, config=config)
    machine = NodeMachine(None)
    view = LiveNodeView(machine, NodeCluster(machine, "", ""), "", "")
    interruption = Interruption()
    try:
        with interruption.watching(), interruption.around(Step(AwaitGate(gate=gate), "", "wait")):
            ProbingWaiter(view).wait(gate)
    except Interrupted as error:
        os._exit(error.exit_code)
    except GarboardError:
        os._exit(1)
    os._exit(0)


def test_run_may_stop_anywhere_but_between_two_steps_of_a_unit() -> None:
    units = ("", "", "etcd", "etcd", "apiserver", "apiserver", "", "apiserver", "")
    boundaries = Boundaries()
    found = [boundaries.is_before(Step(RemoveFile(path="/a"), "", unit=unit)) for unit in units]
    assert found == [True, True, True, False, True, False, True, True, True]


def test_signal_waits_for_the_end_of_a_unit() -> None:
    interruption = Interruption()
    with interruption.watching():
        with interruption.around(step("a")):
            os.kill(os.getpid(), signal.SIGTERM)
        with interruption.around(step("b"), may_stop=False):
            pass
        with pytest.raises(Interrupted, match="before c"), interruption.around(step("c")):
            pass
