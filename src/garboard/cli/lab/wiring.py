"""What the lab commands share: the labs of this machine, and progress on stderr."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from garboard.host import Machine
from garboard.lab.binaries import Binaries
from garboard.lab.labs import Labs
from garboard.lab.layout import lab_home
from garboard.lab.topology import DEFAULT_NAME

Command = TypeVar("Command", bound=Callable[..., object])


def tell(line: str) -> None:
    """Write a line of progress to stderr."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def labs(*, home: Path | None = None, given: Path | None = None) -> Labs:
    """Wire the lab to this machine."""
    machine = Machine()
    return Labs(
        machine=machine,
        home=(home or lab_home()).absolute(),
        binaries=Binaries(machine, given=given.absolute() if given else None, report=tell),
        supervisor_command=(sys.executable, "-m", "garboard.cli.lab.supervise"),
        python=str(Path(sys.executable).resolve()),
        report=tell,
    )


def name_option(command: Command) -> Command:
    """Add `--name`, which says which lab is meant."""
    return click.option("--name", default=DEFAULT_NAME, show_default=True, help="The lab's name.")(command)
