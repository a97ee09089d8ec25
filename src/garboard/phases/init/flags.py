"""The flags of `init`, and the configuration that they make."""

from garboard.config import Notes, ResolvedVersion, parse_feature_gates, resolve_version
from garboard.errors import BadUsage
from garboard.model.cluster import ClusterConfiguration, Networking
from garboard.model.component import ApiServer, Arg, ControlPlaneComponent
from garboard.model.duration import Duration
from garboard.model.lifecycle import BootstrapToken, InitConfiguration
from garboard.model.node import ApiEndpoint, NodeRegistration
from garboard.phases.flags import SHARED_FLAGS, Flag, GivenFlags, by_name

INIT_FLAGS = {
    **SHARED_FLAGS,
    **by_name(
        Flag("apiserver-cert-extra-sans", "More names and addresses of the API server.", "list", metavar="NAMES"),
        Flag("cert-dir", "Where the certificates are.", default="/etc/kubernetes/pki", metavar="DIR"),
        Flag("control-plane-endpoint", "The endpoint all API servers share.", metavar="HOST[:PORT]"),
        Flag("feature-gates", "kubeadm's feature gates, such as RootlessControlPlane=true.", metavar="GATES"),
        Flag("image-repository", "Where the images of the control plane come from.", default="registry.k8s.io"),
        Flag("kubernetes-version", "The version of the control plane; kubeadm of its minor is emulated.",
             default="stable-1", metavar="VERSION"),
        Flag("pod-network-cidr", "The addresses of pods.", metavar="CIDR"),
        Flag("service-cidr", "The addresses of services.", default="10.96.0.0/12", metavar="CIDR"),
        Flag("service-dns-domain", "The domain of services.", default="cluster.local"),
        Flag("skip-certificate-key-print", "Do not print the key that shared certificates are encrypted with.",
             "switch"),
        Flag("skip-token-print", "Do not print the bootstrap token.", "switch"),
        Flag("token", "The bootstrap token, such as abcdef.0123456789abcdef."),
        Flag("token-ttl", "After how long the token is deleted; 0 for never.", default="24h0m0s"),
        Flag("upload-certs", "Share the certificates through the Secret kubeadm-certs.", "switch"),
        # Only phases have the following ones.
        Flag("kubeconfig", "The kubeconfig to use.", default="/etc/kubernetes/admin.conf", metavar="FILE"),
        Flag("kubeconfig-dir", "Where the kubeconfigs are.", default="/etc/kubernetes", metavar="DIR"),
        Flag("print-manifest", "Print the objects and change nothing.", "switch"),
        *(
            Flag(f"{component}-extra-args", "Deprecated: use extraArgs of a configuration file.", "map", is_hidden=True)
            for component in ("apiserver", "controller-manager", "scheduler")
        ),
    ),
}  # fmt: skip
PHASE_ONLY_FLAGS = (
    "kubeconfig", "kubeconfig-dir", "print-manifest",
    "apiserver-extra-args", "controller-manager-extra-args", "scheduler-extra-args",
)  # fmt: skip


def init_from_values(flags: GivenFlags, notes: Notes) -> tuple[InitConfiguration, ResolvedVersion]:
    """Return the configuration that flags alone make, not yet completed."""
    for name in sorted(flags.given):
        if name.endswith("-extra-args"):
            notes.warn(f"Flag --{name} has been deprecated, use extraArgs of ClusterConfiguration instead")
    version = resolve_version(flags.text("kubernetes-version") or "stable-1")
    defaults = ClusterConfiguration()
    networking = defaults.networking
    cluster = ClusterConfiguration(
        control_plane_endpoint=flags.text("control-plane-endpoint"),
        certificates_dir=flags.text("cert-dir") or defaults.certificates_dir,
        image_repository=flags.text("image-repository") or defaults.image_repository,
        feature_gates=parse_feature_gates(flags.text("feature-gates"), version.facts, notes),
        networking=Networking(
            service_subnet=flags.text("service-cidr") or networking.service_subnet,
            pod_subnet=flags.text("pod-network-cidr"),
            dns_domain=flags.text("service-dns-domain") or networking.dns_domain,
        ),
        api_server=ApiServer(
            cert_sans=flags.list("apiserver-cert-extra-sans"), extra_args=_extra_args(flags, "apiserver")
        ),
        controller_manager=ControlPlaneComponent(extra_args=_extra_args(flags, "controller-manager")),
        scheduler=ControlPlaneComponent(extra_args=_extra_args(flags, "scheduler")),
    )
    init = InitConfiguration(
        cluster=cluster,
        bootstrap_tokens=(_token(flags),),
        node_registration=NodeRegistration(
            name=flags.text("node-name"),
            cri_socket=flags.text("cri-socket"),
            ignore_preflight_errors=flags.list("ignore-preflight-errors"),
        ),
        local_api_endpoint=ApiEndpoint(
            advertise_address=flags.text("apiserver-advertise-address"),
            # 0 is what nobody has set to kubeadm, and then defaulted.
            bind_port=flags.number("apiserver-bind-port", 0) or ApiEndpoint().bind_port,
        ),
        certificate_key=flags.text("certificate-key"),
        patches_directory=flags.text("patches") or None,
    )
    return init, version


def _token(flags: GivenFlags) -> BootstrapToken:
    ttl = flags.text("token-ttl")
    token = BootstrapToken(token=flags.text("token"))
    return BootstrapToken(token=token.token, ttl=Duration.parse(ttl)) if ttl else token


def _extra_args(flags: GivenFlags, component: str) -> tuple[Arg, ...]:
    """Read `name=value,…` in its order, repeats kept."""
    found = []
    for text in flags.texts(f"{component}-extra-args"):
        for part in text.split(","):
            name, equals, value = part.partition("=")
            if not equals or "=" in value:
                raise BadUsage(
                    f'invalid argument "{text}" for "--{component}-extra-args" flag: '
                    f"malformed key=value pair in flag value: {text}"
                )
            found.append(Arg(name, value))
    return tuple(found)
