"""`garboard token delete`."""

import click

from garboard.cli.token.access import dry_run_option, find_kubeconfig, kubeconfig_option


@click.command(epilog="Example: garboard token delete abcdef")
@click.argument("tokens", nargs=-1, required=True, metavar="TOKEN…")
@kubeconfig_option
@dry_run_option
def delete(tokens: tuple[str, ...], kubeconfig: str | None, dry_run: bool) -> None:
    """Delete tokens, each given as a whole or by its id, the six characters before the dot."""
    from garboard.engine import DeleteObject
    from garboard.manifests.objects import KUBE_SYSTEM
    from garboard.phases.tokens import secret_name, token_id_of

    # What is no token is refused before the first one goes.
    identifiers = [token_id_of(each) for each in tokens]
    with find_kubeconfig(kubeconfig).connect() as cluster:
        for each in identifiers:
            action = DeleteObject(api_version="v1", kind="Secret", namespace=KUBE_SYSTEM, name=secret_name(each))
            cluster.require(action.kind, action.namespace, action.name)
            if not dry_run:
                cluster.delete(action)
            click.echo(f'bootstrap token "{each}" {"would be " if dry_run else ""}deleted')
