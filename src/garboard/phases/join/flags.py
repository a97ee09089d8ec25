"""The flags of `join`, and the configuration that they make."""

from garboard.model.lifecycle import FileDiscovery, JoinConfiguration, JoinControlPlane, TokenDiscovery
from garboard.model.node import ApiEndpoint, NodeRegistration
from garboard.phases.flags import SHARED_FLAGS, Flag, GivenFlags, by_name

JOIN_FLAGS = {
    **SHARED_FLAGS,
    **by_name(
        Flag("control-plane", "Make this node a control-plane node.", "switch"),
        Flag("discovery-file", "A kubeconfig, or its https URL, that names the cluster.", metavar="FILE"),
        Flag("discovery-token", "The token that proves who the cluster is."),
        Flag("discovery-token-ca-cert-hash", "The cluster's CA must have this public key: sha256:….", "list"),
        Flag("discovery-token-unsafe-skip-ca-verification", "Trust whoever knows the token.", "switch"),
        Flag("tls-bootstrap-token", "The token with which the kubelet asks for its certificate."),
        Flag("token", "The token for both, discovery and the kubelet."),
    ),
}

ADMIN_CONF = "/etc/kubernetes/admin.conf"
_OF_CONTROL_PLANES = frozenset({"apiserver-advertise-address", "apiserver-bind-port", "certificate-key"})


def join_from_values(flags: GivenFlags, endpoint: str | None, *, has_admin: bool = False) -> JoinConfiguration:
    """Return the configuration that flags and the endpoint alone make, not yet completed.

    With `has_admin`, a control plane needs no discovery: an earlier phase has made admin.conf.
    """
    is_known = has_admin and flags.switch("control-plane")
    return JoinConfiguration(
        discovery=FileDiscovery(kube_config_path=ADMIN_CONF) if is_known else _discovery(flags, endpoint),
        tls_bootstrap_token=flags.text("tls-bootstrap-token") or flags.text("token"),
        node_registration=NodeRegistration(
            name=flags.text("node-name"),
            cri_socket=flags.text("cri-socket"),
            ignore_preflight_errors=flags.list("ignore-preflight-errors"),
        ),
        control_plane=_control_plane(flags),
        patches_directory=flags.text("patches") or None,
    )


def _discovery(flags: GivenFlags, endpoint: str | None) -> TokenDiscovery | FileDiscovery:
    if "discovery-file" not in flags.values:
        # A phase that comes after discovery: by then, the node has this file.
        return FileDiscovery(kube_config_path=ADMIN_CONF)
    if path := flags.text("discovery-file"):
        return FileDiscovery(kube_config_path=path)
    return TokenDiscovery(
        token=flags.text("discovery-token") or flags.text("token"),
        api_server_endpoint=endpoint or "",
        ca_cert_hashes=flags.list("discovery-token-ca-cert-hash"),
        unsafe_skip_ca_verification=flags.switch("discovery-token-unsafe-skip-ca-verification"),
    )


def ignored_flags(flags: GivenFlags) -> tuple[str, ...]:
    """Return the flags that were given and mean nothing, because the node is to be a worker."""
    if flags.switch("control-plane") or "control-plane" not in flags.values or flags.text("config"):
        return ()
    return tuple(sorted(flags.given & _OF_CONTROL_PLANES))


def _control_plane(flags: GivenFlags) -> JoinControlPlane | None:
    if not flags.switch("control-plane"):
        return None
    endpoint = ApiEndpoint(
        advertise_address=flags.text("apiserver-advertise-address"),
        bind_port=flags.number("apiserver-bind-port", ApiEndpoint().bind_port),
    )
    return JoinControlPlane(local_api_endpoint=endpoint, certificate_key=flags.text("certificate-key"))
