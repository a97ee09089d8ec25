"""What the docs tell people to type works: every `$ garboard …` line that uses the examples of the checkout is run."""

import re
import shlex
from pathlib import Path

import pytest

from garboard.cli.main import run

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/patches.md")


def commands() -> list[object]:
    found: list[object] = []
    for page in PAGES:
        text = (ROOT / page).read_text().replace("\\\n", " ")
        for line in re.findall(r"^\$ (garboard .*)$", text, re.MULTILINE):
            words = shlex.split(line, comments=True)
            if any("examples/" in word for word in words) and not any(word.startswith("/tmp") for word in words):
                found.append(pytest.param(words[1:], id=f"{page}: {' '.join(words[1:4])}"))
    return found


@pytest.mark.parametrize("words", commands())
def test_documented_command_works(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    (tmp_path / "my-patches").mkdir()
    places = {"./my-patches": str(tmp_path / "my-patches"), "./patches-cp1": str(tmp_path / "patches-cp1")}
    status = run([places.get(word, word) for word in words])
    assert status == (3 if "examples/patches/mistake" in words else 0), capsys.readouterr().err


def test_explain_in_the_docs_shows_what_explain_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    text = (ROOT / "docs/patches.md").read_text()
    block = re.search(r"^\$ (garboard patch explain .*?)\n(spec\..*?)```", text, re.DOTALL | re.MULTILINE)
    assert block is not None
    assert run(shlex.split(block[1].replace("\\\n", " "))[1:]) == 0
    assert capsys.readouterr().out == block[2]
