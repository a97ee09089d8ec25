import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from garboard import __version__
from garboard.cli.main import garboard, run

ROOT = Path(__file__).parents[2]


def test_version_names_the_supported_minors(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["version", "--output", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["garboard"] == __version__
    assert [each["minor"] for each in told["supported"]] == ["1.36", "1.37"]


def every_command(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        yield (*path, name)
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from every_command(command, (*path, name))


@pytest.mark.parametrize("path", [(), *every_command(garboard)], ids=" ".join)
def test_every_command_has_help_with_an_example_to_copy(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*path, "--help"]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.partition("Example: ")[2].splitlines())) <= 80
    assert "..." not in shown.partition("Commands:")[2], "a summary is cut off"
    example = re.search(r"garboard .*", shown.partition("Example: ")[2].replace("\\\n", " "))
    assert example is not None
    words = shlex.split(example[0].removesuffix(')"'))
    assert tuple(words[1 : len(path) + 1]) == path
    refuse_unknown_words(garboard, words[1:])


def refuse_unknown_words(command: click.Command, words: list[str]) -> None:
    """Follow an example to its command, which must know all of its options."""
    context = click.Context(command, allow_interspersed_args=True)
    if isinstance(command, click.Group):
        found = command.get_command(context, words[0])
        if found is not None:
            return refuse_unknown_words(found, words[1:])
        assert command.invoke_without_command, f"no command {words[0]}"
    command.make_parser(context).parse_args(list(words))
    return None


def test_a_group_without_a_command_shows_its_help_and_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["patch"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Usage: garboard patch ")


def test_a_misspelt_command_gets_the_real_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["patch", "lnt"]) == 2
    assert "Did you mean 'lint'?" in capsys.readouterr().err


def test_unknown_command_is_bad_usage_with_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["nope"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error[usage]: ")
    assert "hint: see `garboard --help`" in err


def test_unsupported_minor_is_refused_with_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["patch", "apply", "-f", "x", "--patch-file", "y", "--kubernetes-version", "v1.20.0"]) == 2
    assert "1.36, 1.37" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_is_printed(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    assert "_GARBOARD_COMPLETE" in capsys.readouterr().out


def test_completion_answers_with_commands() -> None:
    words = {"COMP_WORDS": "garboard patch ", "COMP_CWORD": "2", "_GARBOARD_COMPLETE": "bash_complete"}
    done = subprocess.run(
        [sys.executable, "-c", "from garboard.cli.main import main; main()"],
        env={**os.environ, **words},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "plain,explain" in done.stdout, done.stderr


def test_reader_that_goes_away_is_no_traceback() -> None:
    done = subprocess.run(
        f"{sys.executable} -c 'from garboard.cli.main import main; main()' --help | true; exit ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
