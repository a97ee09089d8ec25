"""The configurations that flags make, and checks of flags: those beside --config, feature gates, the bind address.

A configuration made of flags is completed and validated like one of a file (`load`).
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from garboard.config.problems import ConfigNotes
from garboard.config.versions import ResolvedVersion, resolve_version
from garboard.errors import BadUsage, InvalidValue, as_usage
from garboard.model.addresses import is_global_unicast, parse_ip
from garboard.model.cluster import ClusterConfiguration, Networking
from garboard.model.component import ApiServer, Arg, ControlPlaneComponent
from garboard.model.duration import Duration
from garboard.model.go import BOOLEANS
from garboard.model.image import GARBOARD_IMAGE
from garboard.model.lifecycle import (
    BootstrapToken,
    FileDiscovery,
    InitConfiguration,
    JoinConfiguration,
    JoinControlPlane,
    ResetConfiguration,
    TokenDiscovery,
)
from garboard.model.minors import LOCAL_MODE_GATE, MinorFacts
from garboard.model.node import ApiEndpoint, NodeRegistration
from garboard.model.paths import ADMIN_CONF, DEFAULT_CERTIFICATES_DIR
from garboard.model.tunnel import DEFAULT_API_SERVER, JoinTunnel
from garboard.values import dataclass

FlagValue: TypeAlias = str | bool | int | tuple[str, ...] | tuple[tuple[str, str], ...] | None

# What may stand beside --config.
_BESIDE_CONFIG = frozenset({
    "config", "ignore-preflight-errors", "dry-run", "kubeconfig", "kubeconfig-dir", "node-name", "upload-certs",
    "print-manifest", "allow-missing-template-keys", "output", "show-managed-fields", "print-join-command", "rootfs",
    "v", "log-file", "yes",
    # garboard's own: they say how to read files, not what is in them.
    "strict-config", "strict-patches", "accept", "timings", "undo-on-failure", "diagnostics", "allow-path",
    "abandon-etcd-member", "lease", "via", "drift", "drain",
})  # fmt: skip
# What means nothing to a node that is to be a worker.
_OF_CONTROL_PLANES = frozenset({"apiserver-advertise-address", "apiserver-bind-port", "certificate-key"})


@dataclass(frozen=True, slots=True)
class GivenFlags:
    """What a command line says, by flag name; what is not on it has the flag's default."""

    values: Mapping[str, FlagValue]
    given: frozenset[str] = frozenset()  # those that were really written

    def text(self, name: str) -> str:
        value = self.values.get(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str, default: int) -> int:
        value = self.values.get(name)
        return value if isinstance(value, int) else default

    def switch(self, name: str) -> bool:
        return self.values.get(name) is True

    def list(self, name: str) -> tuple[str, ...]:
        value = self.values.get(name)
        return tuple(each for each in value if isinstance(each, str)) if isinstance(value, tuple) else ()

    def pairs(self, name: str) -> tuple[tuple[str, str], ...]:
        """Return the values of a flag that takes `name=value`, in their order, repeats kept."""
        value = self.values.get(name)
        return tuple(each for each in value if isinstance(each, tuple)) if isinstance(value, tuple) else ()


def init_from_values(flags: GivenFlags, notes: ConfigNotes) -> tuple[InitConfiguration, ResolvedVersion]:
    """Return the configuration that flags alone make, not yet completed."""
    for name in sorted(flags.given):
        if name.endswith("-extra-args"):
            notes.warn(f"Flag --{name} has been deprecated, use extraArgs of ClusterConfiguration instead")
    with as_usage():
        version = resolve_version(flags.text("kubernetes-version") or "stable-1")
        assert version.facts is not None
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
    return tuple(Arg(name, value) for name, value in flags.pairs(f"{component}-extra-args"))


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
        tunnel=_tunnel(flags),
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


def _control_plane(flags: GivenFlags) -> JoinControlPlane | None:
    if not flags.switch("control-plane"):
        return None
    endpoint = ApiEndpoint(
        advertise_address=flags.text("apiserver-advertise-address"),
        bind_port=flags.number("apiserver-bind-port", ApiEndpoint().bind_port),
    )
    return JoinControlPlane(local_api_endpoint=endpoint, certificate_key=flags.text("certificate-key"))


def _tunnel(flags: GivenFlags) -> JoinTunnel | None:
    server, credentials = flags.text("via-tunnel"), flags.text("tunnel-credentials")
    given = sorted(name for name in flags.given if name == "via-tunnel" or name.startswith("tunnel-"))
    if given and not (server and credentials):
        raise BadUsage(
            f"--{given[0]} needs --via-tunnel and --tunnel-credentials",
            hint="name the tunnel's server, and the folder that `garboard tunnel certs` has made",
        )
    if not server:
        return None
    return JoinTunnel(
        server=server,
        credentials_dir=credentials,
        bind_address=flags.text("tunnel-bind-address"),
        agent_form="static-pod" if flags.text("tunnel-as") == "static-pod" else "unit",
        api_server=flags.text("tunnel-api-server") or DEFAULT_API_SERVER,
        image=flags.text("tunnel-image") or GARBOARD_IMAGE,
    )


def ignored_flags(flags: GivenFlags) -> tuple[str, ...]:
    """Return the flags that were given and mean nothing, because the node is to be a worker."""
    if flags.switch("control-plane") or "control-plane" not in flags.values or flags.text("config"):
        return ()
    return tuple(sorted(flags.given & _OF_CONTROL_PLANES))


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


def check_mixed_flags(given: Iterable[str]) -> None:
    """Refuse flags (by name, without dashes) that cannot be combined with a configuration file."""
    names = sorted(given)
    mixed = [name for name in names if name not in _BESIDE_CONFIG and not name.startswith("skip-")]
    if "config" in names and mixed:
        raise BadUsage(
            f"can not mix '--config' with arguments [{' '.join(mixed)}]",
            hint="put these settings into the configuration file, or drop --config",
        )


def parse_feature_gates(text: str, facts: MinorFacts, notes: ConfigNotes) -> dict[str, bool]:
    """Read `--feature-gates A=true,B=false`."""
    stages = {gate.name: gate.stage for gate in facts.feature_gates}
    gates: dict[str, bool] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise BadUsage(f"missing bool value for feature-gate key:{part}")
        if name not in stages and name != LOCAL_MODE_GATE:
            known = ", ".join(stages)
            raise BadUsage(f"unrecognized feature-gate key: {name}", hint=f"kubeadm {facts.minor} knows {known}")
        if stages.get(name) == "DEPRECATED":
            notes.warn(f"Setting deprecated feature gate {name}={value}. It will be removed in a future release.")
        if value not in BOOLEANS:
            raise BadUsage(f"invalid value {value} for feature-gate key: {name}, use true|false instead")
        gates[name] = BOOLEANS[value]
    return gates


def ignored_checks(given: Iterable[str], configured: Iterable[str]) -> frozenset[str]:
    """Combine the names of ignored checks, in lower case; `all` cannot be combined with other names."""
    names = frozenset(name.strip().lower() for name in (*given, *configured))
    if "all" in names and len(names) > 1:
        raise BadUsage(
            f'ignore-preflight-errors: Invalid value: "{",".join(sorted(names))}": '
            "don't specify individual checks if 'all' is used",
            hint="keep all, or the single checks",
        )
    return names


def check_bind_address(advertise_address: str) -> None:
    """Refuse an address at which other nodes cannot reach the API server."""
    address = parse_ip(advertise_address)
    if address is None or not is_global_unicast(address):
        raise InvalidValue(
            f'cannot use "{advertise_address}" as the bind address for the API Server',
            hint="set localAPIEndpoint.advertiseAddress to a global address of this machine",
        )
