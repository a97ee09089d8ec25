"""`garboard token create`."""

from pathlib import Path

import click

from garboard.cli.config.inputs import show_warnings
from garboard.cli.flags import STRING_SLICE, joined
from garboard.cli.token.access import dry_run_option, kubeconfig_option
from garboard.config import (
    ConfigFile,
    FixedFacts,
    ReadOptions,
    ResolvedVersion,
    check_mixed_flags,
    init_from_flags,
)
from garboard.errors import BadUsage
from garboard.host import read_file
from garboard.model import DEFAULT_VERSION
from garboard.model.duration import Duration
from garboard.model.lifecycle import DEFAULT_TOKEN_GROUPS, DEFAULT_TOKEN_USAGES, BootstrapToken, InitConfiguration
from garboard.node.configuration import new_token
from garboard.node.tokens import create_tokens, find_kubeconfig
from garboard.phases.next_steps import join_command
from garboard.phases.tokens import plan_tokens

_DEFAULT_TTL = "24h0m0s"
# The defaults of lists are kubeadm's when nothing, or nothing but empty text, is given.
_USAGES, _GROUPS = "signing,authentication", "system:bootstrappers:kubeadm:default-node-token"


@click.command(epilog="Example: garboard token create --print-join-command --ttl 2h")
@click.argument("token", required=False)
@click.option(
    "--ttl", default=_DEFAULT_TTL, show_default=True, metavar="DURATION", help="How long it holds; 0: always."
)
@click.option(
    "--usages", type=STRING_SLICE, multiple=True, callback=joined, help=f"What it is good for.  [default: {_USAGES}]"
)
@click.option(
    "--groups", type=STRING_SLICE, multiple=True, callback=joined, help=f"Groups of who uses it.  [default: {_GROUPS}]"
)
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
    check_mixed_flags(_given(context))
    if certificate_key and not print_join_command:
        raise BadUsage("cannot use --certificate-key without --print-join-command", hint="add --print-join-command")
    tokens = _from_flags(token or "", ttl, usages, groups, description) if config is None else _from_file(config, token)
    admin = find_kubeconfig(kubeconfig)
    command = join_command(admin.data, admin.path, admin.read, token=tokens[0].token, certificate_key=certificate_key)
    plan = plan_tokens(tokens)
    if not dry_run:
        create_tokens(plan, admin)
    click.echo(command.line() if print_join_command else tokens[0].token)


def _given(context: click.Context) -> list[str]:
    written = (name for name in context.params if name != "token")
    line = click.core.ParameterSource.COMMANDLINE
    return [name.replace("_", "-") for name in written if context.get_parameter_source(name) is line]


def _from_flags(
    token: str, ttl: str, usages: tuple[str, ...], groups: tuple[str, ...], description: str
) -> tuple[BootstrapToken, ...]:
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


def _from_file(path: Path, token: str | None) -> tuple[BootstrapToken, ...]:
    if token:
        raise BadUsage("--config names the tokens, so none can be given beside it", hint="drop one of the two")
    file = ConfigFile.read(read_file(path), file=str(path), host=_facts(), options=ReadOptions(detects_cri=False))
    loaded = file.init()
    show_warnings(loaded.warnings)
    return loaded.config.bootstrap_tokens


def _facts() -> FixedFacts:
    """Return placeholder facts of the machine: of a configuration's defaults, only the token is used here."""
    return FixedFacts(token=new_token())
