"""The kube-controller-manager and kube-scheduler static pods."""

from collections.abc import Iterator

from garboard.manifests.container import (
    Argument,
    PodMount,
    certificate_mounts,
    extra_mounts,
    extra_variables,
    kubeconfig_mount,
    merged_arguments,
    merged_mounts,
    merged_variables,
    proxy_variables,
)
from garboard.manifests.node import ControlPlaneNode
from garboard.manifests.pod import Probes, StaticPodComponent, bind_address_probes
from garboard.manifests.sources import ConfigField, HostFact, cluster_field, kubernetes_image_source
from garboard.model.cluster import kubernetes_image
from garboard.model.component import ControlPlaneComponent
from garboard.model.go import join_path
from garboard.model.paths import CONTROLLER_MANAGER_CONF, SCHEDULER_CONF

CONTROLLER_MANAGER, SCHEDULER = "kube-controller-manager", "kube-scheduler"

_LOOPBACK = "127.0.0.1"
_EXTERNAL_CA = HostFact("an external CA: ca.crt is there, ca.key is not")
_CERTIFICATE_FLAGS = {
    "client-ca-file": "ca.crt",
    "requestheader-client-ca-file": "front-proxy-ca.crt",
    "root-ca-file": "ca.crt",
    "service-account-private-key-file": "sa.key",
}
_SIGNING_FLAGS = {"cluster-signing-cert-file": "ca.crt", "cluster-signing-key-file": "ca.key"}


def controller_manager(node: ControlPlaneNode) -> StaticPodComponent:
    probes = Probes(host=_LOOPBACK, port=10257, liveness="/healthz", startup="/healthz")
    return _component(
        node,
        CONTROLLER_MANAGER,
        node.cluster.controller_manager,
        cluster_field("controllerManager"),
        defaults=_controller_manager_defaults(node),
        mounts=(*certificate_mounts(node), kubeconfig_mount(CONTROLLER_MANAGER_CONF)),
        cpu="200m",
        probes=probes,
    )


def scheduler(node: ControlPlaneNode) -> StaticPodComponent:
    probes = Probes(host=_LOOPBACK, port=10259, liveness="/livez", readiness="/readyz", startup="/livez")
    return _component(
        node,
        SCHEDULER,
        node.cluster.scheduler,
        cluster_field("scheduler"),
        defaults=_kubeconfig_defaults(SCHEDULER_CONF),
        mounts=(kubeconfig_mount(SCHEDULER_CONF),),
        cpu="100m",
        probes=probes,
    )


def _component(
    node: ControlPlaneNode,
    name: str,
    given: ControlPlaneComponent,
    field: ConfigField,
    *,
    defaults: Iterator[Argument],
    mounts: tuple[PodMount, ...],
    cpu: str,
    probes: Probes,
) -> StaticPodComponent:
    return StaticPodComponent(
        name=name,
        image=kubernetes_image(node.cluster, name),
        image_source=kubernetes_image_source(node.cluster),
        arguments=merged_arguments(defaults, given.extra_args, field / "extraArgs"),
        mounts=merged_mounts(mounts, extra_mounts(given.extra_volumes, field / "extraVolumes")),
        variables=merged_variables(
            proxy_variables(node.host.environment),
            extra_variables(given.extra_envs, field / "extraEnvs", node.cluster.release),
        ),
        requests={"cpu": cpu},
        probes=bind_address_probes(given.extra_args, field / "extraArgs", probes),
    )


def _kubeconfig_defaults(path: str) -> Iterator[Argument]:
    yield Argument("bind-address", _LOOPBACK)
    yield Argument("leader-elect", "true")
    for name in ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"):
        yield Argument(name, path)


def _controller_manager_defaults(node: ControlPlaneNode) -> Iterator[Argument]:
    cluster, networking = node.cluster, node.cluster.networking
    yield from _kubeconfig_defaults(CONTROLLER_MANAGER_CONF)
    yield Argument("controllers", "*,bootstrapsigner,tokencleaner")
    yield Argument("use-service-account-credentials", "true")
    yield from _certificates(node, _CERTIFICATE_FLAGS)
    if node.host.is_external_ca:
        # Empty, so that the controller that signs does not start: it has no key.
        yield from (Argument(name, "", _EXTERNAL_CA) for name in _SIGNING_FLAGS)
    else:
        yield from _certificates(node, _SIGNING_FLAGS)
    if networking.pod_subnet:
        field = cluster_field("networking")
        yield Argument("allocate-node-cidrs", "true", field / "podSubnet")
        yield Argument("cluster-cidr", networking.pod_subnet, field / "podSubnet")
        if networking.service_subnet:
            yield Argument("service-cluster-ip-range", networking.service_subnet, field / "serviceSubnet")
    if cluster.cluster_name:
        yield Argument("cluster-name", cluster.cluster_name, cluster_field("clusterName"))


def _certificates(node: ControlPlaneNode, flags: dict[str, str]) -> Iterator[Argument]:
    for name, file in flags.items():
        yield Argument(name, join_path(node.cluster.certificates_dir, file), cluster_field("certificatesDir"))
