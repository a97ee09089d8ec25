import click
import pytest

from garboard.cli.global_flags import GlobalFlags, take_global_flags
from garboard.cli.main import run


@pytest.mark.parametrize(("line", "flags", "rest"), [
    ("init --config f", GlobalFlags(), "init --config f"),
    ("--rootfs /r init phase certs ca", GlobalFlags("/r"), "init phase certs ca"),
    ("init phase certs ca --rootfs=/r -v=5", GlobalFlags("/r", 5), "init phase certs ca"),
    ("-v 3 --vmodule=a=1 config validate --v=6", GlobalFlags(verbosity=6), "config validate"),
    ("certs renew all -v5", GlobalFlags(verbosity=5), "certs renew all"),
    ("init --rootfs= --dry-run", GlobalFlags(), "init --dry-run"),
    ("tunnel agent --v=5", GlobalFlags(), "tunnel agent --v=5"),
    ("lab exec -- kubeadm init -v=5", GlobalFlags(), "lab exec -- kubeadm init -v=5"),
    ("--help", GlobalFlags(), "--help"),
])  # fmt: skip
def test_global_flags_stand_anywhere_on_the_lines_of_kubeadms_commands(
    line: str, flags: GlobalFlags, rest: str
) -> None:
    assert take_global_flags(line.split()) == (flags, rest.split())


@pytest.mark.parametrize("line", ["init -v=x", "init --v", "init --rootfs"])
def test_broken_global_flags_are_refused(line: str) -> None:
    with pytest.raises(click.UsageError):
        take_global_flags(line.split())
    assert run(line.split()) == 2


def test_where_an_error_comes_from_is_shown_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "validate", "--config", "/nope/nope", "-v=5"]) == 1
    assert "Traceback" in capsys.readouterr().err
    assert run(["config", "validate", "--config", "/nope/nope", "-v=4"]) == 1
    assert "Traceback" not in capsys.readouterr().err
