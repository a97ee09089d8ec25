"""The flags that `upgrade apply` and `upgrade node` share."""

import click

from garboard.cli.flags import enabled, string_slice, switch, text
from garboard.cli.workflow_commands import CONFIG, DRY_RUN, SHARED_FLAGS, by_name

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
LEASE = click.Option(["--lease"], metavar="HOLDER:TOKEN", default="", hidden=True)
