"""`garboard config images`."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from garboard.cli.config.inputs import config_path, emulated_version_option, show_warnings, supported_version
from garboard.cli.console import ConsoleReporter
from garboard.cli.output import output_option
from garboard.config.flags import parse_feature_gates
from garboard.config.load import Loaded
from garboard.config.problems import ConfigNotes
from garboard.config.reading import ReadOptions
from garboard.documents import Json, write_yaml
from garboard.model.cluster import DEFAULT_IMAGE_REPOSITORY, ClusterConfiguration, control_plane_images
from garboard.model.lifecycle import InitConfiguration
from garboard.node.configuration import complete_config, open_config
from garboard.node.interpreters.runtime import runtime_at
from garboard.node.reporter import OutputFormat

Command = TypeVar("Command", bound=Callable[..., object])


@click.group(epilog="Example: garboard config images list --kubernetes-version v1.36.4")
def images() -> None:
    """List and pull the container images of the control plane."""


def image_options(command: Command) -> Command:
    """Add the options that say which images are meant."""
    options = (
        click.option("--config", type=config_path, metavar="FILE", help="A configuration file; it replaces the flags."),
        click.option(
            "--image-repository", default="registry.k8s.io", show_default=True, help="Where the images come from."
        ),
        click.option("--feature-gates", default="", metavar="A=true,B=false", help="Feature gates of kubeadm."),
        click.option("--strict-config", is_flag=True, help="Refuse unknown fields and repeated keys; else warn."),
        emulated_version_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


@images.command("list", epilog="Example: garboard config images list --config kubeadm.yaml --output json")
@image_options
@output_option
def list_images(output: OutputFormat, **options: Any) -> None:
    """Print the images that a control-plane node needs, one per line."""
    loaded = ImageRequest(**options).load()
    sys.stdout.write(_images_text(control_plane_images(loaded.config.cluster), output))


@images.command("pull", epilog="Example: garboard config images pull --config kubeadm.yaml")
@image_options
@click.option("--cri-socket", default="", metavar="PATH", help="The socket of the container runtime.")
def pull_images(**options: Any) -> None:
    """Pull the images that a control-plane node needs.

    `init` pulls what is missing by itself; this does so beforehand, such as while a machine image is made.
    """
    loaded = ImageRequest(**options, detects_cri=True).load()
    runtime = runtime_at(loaded.config.node_registration.cri_socket, ConsoleReporter().report)
    for image in runtime.pull_each(control_plane_images(loaded.config.cluster)):
        click.echo(f"[config/images] Pulled {image}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRequest:
    """The options, as given."""

    config: Path | None
    image_repository: str
    feature_gates: str
    strict_config: bool
    kubernetes_version: str
    cri_socket: str = ""
    detects_cri: bool = False

    def load(self) -> Loaded[InitConfiguration]:
        """Return the configuration whose images are meant, from a file or from the flags; its warnings are shown."""
        config = self.config if str(self.config or "") not in ("", ".") else None  # as click reads an empty --config
        # A file says its version itself; what the flag says is then not even looked at.
        version = supported_version("stable-1" if config else self.kubernetes_version or "stable-1")
        options = ReadOptions(is_strict=self.strict_config, detects_cri=self.detects_cri and not self.cri_socket)
        notes = ConfigNotes()
        gates = parse_feature_gates(self.feature_gates, version.facts, notes)
        if config is not None:
            loaded = open_config(config, options, version).init()
        else:
            repository = self.image_repository or DEFAULT_IMAGE_REPOSITORY
            cluster = ClusterConfiguration(image_repository=repository, feature_gates=gates)
            loaded = complete_config(InitConfiguration(cluster=cluster), version, options)
        show_warnings((*notes.warnings, *loaded.warnings))
        if not self.cri_socket:
            return loaded
        registration = replace(loaded.config.node_registration, cri_socket=self.cri_socket)
        return replace(loaded, config=replace(loaded.config, node_registration=registration))


def _images_text(names: tuple[str, ...], output: OutputFormat) -> str:
    document: Json = {"kind": "Images", "apiVersion": "output.kubeadm.k8s.io/v1alpha3", "images": [*names]}
    match output:
        case "json":
            return json.dumps(document, indent=4) + "\n"
        case "yaml":
            return write_yaml(document)
        case "text":
            return "".join(f"{name}\n" for name in names)
