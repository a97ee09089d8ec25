"""`garboard init`: the first control-plane node, as a whole or phase by phase."""

from garboard.cli.flags import string_map, string_slice, switch, text
from garboard.cli.workflow_commands import SHARED_FLAGS, WorkflowFlags, WorkflowGroup, by_name
from garboard.model.paths import ADMIN_CONF
from garboard.node.init import INIT_WORKFLOW
from garboard.phases.init import InitContext

INIT_FLAGS = {
    **SHARED_FLAGS,
    **by_name(
        string_slice("apiserver-cert-extra-sans", "More names and addresses of the API server.", metavar="NAMES"),
        text("cert-dir", "Where the certificates are.", "/etc/kubernetes/pki", metavar="DIR"),
        text("control-plane-endpoint", "The endpoint all API servers share.", metavar="HOST[:PORT]"),
        text("feature-gates", "kubeadm's feature gates, such as RootlessControlPlane=true.", metavar="GATES"),
        text("image-repository", "Where the images of the control plane come from.", "registry.k8s.io"),
        text("kubernetes-version", "The version of the control plane; kubeadm of its minor is emulated.", "stable-1",
             metavar="VERSION"),
        text("pod-network-cidr", "The addresses of pods.", metavar="CIDR"),
        text("service-cidr", "The addresses of services.", "10.96.0.0/12", metavar="CIDR"),
        text("service-dns-domain", "The domain of services.", "cluster.local"),
        switch("skip-certificate-key-print", "Do not print the key that shared certificates are encrypted with."),
        switch("skip-token-print", "Do not print the bootstrap token."),
        text("token", "The bootstrap token, such as abcdef.0123456789abcdef."),
        text("token-ttl", "After how long the token is deleted; 0 for never.", "24h0m0s"),
        switch("upload-certs", "Share the certificates through the Secret kubeadm-certs."),
    ),
}  # fmt: skip
PHASE_ONLY_FLAGS = by_name(
    text("kubeconfig", "The kubeconfig to use.", ADMIN_CONF, metavar="FILE"),
    text("kubeconfig-dir", "Where the kubeconfigs are.", "/etc/kubernetes", metavar="DIR"),
    switch("print-manifest", "Print the objects and change nothing."),
    *(
        string_map(f"{component}-extra-args", "Deprecated: use extraArgs of a configuration file.", hidden=True)
        for component in ("apiserver", "controller-manager", "scheduler")
    ),
)

init = WorkflowGroup[InitContext](
    WorkflowFlags(INIT_WORKFLOW, INIT_FLAGS, phase_only_flags=PHASE_ONLY_FLAGS),
    summary="Set up the first control-plane node of a cluster.",
    epilog="Example: garboard init --config kubeadm.yaml --dry-run",
)
