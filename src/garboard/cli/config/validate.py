"""`garboard config validate`."""

from pathlib import Path

import click

from garboard.cli.config.inputs import config_path, open_config, show_warnings, supported_version, version_option
from garboard.config.reading import ReadOptions
from garboard.config.whole_file import check_file


@click.command(epilog="Example: garboard config validate --config kubeadm.yaml")
@click.option("--config", required=True, type=config_path, metavar="FILE", help="The configuration file.")
@click.option("--allow-deprecated-api", is_flag=True, help="Do not warn about deprecated API versions.")
@click.option("--allow-experimental-api", is_flag=True, help="Accept API versions that are not released yet.")
@version_option
def validate(config: Path, allow_deprecated_api: bool, allow_experimental_api: bool, kubernetes_version: str) -> None:
    """Check every kubeadm document of a file, strictly, and name all the problems."""
    options = ReadOptions(
        is_strict=True,
        allows_deprecated=allow_deprecated_api,
        allows_experimental=allow_experimental_api,
        detects_cri=False,
    )
    checked = check_file(open_config(config, options, supported_version(kubernetes_version)))
    show_warnings(checked.warnings)
    click.echo("ok")
