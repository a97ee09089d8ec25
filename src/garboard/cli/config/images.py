"""`garboard config images`."""

import json
import sys
from pathlib import Path

import click

from garboard.cli.config.inputs import config_path, open_config, show_warnings, supported_version, version_option
from garboard.cli.output import OutputFormat, output_option
from garboard.config.flags import parse_feature_gates
from garboard.config.load import Loaded, init_from_flags
from garboard.config.problems import Notes
from garboard.config.reading import ReadOptions
from garboard.documents import Json, write_yaml
from garboard.host.facts import MachineFacts
from garboard.model.cluster import DEFAULT_IMAGE_REPOSITORY, ClusterConfiguration
from garboard.model.images import control_plane_images
from garboard.model.lifecycle import InitConfiguration


@click.group(epilog="Example: garboard config images list --kubernetes-version v1.36.4")
def images() -> None:
    """List the container images of the control plane."""


@images.command("list", epilog="Example: garboard config images list --config kubeadm.yaml --output json")
@click.option("--config", type=config_path, metavar="FILE", help="A configuration file; it replaces the other flags.")
@click.option("--image-repository", default="registry.k8s.io", show_default=True, help="Where the images come from.")
@click.option("--feature-gates", default="", metavar="A=true,B=false", help="Feature gates of kubeadm.")
@click.option("--strict-config", is_flag=True, help="Refuse unknown fields and repeated keys instead of warning.")
@version_option
@output_option
def list_images(
    config: Path | None,
    image_repository: str,
    feature_gates: str,
    strict_config: bool,
    kubernetes_version: str,
    output: OutputFormat,
) -> None:
    """Print the images that a control-plane node needs, one per line."""
    has_file = config is not None and str(config) not in ("", ".")  # as click reads an empty --config
    # A file says its version itself; what the flag says is then not even looked at.
    version = supported_version("stable-1" if has_file else kubernetes_version or "stable-1")
    options = ReadOptions(is_strict=strict_config, detects_cri=False)
    notes = Notes()
    gates = parse_feature_gates(feature_gates, version.facts, notes)
    loaded: Loaded[InitConfiguration]
    if config is not None and has_file:
        loaded = open_config(config, options, version).init()
    else:
        repository = image_repository or DEFAULT_IMAGE_REPOSITORY
        cluster = ClusterConfiguration(image_repository=repository, feature_gates=gates)
        loaded = init_from_flags(InitConfiguration(cluster=cluster), version, MachineFacts(), options)
    show_warnings((*notes.warnings, *loaded.warnings))
    sys.stdout.write(_images_text(control_plane_images(loaded.config.cluster), output))


def _images_text(names: tuple[str, ...], output: OutputFormat) -> str:
    document: Json = {"kind": "Images", "apiVersion": "output.kubeadm.k8s.io/v1alpha3", "images": [*names]}
    match output:
        case "json":
            return json.dumps(document, indent=4) + "\n"
        case "yaml":
            return write_yaml(document)
        case "text":
            return "".join(f"{name}\n" for name in names)
