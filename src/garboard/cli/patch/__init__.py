"""`garboard patch`: one module per sub-command; `inputs` and `patching` hold what they share."""

import click

from garboard.cli.lazy import LazyCommand, LazyGroup

COMMANDS = {
    "apply": LazyCommand("garboard.cli.patch.apply:apply", "Apply patches to manifests."),
    "diff": LazyCommand("garboard.cli.patch.diff:diff", "Show what patches change."),
    "lint": LazyCommand("garboard.cli.patch.lint:lint", "Check patches against the fields and flags of a minor."),
    "new": LazyCommand("garboard.cli.patch.new:new", "Begin a patch from what is rendered or on disk."),
    "explain": LazyCommand("garboard.cli.patch.explain:explain", "Tell where a field's value comes from."),
    "compile": LazyCommand("garboard.cli.patch.compile:compile_", "Write a patch tree as a plain kubeadm directory."),
    "capture": LazyCommand("garboard.cli.patch.capture:capture", "Turn a hand edit into the smallest patch."),
    "create": LazyCommand("garboard.cli.patch.create:create", "Compute a strategic patch, two-way or three-way."),
    "schema": LazyCommand("garboard.cli.patch.schema:schema", "Print a JSON schema for editors."),
}


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    epilog="Example: garboard patch apply -f kube-apiserver.yaml --target kube-apiserver --patches ./patches",
)
def patch() -> None:
    """Apply, check, explain and make patches.

    The commands are strict: a patch that takes no effect or has a misspelt field is an error. Pass --compat for what
    kubectl and kubeadm do, quirks included.
    """
