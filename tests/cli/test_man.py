"""Manual pages: one for every command, with all that its --help has."""

import re
from pathlib import Path

import click
import pytest

from garboard.cli.main import garboard, run
from garboard.cli.man_pages import man_pages

PAGES = {page.name: page.text for page in man_pages(garboard, ("garboard",), "1.2.3")}
# What a line of a page may begin with, apart from text.
REQUESTS = (".TH ", ".SH ", ".TP", ".PP", ".B ", ".BR ", ".nf", ".fi")


def plain(text: str) -> str:
    """Return what roff prints of a text."""
    return text.replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")


def every_command(command: click.Command, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], click.Command]]:
    found = [(path, command)]
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            found += every_command(child, (*path, name))
    return found


COMMANDS = every_command(garboard, ("garboard",))


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[" ".join(path) for path, _ in COMMANDS])
def test_page_has_every_option_of_its_command(path: tuple[str, ...], command: click.Command) -> None:
    if command.hidden:
        return
    text = plain(PAGES["-".join(path)])
    for param in command.params:
        if isinstance(param, click.Option) and not param.hidden:
            assert param.opts[-1] in text, param.opts
    assert ".SH EXAMPLE" in text
    assert f".B {' '.join(path)}" in text


@pytest.mark.parametrize("name", PAGES)
def test_page_has_no_line_that_roff_would_take_for_a_request(name: str) -> None:
    lines = PAGES[name].splitlines()
    assert [line for line in lines if line.startswith((".", "'")) and not line.startswith(REQUESTS)] == []
    assert not any("\b" in line for line in lines)
    assert re.match(rf'\.TH "{name.upper()}" "1" "" "garboard 1.2.3"', lines[0])


def test_page_is_printed_or_all_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["man", "patch", "diff"]) == 0
    assert capsys.readouterr().out.startswith('.TH "GARBOARD-PATCH-DIFF"')
    assert run(["man", "--output-dir", str(tmp_path / "man")]) == 0
    assert {path.stem for path in (tmp_path / "man").iterdir()} == set(PAGES)
    assert run(["man", "patch", "dif"]) == 2
