"""The examples of docs/configuration.md, run."""

import re
import shlex
from pathlib import Path

import pytest

from garboard.cli.main import run
from tests.support.config.configurations import V1BETA3

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_the_examples_print_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in zip(("kubeadm.yaml", "cluster.yaml"), blocks("yaml"), strict=True):
        (tmp_path / name).write_text(text)
    (tmp_path / "old.yaml").write_text(V1BETA3["v1beta3 init"].replace("VERSION", "v1.37.1"))
    for block in blocks("console"):
        for command, expected in re.findall(r"^\$ garboard ([^\n]*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            run(shlex.split(command))
            out, err = capsys.readouterr()
            assert out + err == expected
