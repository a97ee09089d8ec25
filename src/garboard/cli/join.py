"""`garboard join`: another node of a cluster, as a whole or phase by phase."""

from garboard.cli.flags import choice, string_slice, switch, text
from garboard.cli.workflow_commands import SHARED_FLAGS, WorkflowFlags, WorkflowGroup, by_name
from garboard.model.image import GARBOARD_IMAGE
from garboard.model.tunnel import AGENT_FORMS, DEFAULT_API_SERVER
from garboard.node.join import JOIN_WORKFLOW
from garboard.phases.join.context import JoinContext

JOIN_FLAGS = {
    **SHARED_FLAGS,
    **by_name(
        switch("control-plane", "Make this node a control-plane node."),
        text("discovery-file", "A kubeconfig, or its https URL, that names the cluster.", metavar="FILE"),
        text("discovery-token", "The token that proves who the cluster is."),
        string_slice("discovery-token-ca-cert-hash", "The cluster's CA must have this public key: sha256:…."),
        switch("discovery-token-unsafe-skip-ca-verification", "Trust whoever knows the token."),
        text("tls-bootstrap-token", "The token with which the kubelet asks for its certificate."),
        text("token", "The token for both, discovery and the kubelet."),
    ),
}

# For a node that reaches nothing but the tunnel's server; kubeadm has none of these.
TUNNEL_FLAGS = by_name(
    text("via-tunnel", "Join through the tunnel whose server is there.", metavar="HOST[:PORT]"),
    text("tunnel-credentials", "Where the certificates of `tunnel certs` are, for the agent.", metavar="DIR"),
    text(
        "tunnel-bind-address", "Where the agent listens.  [default: what the API server advertises]", metavar="ADDRESS"
    ),
    choice("tunnel-as", "How the agent runs: a unit of systemd, the default, or a static pod.", AGENT_FORMS),
    text("tunnel-api-server", "The API server, as the tunnel's server reaches it.", DEFAULT_API_SERVER),
    text("tunnel-image", "The image of the static pod (`garboard image`).", GARBOARD_IMAGE),
)

join = WorkflowGroup[JoinContext](
    WorkflowFlags(JOIN_WORKFLOW, JOIN_FLAGS, more_flags=TUNNEL_FLAGS),
    takes="api-server-endpoint",
    summary="Add this machine to a cluster.",
    epilog="Example: garboard join 192.0.2.10:6443 --token abcdef.0123456789abcdef "
    "--discovery-token-unsafe-skip-ca-verification --dry-run\n"
    "Behind a tunnel: garboard join api.example.com:6443 --token abcdef.0123456789abcdef "
    "--discovery-token-unsafe-skip-ca-verification --via-tunnel konnectivity.example.com --tunnel-credentials pki",
)
