"""What this machine contributes to what is rendered for it."""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from garboard.config import ReadOptions
from garboard.host import list_tree, read_file
from garboard.host.facts import MachineFacts
from garboard.host.node_machine import NodeMachine
from garboard.manifests import NodeHost
from garboard.manifests.node import EXTRA_CA_DIRECTORIES
from garboard.model.lifecycle import InitConfiguration, JoinConfiguration
from garboard.phases.flags import GivenFlags
from garboard.phases.patching import NodePatches

if TYPE_CHECKING:
    from garboard.patches import PatchFile

ConfigT = TypeVar("ConfigT", InitConfiguration, JoinConfiguration)


def node_host(machine: NodeMachine) -> NodeHost:
    """Find out everything about the machine that shows in its files."""
    return NodeHost(
        hostname=MachineFacts().hostname(),
        ca_directories=frozenset(path for path in EXTRA_CA_DIRECTORIES if machine.has_folder(path)),
        environment=dict(os.environ),
        is_systemd_resolved_active=machine.is_active("systemd-resolved"),
    )


def node_patches(
    directory: str | None, *, name: str, role: Literal["control-plane", "worker"], is_strict: bool
) -> NodePatches:
    """Return the patches of a directory for this node, to be read when they are needed."""
    if not directory:
        return NodePatches()
    return NodePatches(partial(_patch_files, directory), is_strict, name, role)


def _patch_files(directory: str) -> "list[PatchFile]":
    root = Path(directory)
    paths = list_tree(root)
    if not paths:  # as in many a directory that is only kept for later: the engine need not be loaded
        return []
    from garboard.patches import PatchFile

    return [PatchFile(path, str(root / path), partial(read_file, root / path)) for path in paths]


def read_options(flags: GivenFlags) -> ReadOptions:
    # Sockets are looked for where a phase takes one: the others do not use it.
    return ReadOptions(is_strict=flags.switch("strict-config"), detects_cri="cri-socket" in flags.values)


def with_node_name(config: ConfigT, flags: GivenFlags) -> ConfigT:
    """Return the configuration with the name that the command line gives; its capitals stay, as with kubeadm."""
    name = flags.text("node-name")
    return replace(config, node_registration=replace(config.node_registration, name=name)) if name else config
