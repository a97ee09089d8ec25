import os
import threading
from pathlib import Path

import pytest

from garboard.host.locks import NodeLocked, user_lock


@pytest.fixture(autouse=True)
def runtime_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def test_second_command_of_a_user_waits_for_the_first() -> None:
    told: list[str] = []
    waiting, entered = threading.Event(), threading.Event()

    def report(error: NodeLocked) -> None:
        told.append(error.message)
        waiting.set()

    def second() -> None:
        with user_lock("second", wait_s=60, on_wait=report):
            entered.set()

    other = threading.Thread(target=second)
    with user_lock("first"):
        other.start()
        assert waiting.wait(60)
        assert not entered.is_set()
    other.join(60)
    assert entered.is_set()
    assert told == [f"garboard first (process {os.getpid()}) is changing this node"]


def test_second_command_is_refused_in_the_end() -> None:
    with user_lock("first"), pytest.raises(NodeLocked), user_lock("second"):
        pass


@pytest.mark.parametrize("trap", ["link", "stranger's", "no folder"])
def test_lock_that_somebody_else_could_hold_for_ever_is_done_without(
    trap: str, runtime_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if trap == "link":
        (runtime_dir / "garboard.lock").symlink_to(runtime_dir / "elsewhere")
    elif trap == "stranger's":
        monkeypatch.setattr(os, "geteuid", lambda: 54321)
    else:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime_dir / "none"))
    with user_lock("first"), user_lock("second"):
        pass
    assert not (runtime_dir / "elsewhere").exists()
