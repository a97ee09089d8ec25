"""What the docs tell people to type works: every `$ garboard …` line that uses the examples of the checkout is run."""

import re
import shlex
from pathlib import Path

import pytest

from garboard.cli.main import run

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/patches.md", "docs/fleet.md")
REFUSED = ("examples/patches/mistake", "examples/fleet/refused.yaml")


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
    assert status == (3 if any(each in words for each in REFUSED) else 0), capsys.readouterr().err


@pytest.mark.parametrize(
    ("page", "block"),
    [
        pytest.param("patches.md", r"^\$ (garboard patch explain .*?)\n(spec\..*?)```", id="patch"),
        pytest.param("fleet.md", r"^\$ (garboard fleet explain .*?)\n(manifests/.*?)```", id="fleet"),
        pytest.param("fleet.md", r"^\$ (garboard fleet render [^\n]* --check)\n(berlin: .*?)```", id="render"),
    ],
)
def test_answer_in_the_docs_is_what_the_command_prints(
    page: str, block: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    found = re.search(block, (ROOT / "docs" / page).read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None
    assert run(shlex.split(found[1].replace("\\\n", " "))[1:]) == 0
    assert capsys.readouterr().out == found[2]
