"""`garboard token generate`."""

import click


@click.command(epilog="Example: garboard token generate")
def generate() -> None:
    """Print a random token, for a configuration file or `token create`; no cluster is asked."""
    from garboard.host.facts import MachineFacts

    click.echo(MachineFacts().new_token())
