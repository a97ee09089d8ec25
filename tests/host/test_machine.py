import multiprocessing
from pathlib import Path

import pytest

from garboard.host import Machine
from garboard.host.web import Unreachable, fetch


def _try(path: Path, answer: "multiprocessing.Queue[bool]", *, shared: bool) -> None:
    with Machine().locked(path, shared=shared, wait=False) as is_ours:
        answer.put(is_ours)


def ask_another_process(path: Path, *, shared: bool) -> bool:
    context = multiprocessing.get_context("fork")
    answer: multiprocessing.Queue[bool] = context.Queue()
    other = context.Process(target=_try, args=(path, answer), kwargs={"shared": shared})
    other.start()
    try:
        return answer.get(timeout=20)
    finally:
        other.join()


def test_a_lock_keeps_another_process_out_until_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with Machine().locked(path) as is_ours:
        assert is_ours
        assert not ask_another_process(path, shared=False)
    assert ask_another_process(path, shared=False)


def test_a_shared_lock_lets_others_share_but_not_own(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with Machine().locked(path, shared=True):
        assert ask_another_process(path, shared=True)
        assert not ask_another_process(path, shared=False)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/nothing", "file:///etc/passwd", "https://name.invalid/file"])
def test_what_cannot_be_fetched_is_an_error_at_once(url: str) -> None:
    with pytest.raises(Unreachable):
        fetch(url, timeout_s=3)
