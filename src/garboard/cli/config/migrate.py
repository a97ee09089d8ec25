"""`garboard config migrate`."""

import sys
from pathlib import Path

import click

from garboard.cli.config.inputs import config_path, emulated_version_option, show_warnings, supported_version
from garboard.config.reading import ReadOptions
from garboard.config.whole_file import check_file, left_out, migrated_text
from garboard.host import write_file
from garboard.node.configuration import open_config


@click.command(epilog="Example: garboard config migrate --old-config v1beta3.yaml --new-config v1beta4.yaml")
@click.option("--old-config", required=True, type=config_path, metavar="FILE", help="The file to convert.")
@click.option("--new-config", type=config_path, metavar="FILE", help="Where to write it; stdout if not given.")
@click.option("--allow-experimental-api", is_flag=True, help="Accept API versions that are not released yet.")
@emulated_version_option
def migrate(old_config: Path, new_config: Path | None, allow_experimental_api: bool, kubernetes_version: str) -> None:
    """Convert a file to the current API version, defaults filled in.

    Unlike kubeadm 1.37, this reads v1beta3 whatever the minor. What is not carried over, as in
    kubeadm, is named: component configurations and comments.
    """
    options = ReadOptions(
        is_strict=True, allows_deprecated=True, allows_experimental=allow_experimental_api, migrates=True
    )
    file = open_config(old_config, options, supported_version(kubernetes_version))
    checked = check_file(file)
    show_warnings((*checked.warnings, *left_out(file)))
    text = migrated_text(checked, file)
    if new_config is None:
        sys.stdout.write(text)
    else:
        write_file(new_config, text.encode(), mode=0o644)
