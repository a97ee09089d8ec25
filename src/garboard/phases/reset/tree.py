"""The tree of `reset`: phases in kubeadm's order, the same at every minor we know."""

from garboard.phases.reset.cleanup import plan_cleanup
from garboard.phases.reset.context import CLEANUP, REMOVE_MEMBER, ResetContext
from garboard.phases.reset.etcd import plan_remove_member
from garboard.phases.workflow import Phase

PREFLIGHT = "preflight"

RESET: tuple[Phase[ResetContext], ...] = (
    Phase(
        name=PREFLIGHT,
        summary="Check the user, and ask before anything is removed",
        aliases=("pre-flight",),
        flags=("dry-run", "force", "ignore-preflight-errors"),
    ),
    Phase(
        name=REMOVE_MEMBER,
        summary="Remove this node's member from etcd",
        plan=plan_remove_member,
        flags=("dry-run", "kubeconfig"),
    ),
    Phase(
        name=CLEANUP,
        summary="Stop the kubelet and its pods, remove the files",
        plan=plan_cleanup,
        aliases=("cleanupnode",),
        flags=("cert-dir", "cleanup-tmp-dir", "cri-socket", "dry-run"),
    ),
)
