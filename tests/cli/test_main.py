import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from garboard import __version__
from garboard.cli.main import COMMANDS, run
from garboard.cli.patch import COMMANDS as PATCH_COMMANDS

ROOT = Path(__file__).parents[2]


def test_version_names_the_supported_minors(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["version", "--output", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["garboard"] == __version__
    assert [each["minor"] for each in told["supported"]] == ["1.36", "1.37"]


@pytest.mark.parametrize(
    "command", [*[[name] for name in COMMANDS], *[["patch", name] for name in PATCH_COMMANDS]], ids=" ".join
)
def test_every_command_has_help_with_an_example(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command, "--help"]) == 0
    assert "Example: " in capsys.readouterr().out


def test_unknown_command_is_bad_usage_with_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["nope"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error[usage]: ")
    assert "hint: see `garboard --help`" in err


def test_unsupported_minor_is_refused_with_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["patch", "apply", "-f", "x", "--patch-file", "y", "--kubernetes-version", "v1.20.0"]) == 3
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
