import os
import time
from pathlib import Path

import pytest

from garboard.host.processes import CommandFailed, find_program, run, start_detached, stream


def test_output_and_status_come_back() -> None:
    ended = run(["sh", "-c", "cat; echo err >&2; exit 3"], stdin=b"in", check=False)
    assert (ended.status, ended.stdout, ended.stderr) == (3, "in", "err\n")


def test_a_failure_carries_what_the_program_said() -> None:
    with pytest.raises(CommandFailed, match="ended with status 2:\n  no such thing"):
        run(["sh", "-c", "echo no such thing >&2; exit 2"])


def test_a_program_that_is_not_there_is_an_error_and_no_traceback() -> None:
    with pytest.raises(CommandFailed, match="cannot run no-such-program"):
        run(["no-such-program"])
    with pytest.raises(CommandFailed, match="cannot run no-such-program"):
        stream(["no-such-program"], lambda _: None)


def test_a_program_that_does_not_end_is_given_up() -> None:
    with pytest.raises(CommandFailed, match="did not end within 0 s"):
        run(["sleep", "60"], timeout_s=0.1)


def test_the_environment_is_added_to_ours() -> None:
    assert run(["sh", "-c", 'echo "$EXTRA:$HOME"'], env={"EXTRA": "1"}).stdout == f"1:{os.environ['HOME']}\n"


def test_lines_are_handed_over_as_they_come_and_a_failure_shows_the_last() -> None:
    seen: list[str] = []
    stream(["sh", "-c", "echo one; echo two >&2"], seen.append)
    assert seen == ["one", "two"]
    with pytest.raises(CommandFailed, match="the job ended with status 1:\n  one"):
        stream(["sh", "-c", "echo one; exit 1"], seen.append, shown="the job")


def test_a_detached_program_has_a_session_of_its_own(tmp_path: Path) -> None:
    log = tmp_path / "log"
    pid = start_detached(["sh", "-c", "echo started; sleep 60"], log=log)
    try:
        assert os.getsid(pid) == pid
        deadline = time.monotonic() + 10
        while not log.exists() or log.read_text() != "started\n":
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def test_programs_are_found_on_the_path_only_if_they_are_there() -> None:
    assert find_program("sh") is not None
    assert find_program("no-such-program") is None
