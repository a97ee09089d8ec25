"""A configuration file read on this machine, and what rendered files depend on of it."""

import os
from pathlib import Path

from garboard.config import ReadOptions, ResolvedVersion
from garboard.config.load import ConfigFile, Loaded, init_from_flags
from garboard.host import read_file
from garboard.host.facts import MachineFacts
from garboard.host.node_machine import NodeMachine
from garboard.host.service_manager import service_manager
from garboard.manifests import NodeHost
from garboard.manifests.node import EXTRA_CA_DIRECTORIES
from garboard.model.lifecycle import InitConfiguration


def node_host(machine: NodeMachine) -> NodeHost:
    """Find out everything about the machine that rendered files depend on."""
    return NodeHost(
        hostname=MachineFacts().hostname(),
        ca_directories=frozenset(path for path in EXTRA_CA_DIRECTORIES if machine.has_folder(path)),
        environment=dict(os.environ),
        is_systemd_resolved_active=machine.is_active("systemd-resolved"),
    )


def this_host() -> NodeHost:
    """Find out the same about the machine that we run on."""
    return node_host(NodeMachine(service_manager()))


def complete_config(
    init: InitConfiguration, version: ResolvedVersion, options: ReadOptions
) -> Loaded[InitConfiguration]:
    """Return a configuration without a file, with what this machine decides filled in."""
    return init_from_flags(init, version, MachineFacts(), options)


def host_name() -> str:
    """Return the name of this machine."""
    return MachineFacts().hostname()


def new_token() -> str:
    """Return a random bootstrap token."""
    return MachineFacts().new_token()


def open_config(path: Path, options: ReadOptions, version: ResolvedVersion) -> ConfigFile:
    """Read a configuration file; its own kubernetesVersion takes precedence over the command line's."""
    return ConfigFile.read(
        read_file(path), file=str(path), host=MachineFacts(), options=options, version=version.release
    )
