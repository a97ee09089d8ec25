"""What the config commands share: reading a file on this machine, and printing warnings about it."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import click

from garboard.cli.completing import complete_versions
from garboard.config.versions import ResolvedVersion, resolve_version
from garboard.errors import as_usage

Command = TypeVar("Command", bound=Callable[..., object])

config_path = click.Path(path_type=Path)


def emulated_version_option(command: Command) -> Command:
    """Add `--kubernetes-version` to a command that may have to be told which minor to emulate."""
    option = click.option(
        "--kubernetes-version", default="stable-1", show_default=True, metavar="VERSION",
        shell_complete=complete_versions,
        help="Emulate kubeadm of this version's minor where no file names one. Labels mean the newest supported.",
    )  # fmt: skip
    return option(command)


def supported_version(text: str) -> ResolvedVersion:
    """Resolve a version given on the command line; a minor that we do not know is refused with the list."""
    with as_usage():
        version = resolve_version(text)
        assert version.facts is not None
    return version


def show_warnings(warnings: Iterable[str]) -> None:
    for warning in warnings:
        sys.stderr.write(f"warning: {warning}\n")
