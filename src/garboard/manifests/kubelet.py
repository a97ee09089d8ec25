"""The kubelet's files on a node: config.yaml, instance-config.yaml and kubeadm-flags.env."""

from collections.abc import Iterator, Mapping, Sequence

from garboard.documents import DocumentPath, Json, marshal_yaml
from garboard.errors import BadDocument
from garboard.manifests.container import Argument, last_arg, merged_arguments
from garboard.manifests.node import NodeHost
from garboard.manifests.objects import Patcher, RenderedFile, unpatched
from garboard.manifests.sources import ConfigField, HostFact, ValueSource, cluster_field
from garboard.model.cluster import ClusterConfiguration
from garboard.model.component import Arg
from garboard.model.go import go_quote, join_path
from garboard.model.node import NodeRegistration, Taint
from garboard.model.paths import KUBELET_DIR

CONFIG_FILE = f"{KUBELET_DIR}/config.yaml"
INSTANCE_CONFIG_FILE = f"{KUBELET_DIR}/instance-config.yaml"
FLAGS_FILE = f"{KUBELET_DIR}/kubeadm-flags.env"
PATCH_TARGET, KIND = "kubeletconfiguration", "KubeletConfiguration"

# Where kubeadm takes a value from that the user's KubeletConfiguration leaves open; everything else is a default.
_DERIVED: Mapping[DocumentPath, ValueSource] = {
    ("clusterDNS",): cluster_field("networking", "serviceSubnet"),
    ("clusterDomain",): cluster_field("networking", "dnsDomain"),
    ("authentication", "x509", "clientCAFile"): cluster_field("certificatesDir"),
    ("resolvConf",): HostFact("systemd-resolved is active"),
}
_SYSTEMD_RESOLV_CONF = "/run/systemd/resolve/resolv.conf"
_MODE = 0o644


def client_certificate_path(args: Sequence[Arg]) -> str:
    """Return where a kubelet with these flags keeps the client certificate that it asked for and renews by itself."""
    folder = last_arg(args, "cert-dir")
    return join_path(folder[1].value if folder else join_path(KUBELET_DIR, "pki"), "kubelet-client-current.pem")


def with_resolv_conf(configuration: dict[str, Json], host: NodeHost) -> dict[str, Json]:
    """Point the kubelet past systemd-resolved's stub, whose address means nothing inside a pod.

    kubeadm up to 1.37.0 uploads this as well (`has_resolv_conf_leak`), when init writes and uploads in one run.
    """
    if not host.is_systemd_resolved_active or configuration.get("resolvConf") is not None:
        return configuration
    return {**configuration, "resolvConf": _SYSTEMD_RESOLV_CONF}


def config_file(
    configuration: dict[str, Json],
    cluster: ClusterConfiguration,
    registration: NodeRegistration,
    host: NodeHost,
    patcher: Patcher = unpatched,
) -> RenderedFile:
    """Return config.yaml: the cluster's configuration, then the user's patches, then this node's own values."""
    document = patcher(PATCH_TARGET, with_resolv_conf(configuration, host))
    if cluster.has_instance_config:
        if not isinstance(document, dict):
            raise BadDocument(
                "the patched kubeletconfiguration is no map", hint="patch its fields, not the whole document"
            )
        document["containerRuntimeEndpoint"] = registration.cri_socket
    return RenderedFile(CONFIG_FILE, marshal_yaml(document, source=CONFIG_FILE).encode(), _MODE)


def config_source(path: DocumentPath, given: Mapping[str, Json], node_kind: str) -> ValueSource | None:
    """Return what decides a field of config.yaml before patches; `given` is the KubeletConfiguration of the user."""
    if path == ("containerRuntimeEndpoint",):
        return ConfigField(node_kind, ("nodeRegistration", "criSocket"))
    value: Json = dict(given)
    for length, step in enumerate(path):
        # Of a list the user writes all or nothing.
        if isinstance(value, list):
            return ConfigField(KIND, path[:length])
        value = value.get(str(step)) if isinstance(value, dict) else None
    if value is not None:
        return ConfigField(KIND, path)
    found = (_DERIVED.get(path[:length]) for length in range(len(path), 0, -1))
    return next((source for source in found if source is not None), None)


def instance_config_file(registration: NodeRegistration) -> RenderedFile:
    """Return instance-config.yaml: the values of this node that a change of the cluster's configuration keeps."""
    text = f"containerRuntimeEndpoint: {go_quote(registration.cri_socket)}\n"
    return RenderedFile(INSTANCE_CONFIG_FILE, text.encode(), _MODE)


def flags_file(arguments: tuple[Argument, ...]) -> RenderedFile:
    """Return kubeadm-flags.env, from which the service takes the kubelet's command line."""
    text = f"KUBELET_KUBEADM_ARGS={go_quote(' '.join(map(str, arguments)))}\n"
    return RenderedFile(FLAGS_FILE, text.encode(), _MODE)


def kubelet_arguments(
    cluster: ClusterConfiguration, registration: NodeRegistration, host: NodeHost, *, kind: str, registers_taints: bool
) -> tuple[Argument, ...]:
    """Return the kubelet's flags; `registers_taints` is for a worker, whose taints no phase sets."""
    field = ConfigField(kind, ("nodeRegistration",))
    defaults = _defaults(cluster, registration, host, field, registers_taints=registers_taints)
    return merged_arguments(defaults, registration.kubelet_extra_args, field / "kubeletExtraArgs")


def kubelet_files(
    configuration: dict[str, Json],
    cluster: ClusterConfiguration,
    registration: NodeRegistration,
    host: NodeHost,
    *,
    kind: str,
    registers_taints: bool,
    patcher: Patcher = unpatched,
) -> Iterator[RenderedFile]:
    """Yield the kubelet's files in the order of init; the last one may fail, if a patch does."""
    yield flags_file(kubelet_arguments(cluster, registration, host, kind=kind, registers_taints=registers_taints))
    if cluster.has_instance_config:
        yield instance_config_file(registration)
    yield config_file(configuration, cluster, registration, host, patcher)


def _defaults(
    cluster: ClusterConfiguration,
    registration: NodeRegistration,
    host: NodeHost,
    field: ConfigField,
    *,
    registers_taints: bool,
) -> Iterator[Argument]:
    if not cluster.has_instance_config:
        yield Argument("container-runtime-endpoint", registration.cri_socket, field / "criSocket")
    if registers_taints and registration.taints:
        yield Argument("register-with-taints", ",".join(map(_taint_text, registration.taints)), field / "taints")
    hostname = host.hostname.strip().lower()
    override = last_arg(registration.kubelet_extra_args, "hostname-override")
    name = override[1].value if override else registration.name or hostname
    if name != hostname:
        yield Argument("hostname-override", name, field / "name")


def _taint_text(taint: Taint) -> str:
    if not taint.effect:
        return f"{taint.key}={taint.value}:" if taint.value else taint.key
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
