"""The flags of `reset`, and the configuration that they make."""

from garboard.model.cluster import DEFAULT_CERTIFICATES_DIR
from garboard.model.lifecycle import ResetConfiguration
from garboard.phases.flags import CONFIG, DRY_RUN, SHARED_FLAGS, Flag, GivenFlags, by_name

RESET_FLAGS = by_name(
    Flag("cert-dir", "Where the certificates are; it is emptied.", default=DEFAULT_CERTIFICATES_DIR, metavar="DIR"),
    Flag("cleanup-tmp-dir", "Empty /etc/kubernetes/tmp as well.", "switch"),
    CONFIG,
    SHARED_FLAGS["cri-socket"],
    DRY_RUN,
    Flag("force", "Do not ask for confirmation.", "switch", letter="f"),
    SHARED_FLAGS["ignore-preflight-errors"],
    Flag("kubeconfig", "The kubeconfig to use.", default="/etc/kubernetes/admin.conf", metavar="FILE"),
    SHARED_FLAGS["skip-phases"],
)


def reset_from_values(flags: GivenFlags) -> ResetConfiguration:
    """Return the configuration that flags alone make, not yet completed."""
    return ResetConfiguration(
        certificates_dir=flags.text("cert-dir") or DEFAULT_CERTIFICATES_DIR,
        cleanup_tmp_dir=flags.switch("cleanup-tmp-dir"),
        cri_socket=flags.text("cri-socket"),
        dry_run=flags.switch("dry-run"),
        force=flags.switch("force"),
        ignore_preflight_errors=flags.list("ignore-preflight-errors"),
        skip_phases=flags.list("skip-phases"),
    )
