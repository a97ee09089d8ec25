"""`garboard completion`."""

import click
from click.shell_completion import get_completion_class


@click.command(epilog='Example: eval "$(garboard completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for SHELL."""
    found = get_completion_class(shell)
    assert found is not None, "click knows the three shells of the choice above"
    click.echo(found(context.find_root().command, {}, "garboard", "_GARBOARD_COMPLETE").source())
