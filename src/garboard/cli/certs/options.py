"""What certificate commands share: the configuration, where files are, and how they are observed."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from garboard.model.lifecycle import InitConfiguration
    from garboard.pki.expiration import ObservedNode

DEFAULT_CERT_DIR = "/etc/kubernetes/pki"

config_option = click.option(
    "--config", type=click.Path(path_type=Path), metavar="FILE", help="A kubeadm configuration file."
)
cert_dir_option = click.option(
    "--cert-dir",
    metavar="DIR",
    help=f"Where the certificates are.  [default: as in the configuration, else {DEFAULT_CERT_DIR}]",
)
kubeconfig_dir_option = click.option(
    "--kubeconfig-dir", metavar="DIR", default="/etc/kubernetes", show_default=True, help="Where the kubeconfigs are."
)


def now() -> datetime:
    return datetime.now(UTC)


def read_configuration(config: Path | None) -> "InitConfiguration":
    """Return the configuration of a file, or the one that this machine would get without any."""
    from garboard.cli.config.inputs import open_config, show_warnings, supported_version
    from garboard.config.load import init_from_flags
    from garboard.config.reading import ReadOptions
    from garboard.host.facts import MachineFacts
    from garboard.model.lifecycle import InitConfiguration

    version, options = supported_version("stable-1"), ReadOptions(detects_cri=False)
    if config is None:
        loaded = init_from_flags(InitConfiguration(), version, MachineFacts(), options)
    else:
        loaded = open_config(config, options, version).init()
    show_warnings(loaded.warnings)
    return loaded.config


def observe_node(cert_dir: str, kubeconfig_dir: str) -> "ObservedNode":
    """Read all certificates and kubeconfigs of this node."""
    from garboard.host import HostFolder
    from garboard.pki import KUBECONFIGS
    from garboard.pki.credentials import observe_kubeconfig
    from garboard.pki.expiration import ObservedNode
    from garboard.pki.store import observe_pairs

    folder = HostFolder(kubeconfig_dir)
    kubeconfigs = {spec.file_name: observe_kubeconfig(folder, spec.file_name) for spec in KUBECONFIGS}
    return ObservedNode(observe_pairs(HostFolder(cert_dir)), kubeconfigs)
