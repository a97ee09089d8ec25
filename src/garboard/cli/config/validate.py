"""`garboard config validate`."""

from pathlib import Path

import click

from garboard.cli.config.inputs import config_path, emulated_version_option, show_warnings, supported_version
from garboard.config.reading import ReadOptions
from garboard.config.whole_file import check_file
from garboard.node.configuration import open_config, this_host
from garboard.phases.judging import rendered_findings
from garboard.phases.rendering import NodeRendering
from garboard.schema import load_schema


@click.command(epilog="Example: garboard config validate --config kubeadm.yaml")
@click.option("--config", required=True, type=config_path, metavar="FILE", help="The configuration file.")
@click.option("--allow-deprecated-api", is_flag=True, help="Do not warn about deprecated API versions.")
@click.option("--allow-experimental-api", is_flag=True, help="Accept API versions that are not released yet.")
@emulated_version_option
def validate(config: Path, allow_deprecated_api: bool, allow_experimental_api: bool, kubernetes_version: str) -> None:
    """Check every kubeadm document of a file, strictly, and name all the problems.

    Arguments, environments, volumes and the kubelet's configuration are judged as `patch lint` judges patches: what a
    component of the minor refuses is an error, with its code.
    """
    options = ReadOptions(
        is_strict=True,
        allows_deprecated=allow_deprecated_api,
        allows_experimental=allow_experimental_api,
        detects_cri=False,
    )
    file = open_config(config, options, supported_version(kubernetes_version))
    host = this_host()
    checked = check_file(
        file,
        lambda loaded: rendered_findings(
            NodeRendering(loaded, host, load_schema(file.version.release)), file.documents
        ),
    )
    show_warnings(checked.warnings)
    click.echo("ok")
