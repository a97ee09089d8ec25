"""The flags that `upgrade apply` and `upgrade node` share."""

from collections.abc import Callable, Sequence

import click

from garboard.cli.flags import enabled, string_slice, switch, text, with_truths
from garboard.cli.workflow_commands import CONFIG, DRY_RUN, OUTPUT, OWN_FLAGS, SHARED_FLAGS, by_name

NODE_FLAGS = by_name(
    enabled("certificate-renewal", "Renew the certificates of the components that change."),
    CONFIG,
    DRY_RUN,
    enabled("etcd-upgrade", "Upgrade etcd."),
    string_slice("ignore-preflight-errors", "Checks whose errors are only warnings; all for all.", metavar="CHECKS"),
    text(
        "patches",
        "A directory of patches, named target[suffix][+patchtype].{yaml|json}.  [default: those recorded for the node]",
        metavar="DIR",
    ),
    SHARED_FLAGS["skip-phases"],
)
DRIFT = string_slice(
    "drift",
    "What becomes of live differences that nothing explains: keep (as patches, which are recorded), drop or abort; for"
    " one of them NAME=keep, where NAME is a component or COMPONENT:FIELD, such as kube-apiserver:--profiling.",
    metavar="[NAME=]CHOICE",
)
DRAIN = switch(
    "drain", "Evict the pods of this node first, restart its kubelet with what is installed by then, and uncordon it."
)
KUBECONFIG = text("kubeconfig", "The kubeconfig to use.  [default: that of the administrator]", metavar="FILE")
_SHOWN = ("certificate-renewal", "config", "etcd-upgrade", "ignore-preflight-errors", "patches", "skip-phases")
LEASE = click.Option(["--lease"], metavar="HOLDER:TOKEN", default="", hidden=True)


class PreviewCommand(click.Command):
    """A command that shows what an upgrade would do; it takes the flags of an upgrade that decide about its plan."""

    def __init__(self, name: str, run: Callable[..., None], own: Sequence[click.Option], *, summary: str, epilog: str):
        shared = (NODE_FLAGS[each] for each in _SHOWN)
        read = (OWN_FLAGS[each] for each in ("strict-config", "strict-patches", "accept"))
        version = click.Argument(["version"], required=False, metavar="[VERSION]")
        params: list[click.Parameter] = [version, *own, *shared, KUBECONFIG, DRIFT, *read, OUTPUT]
        super().__init__(name, callback=run, params=params, help=summary, epilog=epilog)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_truths(self.params, args))
