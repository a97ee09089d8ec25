"""What init, join, reset and upgrade are asked to do, each as one value."""

from dataclasses import field

from garboard.model.cluster import ClusterConfiguration
from garboard.model.duration import Duration
from garboard.model.node import DEFAULT_IMAGE_PULL_POLICY, ApiEndpoint, ImagePullPolicy, NodeRegistration, Timeouts
from garboard.model.paths import DEFAULT_CERTIFICATES_DIR
from garboard.model.tunnel import JoinTunnel
from garboard.values import dataclass

DEFAULT_CA_CERT_PATH = f"{DEFAULT_CERTIFICATES_DIR}/ca.crt"
DEFAULT_TOKEN_TTL = Duration.of(hours=24)
DEFAULT_TOKEN_USAGES = ("signing", "authentication")
DEFAULT_TOKEN_GROUPS = ("system:bootstrappers:kubeadm:default-node-token",)


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapToken:
    """A token that lets nodes join; its secret half never shows in a `repr`."""

    token: str = field(default="", repr=False)
    description: str = ""
    ttl: Duration | None = DEFAULT_TOKEN_TTL  # 0s: never expires; None only where `expires` is given
    expires: str = ""  # RFC 3339
    usages: tuple[str, ...] = DEFAULT_TOKEN_USAGES
    groups: tuple[str, ...] = DEFAULT_TOKEN_GROUPS

    @property
    def token_id(self) -> str:
        return self.token.partition(".")[0]

    @property
    def token_secret(self) -> str:
        return self.token.partition(".")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class InitConfiguration:
    """The first control-plane node, with the cluster that it starts."""

    cluster: ClusterConfiguration = field(default_factory=ClusterConfiguration)
    bootstrap_tokens: tuple[BootstrapToken, ...] = (BootstrapToken(),)
    dry_run: bool = False
    node_registration: NodeRegistration = field(default_factory=NodeRegistration)
    local_api_endpoint: ApiEndpoint = field(default_factory=ApiEndpoint)
    certificate_key: str = field(default="", repr=False)
    skip_phases: tuple[str, ...] = ()
    patches_directory: str | None = None  # "": patches were asked for without a directory
    timeouts: Timeouts = field(default_factory=Timeouts)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenDiscovery:
    """Trust the cluster that answers at an endpoint and can prove that it knows the token."""

    token: str = field(repr=False)
    api_server_endpoint: str
    ca_cert_hashes: tuple[str, ...] = ()
    unsafe_skip_ca_verification: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiscovery:
    """Trust the cluster that a kubeconfig file (a path or an https URL) names."""

    kube_config_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinControlPlane:
    local_api_endpoint: ApiEndpoint = field(default_factory=ApiEndpoint)
    certificate_key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinConfiguration:
    """A node that joins; as a control-plane node when `control_plane` is given."""

    discovery: TokenDiscovery | FileDiscovery
    tls_bootstrap_token: str = field(default="", repr=False)
    dry_run: bool = False
    node_registration: NodeRegistration = field(default_factory=NodeRegistration)
    ca_cert_path: str = DEFAULT_CA_CERT_PATH
    control_plane: JoinControlPlane | None = None
    tunnel: JoinTunnel | None = None  # garboard's own: None where the API server is reached directly
    skip_phases: tuple[str, ...] = ()
    patches_directory: str | None = None  # "": patches were asked for without a directory
    timeouts: Timeouts = field(default_factory=Timeouts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetConfiguration:
    certificates_dir: str = DEFAULT_CERTIFICATES_DIR
    cleanup_tmp_dir: bool = False
    cri_socket: str = ""
    dry_run: bool = False
    force: bool = False
    ignore_preflight_errors: tuple[str, ...] = ()
    skip_phases: tuple[str, ...] = ()
    unmount_flags: tuple[str, ...] = ()
    timeouts: Timeouts = field(default_factory=Timeouts)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeNode:
    certificate_renewal: bool = True
    dry_run: bool | None = None
    etcd_upgrade: bool = True
    ignore_preflight_errors: tuple[str, ...] = ()
    skip_phases: tuple[str, ...] = ()
    patches_directory: str | None = None  # "": patches were asked for without a directory
    image_pull_policy: ImagePullPolicy = DEFAULT_IMAGE_PULL_POLICY
    image_pull_serial: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeApply(UpgradeNode):
    kubernetes_version: str = ""
    allow_experimental_upgrades: bool | None = None
    allow_rc_upgrades: bool | None = None
    force_upgrade: bool | None = None
    print_config: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradePlan:
    kubernetes_version: str = ""
    allow_experimental_upgrades: bool | None = None
    allow_rc_upgrades: bool | None = None
    dry_run: bool | None = None
    etcd_upgrade: bool = True
    ignore_preflight_errors: tuple[str, ...] = ()
    print_config: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeDiff:
    kubernetes_version: str = ""
    context_lines: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeConfiguration:
    """What `upgrade apply`, `node`, `plan` and `diff` are asked to do.

    A switch that is `None` was not given in the file: a flag, or its own default, decides.
    """

    apply: UpgradeApply = field(default_factory=UpgradeApply)
    node: UpgradeNode = field(default_factory=UpgradeNode)
    plan: UpgradePlan = field(default_factory=UpgradePlan)
    diff: UpgradeDiff = field(default_factory=UpgradeDiff)
    timeouts: Timeouts = field(default_factory=Timeouts)
