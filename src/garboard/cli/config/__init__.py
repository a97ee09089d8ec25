"""`garboard config`: one module per sub-command; what they share of reading files is in `inputs`."""

import click

from garboard.cli.lazy import LazyCommand, LazyGroup

COMMANDS = {
    "print": LazyCommand("garboard.cli.config.print:print_", "Print default configurations."),
    "validate": LazyCommand("garboard.cli.config.validate:validate", "Check a configuration file."),
    "migrate": LazyCommand("garboard.cli.config.migrate:migrate", "Convert a file to the current API version."),
    "explain": LazyCommand("garboard.cli.config.explain:explain", "Tell where a rendered field's value comes from."),
    "images": LazyCommand("garboard.cli.config.images:images", "List and pull the images of the control plane."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, epilog="Example: garboard config validate --config kubeadm.yaml")
def config() -> None:
    """Print, check and convert kubeadm configurations.

    The kubeadm of the minor that kubernetesVersion names is emulated, byte for byte where something is printed.
    """
