"""What the config commands share: reading a file on this machine, and saying what there is to say about it."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import click

from garboard.config.load import ConfigFile
from garboard.config.reading import ReadOptions
from garboard.config.versions import ResolvedVersion, resolve_version
from garboard.host import read_file
from garboard.host.facts import MachineFacts

Command = TypeVar("Command", bound=Callable[..., object])

config_path = click.Path(path_type=Path)


def version_option(command: Command) -> Command:
    """Add `--kubernetes-version` to a command that may have to be told which minor to emulate."""
    option = click.option(
        "--kubernetes-version", default="stable-1", show_default=True, metavar="VERSION",
        help="Emulate kubeadm of this version's minor where no file names one. Labels mean the newest supported.",
    )  # fmt: skip
    return option(command)


def supported_version(text: str) -> ResolvedVersion:
    """Resolve a version given on the command line; a minor that we do not know is refused with the list."""
    version = resolve_version(text)
    assert version.facts is not None
    return version


def open_config(path: Path, options: ReadOptions, version: ResolvedVersion) -> ConfigFile:
    """Read a configuration file; its own kubernetesVersion goes before the one of the command line."""
    return ConfigFile.read(
        read_file(path), file=str(path), host=MachineFacts(), options=options, version=version.release
    )


def show_warnings(warnings: Iterable[str]) -> None:
    for warning in warnings:
        sys.stderr.write(f"warning: {warning}\n")
