"""`garboard reset`: this machine is no node any more, as a whole or phase by phase."""

from garboard.cli.flags import string_slice, switch, text
from garboard.cli.workflow_commands import CONFIG, DRY_RUN, SHARED_FLAGS, WorkflowFlags, WorkflowGroup, by_name
from garboard.model.paths import ADMIN_CONF, DEFAULT_CERTIFICATES_DIR
from garboard.node.reset import RESET_WORKFLOW
from garboard.phases.reset import ResetContext

RESET_FLAGS = by_name(
    text("cert-dir", "Where the certificates are; they are removed.", DEFAULT_CERTIFICATES_DIR, metavar="DIR"),
    switch("cleanup-tmp-dir", "Empty /etc/kubernetes/tmp as well."),
    CONFIG,
    SHARED_FLAGS["cri-socket"],
    DRY_RUN,
    switch("force", "Do not ask for confirmation.", letter="f"),
    SHARED_FLAGS["ignore-preflight-errors"],
    text("kubeconfig", "The kubeconfig to use.", ADMIN_CONF, metavar="FILE"),
    SHARED_FLAGS["skip-phases"],
)
# kubeadm has none of these.
SAFETY_FLAGS = by_name(
    string_slice("allow-path", "Empty this folder even if it holds what kubeadm does not make.", metavar="DIR"),
    switch("abandon-etcd-member", "If etcd cannot be asked to remove this node's member, leave it there, and go on."),
)

reset = WorkflowGroup[ResetContext](
    WorkflowFlags(
        RESET_WORKFLOW,
        RESET_FLAGS,
        own_flags=("strict-config", "timings"),
        more_flags=SAFETY_FLAGS,
        is_undoable=False,
    ),
    summary="Remove what init or join made on this machine, its etcd member first.",
    epilog="Example: garboard reset --dry-run --cert-dir /srv/pki --allow-path /srv/pki",
)
