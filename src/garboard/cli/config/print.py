"""`garboard config print`."""

import sys

import click

from garboard.cli.config.inputs import emulated_version_option, supported_version
from garboard.cli.flags import STRING_SLICE, joined
from garboard.config.printing import (
    init_defaults_text,
    join_defaults_text,
    reset_defaults_text,
    upgrade_defaults_text,
)
from garboard.node.configuration import host_name


@click.group("print", epilog="Example: garboard config print init-defaults --kubernetes-version v1.36.4")
def print_() -> None:
    """Print default configurations, as kubeadm of the minor prints them."""


@print_.command(
    "init-defaults",
    short_help="Print what init assumes.",
    epilog="Example: garboard config print init-defaults --component-configs KubeletConfiguration",
)
@click.option(
    "--component-configs",
    type=STRING_SLICE,
    multiple=True,
    callback=joined,
    metavar="KINDS",
    help="Also print these component configurations: KubeletConfiguration, KubeProxyConfiguration (comma-separated).",
)
@emulated_version_option
def init_defaults(component_configs: tuple[str, ...], kubernetes_version: str) -> None:
    """Print what init assumes; placeholders stand for what the machine decides."""
    sys.stdout.write(init_defaults_text(supported_version(kubernetes_version).facts, component_configs))


@print_.command("join-defaults", epilog="Example: garboard config print join-defaults")
@emulated_version_option
def join_defaults(kubernetes_version: str) -> None:
    """Print what join assumes on this machine."""
    sys.stdout.write(join_defaults_text(supported_version(kubernetes_version).facts, host_name()))


@print_.command("reset-defaults", epilog="Example: garboard config print reset-defaults")
@emulated_version_option
def reset_defaults(kubernetes_version: str) -> None:
    """Print what reset assumes."""
    sys.stdout.write(reset_defaults_text(supported_version(kubernetes_version).facts))


@print_.command("upgrade-defaults", epilog="Example: garboard config print upgrade-defaults")
@emulated_version_option
def upgrade_defaults(kubernetes_version: str) -> None:
    """Print what the upgrade commands assume."""
    sys.stdout.write(upgrade_defaults_text(supported_version(kubernetes_version).facts))
