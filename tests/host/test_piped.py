"""Programs with pipes, each a line of shell: whatever they do to their streams, nothing blocks and nothing is lost."""

import os
import signal
import time
from pathlib import Path

import pytest

from garboard.host.piped import Stream, run_piped
from garboard.host.processes import CommandFailed

LONG_S = 120.0


class Taken:
    """What a program wrote, by stream."""

    def __init__(self) -> None:
        self.data: dict[Stream, bytes] = {"stdout": b"", "stderr": b""}
        self.count = 0

    def __call__(self, stream: Stream, data: bytes) -> None:
        self.data[stream] += data
        self.count += len(data)


def run_script(script: str, *, stdin: bytes = b"", timeout_s: float = LONG_S) -> tuple[int | None, Taken]:
    taken = Taken()
    return run_piped(["sh", "-c", script], taken, stdin=stdin, timeout_s=timeout_s), taken


def test_streams_are_kept_apart_and_the_status_comes_back() -> None:
    status, taken = run_script("cat; printf err >&2; exit 3", stdin=b"in")
    assert (status, taken.data) == (3, {"stdout": b"in", "stderr": b"err"})


def test_large_input_and_output_do_not_wait_for_each_other() -> None:
    data = os.urandom(3_000_000)
    status, taken = run_script("tee /dev/stderr", stdin=data)
    assert status == 0
    assert taken.data == {"stdout": data, "stderr": data}


def test_flood_on_one_stream_does_not_stop_the_other() -> None:
    status, taken = run_script("head -c 5000000 /dev/zero >&2; echo done")
    assert status == 0
    assert (len(taken.data["stderr"]), taken.data["stdout"]) == (5_000_000, b"done\n")


def test_input_that_is_not_wanted_is_no_failure() -> None:
    status, taken = run_script("exec 0<&-; echo deaf; exit 7", stdin=b"x" * 3_000_000)
    assert (status, taken.data["stdout"]) == (7, b"deaf\n")


def test_program_that_another_one_outlives_has_ended() -> None:
    """ssh leaves the process of a shared connection behind, with the streams that it got."""
    status, taken = run_script("sleep 600 & echo $!; exit 5")
    os.kill(int(taken.data["stdout"]), signal.SIGKILL)
    assert status == 5


def test_program_that_does_not_end_is_ended_with_what_it_started() -> None:
    started: list[int] = []

    def take(_stream: Stream, data: bytes) -> None:
        started.append(int(data))

    assert run_piped(["sh", "-c", "sleep 600 & echo $!; wait"], take, timeout_s=1.0) is None
    wait_until_gone(started[0])


def test_program_that_ignores_the_first_signal_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("garboard.host.piped._END_WITHIN_S", 0.2)
    assert run_piped(["sh", "-c", "trap '' TERM; while :; do sleep 600; done"], Taken(), timeout_s=1.0) is None


def test_program_is_ended_when_its_output_is_refused() -> None:
    pids: list[int] = []

    def refuse(_stream: Stream, data: bytes) -> None:
        pids.append(int(data))
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        run_piped(["sh", "-c", "echo $$; sleep 600"], refuse, timeout_s=LONG_S)
    wait_until_gone(pids[0])


def test_signal_that_ended_a_program_is_its_status() -> None:
    assert run_script("kill -9 $$")[0] == -signal.SIGKILL


def test_program_that_is_not_there_is_named() -> None:
    with pytest.raises(CommandFailed, match="cannot run no-such-program"):
        run_piped(["no-such-program"], Taken(), timeout_s=LONG_S)


def test_ctrl_c_at_our_terminal_does_not_reach_the_program() -> None:
    _, taken = run_script("cat /proc/$$/stat")
    session = int(taken.data["stdout"].rpartition(b")")[2].split()[3])
    assert session != os.getsid(0)


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + LONG_S
    while not is_gone(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
