"""`garboard upgrade apply`: the cluster and its first node raised to a version, as a whole or phase by phase."""

from functools import partial

from garboard.cli.flags import switch, text
from garboard.cli.upgrade.flags import DRAIN, DRIFT, LEASE, NODE_FLAGS
from garboard.cli.workflow_commands import WorkflowFlags, WorkflowGroup, by_name
from garboard.model.paths import ADMIN_CONF
from garboard.node.upgrade import APPLY_WORKFLOW
from garboard.node.upgrade_cluster import apply_upgrade
from garboard.phases.upgrade.context import UpgradeContext
from garboard.phases.upgrade.tree import NODE
from garboard.phases.workflow import flatten

APPLY_FLAGS = {
    **NODE_FLAGS,
    **by_name(
        switch("allow-experimental-upgrades", "Allow a target that is unstable: an alpha, beta or candidate."),
        switch("allow-release-candidate-upgrades", "Allow a target that is a release candidate."),
        switch("force", "Go on although rules of versions are broken that may be, and do not ask.", letter="f"),
        text("kubeconfig", "The kubeconfig to use.", ADMIN_CONF, metavar="FILE"),
        switch("print-config", "Print the configuration of the cluster that the upgrade starts from."),
        switch("yes", "Do not ask for confirmation.", letter="y"),
    ),
}

# kubeadm has none of it.
VIA = text(
    "via", "Upgrade all nodes, each by this command, such as 'ssh {node} sudo'; garboard is there.", metavar="COMMAND"
)
_PHASES_OF_NODES = frozenset(each.path for each in flatten(NODE))

apply = WorkflowGroup[UpgradeContext](
    WorkflowFlags(
        APPLY_WORKFLOW,
        APPLY_FLAGS,
        more_flags=by_name(VIA, DRAIN, DRIFT, LEASE),
        undoes_failures=True,
        runs=partial(apply_upgrade, others=_PHASES_OF_NODES),
    ),
    takes="version",
    summary="Upgrade the cluster and this node, which is the first one.",
    epilog="Example: garboard upgrade apply v1.37.1 --dry-run\n"
    "All nodes: garboard upgrade apply v1.37.1 --yes --via 'ssh {node} sudo'",
)
