"""`garboard upgrade node`: this node raised to the version of its cluster, as a whole or phase by phase."""

from garboard.cli.flags import switch, text
from garboard.cli.upgrade.flags import DRAIN, DRIFT, LEASE, NODE_FLAGS
from garboard.cli.workflow_commands import WorkflowFlags, WorkflowGroup, by_name
from garboard.node.upgrade import NODE_WORKFLOW
from garboard.phases.upgrade.context import UpgradeContext

UPGRADE_NODE_FLAGS = {
    **NODE_FLAGS,
    **by_name(
        text(
            "kubeconfig",
            "The kubeconfig to use.  [default: that of the administrator, on a worker that of the kubelet]",
            metavar="FILE",
        )
    ),
}

node = WorkflowGroup[UpgradeContext](
    WorkflowFlags(
        NODE_WORKFLOW,
        UPGRADE_NODE_FLAGS,
        more_flags=by_name(switch("yes", "Nothing is asked, with or without it.", letter="y"), DRAIN, DRIFT, LEASE),
        undoes_failures=True,
    ),
    summary="Upgrade this node to the version that `upgrade apply` has given its cluster.",
    epilog="Example: garboard upgrade node --dry-run",
)
