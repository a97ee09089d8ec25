"""The kube-apiserver static pod."""

from collections.abc import Iterator

from garboard.manifests.container import (
    Argument,
    certificate_mounts,
    external_etcd_mounts,
    extra_mounts,
    extra_variables,
    last_arg,
    merge_value,
    merged_arguments,
    merged_mounts,
    merged_variables,
    proxy_variables,
)
from garboard.manifests.node import ControlPlaneNode
from garboard.manifests.pod import Probes, StaticPodComponent, probe_host
from garboard.manifests.sources import cluster_field, kubernetes_image_source
from garboard.model.addresses import join_host_port
from garboard.model.cluster import kubernetes_image
from garboard.model.component import ExternalEtcd, LocalEtcd
from garboard.model.go import go_quote, join_path

NAME = "kube-apiserver"
ADVERTISE_ADDRESS_ANNOTATION = "kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint"

_DEFAULT_MODES = ["Node", "RBAC"]
_KNOWN_MODES = (*_DEFAULT_MODES, "Webhook", "ABAC", "AlwaysAllow", "AlwaysDeny")
_FIELD = cluster_field("apiServer")
# Flags that name a file of the certificates' folder.
_CERTIFICATE_FLAGS = {
    "client-ca-file": "ca.crt",
    "kubelet-client-certificate": "apiserver-kubelet-client.crt",
    "kubelet-client-key": "apiserver-kubelet-client.key",
    "proxy-client-cert-file": "front-proxy-client.crt",
    "proxy-client-key-file": "front-proxy-client.key",
    "requestheader-client-ca-file": "front-proxy-ca.crt",
    "service-account-key-file": "sa.pub",
    "service-account-signing-key-file": "sa.key",
    "tls-cert-file": "apiserver.crt",
    "tls-private-key-file": "apiserver.key",
}
_LOCAL_ETCD_FLAGS = {
    "etcd-cafile": "etcd/ca.crt",
    "etcd-certfile": "apiserver-etcd-client.crt",
    "etcd-keyfile": "apiserver-etcd-client.key",
}
_FIXED_FLAGS = {
    "allow-privileged": "true",
    "enable-admission-plugins": "NodeRestriction",
    "enable-bootstrap-token-auth": "true",
    "kubelet-preferred-address-types": "InternalIP,ExternalIP,Hostname",
    "requestheader-allowed-names": "front-proxy-client",
    "requestheader-extra-headers-prefix": "X-Remote-Extra-",
    "requestheader-group-headers": "X-Remote-Group",
    "requestheader-username-headers": "X-Remote-User",
}


def api_server(node: ControlPlaneNode) -> StaticPodComponent:
    cluster, endpoint = node.cluster, node.endpoint
    etcd_mounts = (
        external_etcd_mounts(cluster.etcd, cluster.certificates_dir) if isinstance(cluster.etcd, ExternalEtcd) else ()
    )
    return StaticPodComponent(
        name=NAME,
        image=kubernetes_image(cluster, NAME),
        image_source=kubernetes_image_source(cluster),
        arguments=merged_arguments(_defaults(node), cluster.api_server.extra_args, _FIELD / "extraArgs"),
        mounts=merged_mounts(
            certificate_mounts(node),
            etcd_mounts,
            extra_mounts(cluster.api_server.extra_volumes, _FIELD / "extraVolumes"),
        ),
        variables=merged_variables(
            proxy_variables(node.host.environment),
            extra_variables(cluster.api_server.extra_envs, _FIELD / "extraEnvs", cluster.release),
        ),
        requests={"cpu": "250m"},
        probes=Probes(
            host=probe_host(endpoint.advertise_address),
            port=endpoint.bind_port,
            liveness="/livez",
            readiness="/readyz",
            startup="/livez",
            host_source=node.address_field,
            port_source=node.endpoint_field / "bindPort",
        ),
        annotations={ADVERTISE_ADDRESS_ANNOTATION: endpoint.host_port},
        annotation_source=node.endpoint_field,
    )


def _defaults(node: ControlPlaneNode) -> Iterator[Argument]:
    cluster, networking = node.cluster, node.cluster.networking
    issuer = f"https://kubernetes.default.svc.{networking.dns_domain}"
    yield Argument("advertise-address", node.endpoint.advertise_address, node.address_field)
    yield Argument("secure-port", str(node.endpoint.bind_port), node.endpoint_field / "bindPort")
    yield Argument("service-account-issuer", issuer, cluster_field("networking", "dnsDomain"))
    yield Argument("service-cluster-ip-range", networking.service_subnet, cluster_field("networking", "serviceSubnet"))
    yield from (Argument(name, value) for name, value in _FIXED_FLAGS.items())
    yield from _certificates(node, _CERTIFICATE_FLAGS)
    yield from _external_etcd(cluster.etcd) if isinstance(cluster.etcd, ExternalEtcd) else _local_etcd(node)
    # Authorization that is configured in a file excludes the flag.
    if last_arg(cluster.api_server.extra_args, "authorization-config") is None:
        yield Argument("authorization-mode", ",".join(_DEFAULT_MODES))


def _certificates(node: ControlPlaneNode, flags: dict[str, str]) -> Iterator[Argument]:
    for name, file in flags.items():
        yield Argument(name, join_path(node.cluster.certificates_dir, file), cluster_field("certificatesDir"))


def _external_etcd(etcd: ExternalEtcd) -> Iterator[Argument]:
    field = cluster_field("etcd", "external")
    yield Argument("etcd-servers", ",".join(etcd.endpoints), field / "endpoints")
    if etcd.ca_file:
        yield Argument("etcd-cafile", etcd.ca_file, field / "caFile")
    if etcd.cert_file and etcd.key_file:
        yield Argument("etcd-certfile", etcd.cert_file, field / "certFile")
        yield Argument("etcd-keyfile", etcd.key_file, field / "keyFile")


def _local_etcd(node: ControlPlaneNode) -> Iterator[Argument]:
    yield from _certificates(node, _LOCAL_ETCD_FLAGS)
    servers = f"https://{join_host_port(node.loopback, 2379)}"
    etcd = node.cluster.etcd
    found = last_arg(etcd.extra_args, "advertise-client-urls") if isinstance(etcd, LocalEtcd) else None
    if found is None:
        yield Argument("etcd-servers", servers)
    else:
        index, arg = found
        yield Argument("etcd-servers", merge_value(servers, arg), cluster_field("etcd", "local", "extraArgs") / index)


def authorization_warnings(node: ControlPlaneNode) -> tuple[str, ...]:
    """Return kubeadm's warnings about an authorization mode that it does not know, or that is not its default."""
    args = node.cluster.api_server.extra_args
    found = last_arg(args, "authorization-mode")
    if found is None or not found[1].value or last_arg(args, "authorization-config") is not None:
        return ()
    asked = found[1].value.split(",")
    known = [mode for mode in asked if mode in _KNOWN_MODES]
    warnings = [
        f"ignoring unknown kube-apiserver authorization-mode {go_quote(mode)}"
        for mode in asked
        if mode not in _KNOWN_MODES and (mode or not node.cluster.facts.has_merge_method)
    ]
    if known and known != _DEFAULT_MODES and not found[1].merge_method:
        default, given = (go_quote(",".join(modes)) for modes in (_DEFAULT_MODES, known))
        warnings.append(f"the default kube-apiserver authorization-mode is {default}; using {given}")
    return tuple(warnings)
