"""`garboard token delete`."""

import click

from garboard.cli.token.access import dry_run_option, kubeconfig_option
from garboard.node.tokens import delete_tokens, find_kubeconfig, find_tokens
from garboard.phases.tokens import plan_deletion, token_id_of


@click.command(epilog="Example: garboard token delete abcdef")
@click.argument("tokens", nargs=-1, required=True, metavar="TOKEN…")
@kubeconfig_option
@dry_run_option
def delete(tokens: tuple[str, ...], kubeconfig: str | None, dry_run: bool) -> None:
    """Delete tokens, each given as a whole or by its id, the six characters before the dot."""
    # What is no token is refused before the first one goes.
    plan = plan_deletion([token_id_of(each) for each in tokens])
    admin = find_kubeconfig(kubeconfig)
    if dry_run:
        find_tokens(plan, admin, lambda each: click.echo(f'bootstrap token "{each}" would be deleted'))
    else:
        delete_tokens(plan, admin, lambda each: click.echo(f'bootstrap token "{each}" deleted'))
