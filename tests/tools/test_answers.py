"""Answers of programs that are asked once: which are given again, and which are not."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.harness.answers import Answers, sources_digest


class Oracle:
    """Counts how often it is asked."""

    def __init__(self, answer: bytes = b"42") -> None:
        self.answer = answer
        self.asked = 0

    def __call__(self) -> bytes:
        self.asked += 1
        return self.answer


def program(folder: Path, script: str) -> Path:
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_same_question_is_asked_once(tmp_path: Path) -> None:
    oracle = Oracle()
    assert [Answers(tmp_path).get(("a", "b"), oracle) for _ in range(2)] == [b"42", b"42"]
    assert oracle.asked == 1


def test_words_of_a_question_are_kept_apart(tmp_path: Path) -> None:
    oracle = Oracle()
    for question in (("a", "b"), ("ab",), ("a", "b", "")):
        Answers(tmp_path).get(question, oracle)
    assert oracle.asked == 3


def test_fresh_asks_again_and_keeps_the_new_answer(tmp_path: Path) -> None:
    Answers(tmp_path).get(("a",), Oracle(b"old"))
    assert Answers(tmp_path, is_fresh=True).get(("a",), Oracle(b"new")) == b"new"
    assert Answers(tmp_path).get(("a",), Oracle(b"unasked")) == b"new"


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda content: content[: len(content) // 2], id="torn"),
        pytest.param(lambda content: b"", id="empty"),
        pytest.param(lambda content: b"0" * 64 + content[64:], id="another digest"),
        pytest.param(lambda content: b"\0" * len(content), id="zeros"),
    ],
)
def test_damaged_answer_is_asked_for_again(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    Answers(tmp_path).get(("a",), Oracle())
    [path] = files(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    oracle = Oracle()
    assert [Answers(tmp_path).get(("a",), oracle) for _ in range(2)] == [b"42", b"42"]
    assert oracle.asked == 1


def test_oracle_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> bytes:
        raise OSError("no answer")

    with pytest.raises(OSError, match="no answer"):
        Answers(tmp_path).get(("a",), fail)
    assert files(tmp_path) == []


def test_program_is_asked_again_when_it_its_input_or_its_environment_changes(tmp_path: Path) -> None:
    answers, calls = Answers(tmp_path / "kept"), tmp_path / "calls"
    script = f'echo "$NAME $1" | tee -a {calls}; cat; exit 3'
    first = answers.run(program(tmp_path, script), "x", stdin="in", environment={"NAME": "a"})
    assert (first.returncode, first.stdout) == (3, "a x\nin")
    for given, stdin, name in (("x", "in", "a"), ("y", "in", "a"), ("x", "on", "a"), ("x", "in", "b")):
        answers.run(program(tmp_path, script), given, stdin=stdin, environment={"NAME": name})
    assert len(calls.read_text().splitlines()) == 4
    answers.run(program(tmp_path, script + " # changed"), "x", stdin="in", environment={"NAME": "a"})
    assert len(calls.read_text().splitlines()) == 5


def test_program_that_a_signal_ended_has_given_no_answer(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        Answers(tmp_path / "kept").run(program(tmp_path, "kill -9 $$"))
    assert files(tmp_path / "kept") == []


def test_what_was_not_asked_for_longest_goes_first(tmp_path: Path) -> None:
    answers = Answers(tmp_path)
    for number in range(3):
        answers.get((str(number),), Oracle(str(number).encode()))
    oldest, older, _ = sorted(files(tmp_path), key=lambda path: path.stat().st_mtime_ns)
    answers.get(("0",), Oracle())  # wanted again
    answers.prune(max_bytes=oldest.stat().st_size * 2)
    assert oldest.exists()
    assert not older.exists()
    assert len(files(tmp_path)) == 2


def test_sources_have_another_digest_when_one_is_changed_moved_or_added(tmp_path: Path) -> None:
    (tmp_path / "a.go").write_text("one")
    (tmp_path / "b.py").write_text("not looked at")
    found = [sources_digest(tmp_path, "*.go")]
    (tmp_path / "b.py").write_text("still not")
    assert sources_digest(tmp_path, "*.go") == found[0]
    (tmp_path / "a.go").write_text("two")
    found.append(sources_digest(tmp_path, "*.go"))
    (tmp_path / "a.go").rename(tmp_path / "c.go")
    found.append(sources_digest(tmp_path, "*.go"))
    (tmp_path / "d.go").write_text("")
    found.append(sources_digest(tmp_path, "*.go"))
    assert len(set(found)) == 4
