"""What the lab commands share: the labs of this machine, and progress on stderr."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from garboard.errors import BadUsage
from garboard.host import Machine
from garboard.lab.binaries import Binaries
from garboard.lab.labs import Labs
from garboard.lab.layout import lab_home
from garboard.lab.snapshots.store import Snapshots
from garboard.lab.topology import DEFAULT_NAME

Command = TypeVar("Command", bound=Callable[..., object])


def report(line: str) -> None:
    """Write a line of progress to stderr."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def labs(*, home: Path | None = None, given: Path | None = None) -> Labs:
    """Wire the lab to this machine."""
    machine = Machine()
    return Labs(
        machine=machine,
        home=(home or lab_home()).absolute(),
        binaries=Binaries(machine, given=given.absolute() if given else None, report=report),
        supervisor_command=(sys.executable, "-m", "garboard.cli.lab.supervise"),
        python=str(Path(sys.executable).resolve()),
        report=report,
    )


def complete_snapshots(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Offer the snapshots of this machine."""
    found = Snapshots(Machine(), lab_home().absolute()).names()
    return [name for name in found if name.startswith(incomplete)]


def name_option(command: Command) -> Command:
    """Add `--name`, which says which lab is meant."""
    return click.option("--name", default=DEFAULT_NAME, show_default=True, help="The lab's name.")(command)


def lab_argument(command: Command) -> Command:
    """Add the argument NAME, which says which lab is meant, beside the option of the same name that all commands have.

    The command gets both and asks `chosen_lab`.
    """
    argument = click.argument("lab", required=False, metavar="[NAME]")
    return argument(click.option("--name", help=f"The lab's name, as NAME.  [default: {DEFAULT_NAME}]")(command))


def chosen_lab(argument: str | None, option: str | None) -> str:
    """Return the lab that is meant, which may be said in two ways but not twice."""
    if argument is not None and option is not None and argument != option:
        raise BadUsage(f"both lab {argument} and --name {option} were given", hint="name one lab")
    return argument or option or DEFAULT_NAME
