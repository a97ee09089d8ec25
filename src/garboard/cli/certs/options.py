"""What certificate commands share: the configuration, where files are, and how they are observed."""

from datetime import UTC, datetime
from pathlib import Path

import click

from garboard.cli.config.inputs import show_warnings, supported_version
from garboard.config.reading import ReadOptions
from garboard.model.lifecycle import InitConfiguration
from garboard.model.paths import DEFAULT_CERTIFICATES_DIR, KUBERNETES_DIR
from garboard.node.configuration import complete_config, open_config

config_option = click.option(
    "--config", type=click.Path(path_type=Path), metavar="FILE", help="A kubeadm configuration file."
)
cert_dir_option = click.option(
    "--cert-dir",
    metavar="DIR",
    help=f"Where the certificates are.  [default: as in the configuration, else {DEFAULT_CERTIFICATES_DIR}]",
)
kubeconfig_dir_option = click.option(
    "--kubeconfig-dir", metavar="DIR", default=KUBERNETES_DIR, show_default=True, help="Where the kubeconfigs are."
)


def now() -> datetime:
    return datetime.now(UTC)


def read_configuration(config: Path | None) -> InitConfiguration:
    """Return the configuration of a file, or the one that this machine would get without any."""
    version, options = supported_version("stable-1"), ReadOptions(detects_cri=False)
    if config is None:
        loaded = complete_config(InitConfiguration(), version, options)
    else:
        loaded = open_config(config, options, version).init()
    show_warnings(loaded.warnings)
    return loaded.config
