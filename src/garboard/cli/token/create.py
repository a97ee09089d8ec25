"""`garboard token create`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from garboard.cli.token.access import dry_run_option, find_kubeconfig, kubeconfig_option
from garboard.errors import BadUsage
from garboard.model.go_flags import split_list

if TYPE_CHECKING:
    from garboard.config import FixedFacts
    from garboard.kube import KubeClient
    from garboard.model.lifecycle import BootstrapToken

_DEFAULT_TTL = "24h0m0s"
# The defaults of lists are kubeadm's when nothing, or nothing but empty text, is given.
_USAGES, _GROUPS = "signing,authentication", "system:bootstrappers:kubeadm:default-node-token"


@click.command(epilog="Example: garboard token create --print-join-command --ttl 2h")
@click.argument("token", required=False)
@click.option(
    "--ttl", default=_DEFAULT_TTL, show_default=True, metavar="DURATION", help="How long it holds; 0: always."
)
@click.option("--usages", multiple=True, metavar="LIST", help=f"What it is good for.  [default: {_USAGES}]")
@click.option("--groups", multiple=True, metavar="LIST", help=f"Groups of who uses it.  [default: {_GROUPS}]")
@click.option("--description", default="", help="What it is for, in words.")
@click.option("--print-join-command", is_flag=True, help="Print the whole command that makes a node join.")
@click.option("--certificate-key", help="With --print-join-command: let the node become a control plane.")
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="A kubeadm configuration file.")
@kubeconfig_option
@dry_run_option
@click.pass_context
def create(
    context: click.Context,
    token: str | None,
    ttl: str,
    usages: tuple[str, ...],
    groups: tuple[str, ...],
    description: str,
    print_join_command: bool,
    certificate_key: str | None,
    config: Path | None,
    kubeconfig: str | None,
    dry_run: bool,
) -> None:
    """Make a token in the cluster, TOKEN or a random one, and print it.

    With --config, every token of the file is made and the first one printed.
    """
    from garboard.config import check_mixed_flags
    from garboard.phases.join_command import join_command

    check_mixed_flags(_given(context))
    if certificate_key and not print_join_command:
        raise BadUsage("cannot use --certificate-key without --print-join-command", hint="add --print-join-command")
    if config is None:
        tokens = _from_flags(token or "", ttl, _parts(usages), _parts(groups), description)
    else:
        tokens = _from_file(config, token)
    admin = find_kubeconfig(kubeconfig)
    command = join_command(admin.data, admin.path, admin.read, token=tokens[0].token, certificate_key=certificate_key)
    if not dry_run:
        _put(admin.connect(), tokens)
    click.echo(command.line() if print_join_command else tokens[0].token)


def _given(context: click.Context) -> list[str]:
    written = (name for name in context.params if name != "token")
    line = click.core.ParameterSource.COMMANDLINE
    return [name.replace("_", "-") for name in written if context.get_parameter_source(name) is line]


def _parts(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part for text in texts for part in split_list(text))


def _from_flags(
    token: str, ttl: str, usages: tuple[str, ...], groups: tuple[str, ...], description: str
) -> "tuple[BootstrapToken, ...]":
    from garboard.config import ReadOptions, ResolvedVersion, init_from_flags
    from garboard.model import DEFAULT_VERSION
    from garboard.model.duration import Duration
    from garboard.model.lifecycle import DEFAULT_TOKEN_GROUPS, DEFAULT_TOKEN_USAGES, BootstrapToken, InitConfiguration

    asked = BootstrapToken(
        token=token,
        description=description,
        ttl=Duration.parse(ttl),
        usages=usages or DEFAULT_TOKEN_USAGES,
        groups=groups or DEFAULT_TOKEN_GROUPS,
    )
    init = InitConfiguration(bootstrap_tokens=(asked,))
    version = ResolvedVersion(str(DEFAULT_VERSION))
    return init_from_flags(init, version, _facts(), ReadOptions(detects_cri=False)).config.bootstrap_tokens


def _from_file(path: Path, token: str | None) -> "tuple[BootstrapToken, ...]":
    from garboard.cli.config.inputs import show_warnings
    from garboard.config import ConfigFile, ReadOptions
    from garboard.host import read_file

    if token:
        raise BadUsage("--config names the tokens, so none can be given beside it", hint="drop one of the two")
    file = ConfigFile.read(read_file(path), file=str(path), host=_facts(), options=ReadOptions(detects_cri=False))
    loaded = file.init()
    show_warnings(loaded.warnings)
    return loaded.config.bootstrap_tokens


def _facts() -> "FixedFacts":
    """Return what stands for this machine: of all that a configuration asks of one, only the token is used."""
    from garboard.config import FixedFacts
    from garboard.host.facts import MachineFacts

    return FixedFacts(token=MachineFacts().new_token())


def _put(cluster: "KubeClient", tokens: "tuple[BootstrapToken, ...]") -> None:
    from datetime import UTC, datetime

    from garboard.errors import GarboardError
    from garboard.kube import ObjectExists
    from garboard.phases.tokens import token_action

    with cluster:
        for each in tokens:
            try:
                cluster.create(token_action(each, datetime.now(UTC)))
            except ObjectExists as error:
                raise GarboardError(
                    f'a token with id "{each.token_id}" already exists',
                    hint=f"delete it first: garboard token delete {each.token_id}",
                    error_class=error.error_class,
                ) from error
