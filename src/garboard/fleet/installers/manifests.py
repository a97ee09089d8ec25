"""`create manifests` of the installer `garboard`: what makes the cluster, one object for each file, to be patched.

kubeadm/KIND.yaml               what all nodes share, such as ClusterConfiguration
hosts/NAME/KIND.yaml            the InitConfiguration of the first control plane, the JoinConfiguration of others
hosts/NAME/patches/TARGET.yaml  a patch of kubeadm's (strategic) that changes nothing until it is patched itself
addons/NUMBER-KIND-NAME.yaml    objects that are applied once the API server answers, in this order
"""

import re
from collections.abc import Iterator, Mapping

from garboard.documents import Json, write_yaml
from garboard.fleet.installers.host_config import (
    KUBEADM,
    KUBEADM_KINDS,
    FleetHost,
    HostsConfig,
    read_hosts_config,
)
from garboard.values import dataclass

PATCHES = "/var/lib/garboard/fleet/patches"
_STATIC_PODS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")
KUBELET_TARGET = "kubeletconfiguration"
_SHARED = ("ClusterConfiguration", "KubeletConfiguration", "KubeProxyConfiguration")
_NOT_IN_A_NAME = re.compile(r"[^a-z0-9.-]+")


@dataclass(frozen=True, slots=True)
class RenderedManifest:
    """A file of the tree and the object in it."""

    path: str
    document: dict[str, Json]

    @property
    def data(self) -> bytes:
        return write_yaml(self.document).encode()


def render_manifests(config: HostsConfig) -> tuple[RenderedManifest, ...]:
    """Return the tree; the same install config gives the same bytes."""
    shared = (_shared(config, kind) for kind in _SHARED)
    hosts = (each for host in config.hosts for each in _of_host(config, host))
    return (*shared, *hosts, *_addons(config))


class HostManifests:
    """The manifests of install configs of garboard's own, for rendering."""

    def create_manifests(self, install_config: bytes) -> Mapping[str, bytes]:
        config = read_hosts_config(install_config, source="install-config.yaml")
        return {each.path: each.data for each in render_manifests(config)}


def host_document(config: HostsConfig, host: FleetHost) -> str:
    """Return the path of the kubeadm document of a host."""
    kind = "InitConfiguration" if host == config.control_planes[0] else "JoinConfiguration"
    return f"hosts/{host.name}/{kind}.yaml"


def patch_skeletons(host: FleetHost) -> Mapping[str, dict[str, Json]]:
    """Return the patches of a host that change nothing, by target."""
    pods = _STATIC_PODS if host.is_control_plane else ()
    kubelet: dict[str, Json] = {
        "apiVersion": KUBEADM_KINDS["KubeletConfiguration"],
        "kind": "KubeletConfiguration",
    }
    return {**{name: _static_pod(name) for name in pods}, KUBELET_TARGET: kubelet}


def patch_path(host: FleetHost, target: str) -> str:
    return f"hosts/{host.name}/patches/{target}.yaml"


def _static_pod(name: str) -> dict[str, Json]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {"containers": [{"name": name}]},
    }


def _shared(config: HostsConfig, kind: str) -> RenderedManifest:
    given = {key: value for key, value in config.kubeadm.get(kind, {}).items() if key not in ("apiVersion", "kind")}
    defaults: dict[str, Json] = {"clusterName": config.name} if kind == "ClusterConfiguration" else {}
    document = {"apiVersion": KUBEADM_KINDS[kind], "kind": kind, **defaults, **given}
    return RenderedManifest(f"kubeadm/{kind}.yaml", document)


def _of_host(config: HostsConfig, host: FleetHost) -> Iterator[RenderedManifest]:
    is_first = host == config.control_planes[0]
    yield RenderedManifest(host_document(config, host), _init(config, host) if is_first else _join(config, host))
    for target, document in patch_skeletons(host).items():
        yield RenderedManifest(patch_path(host, target), document)


def _init(config: HostsConfig, host: FleetHost) -> dict[str, Json]:
    given = config.kubeadm.get("InitConfiguration", {})
    local = {**_mapping(given, "localAPIEndpoint"), "advertiseAddress": host.address}
    return _document("InitConfiguration", given, host, {"localAPIEndpoint": local})


def _join(config: HostsConfig, host: FleetHost) -> dict[str, Json]:
    given = config.kubeadm.get("JoinConfiguration", {})
    discovery = _mapping(given, "discovery")
    token = {**_mapping(discovery, "bootstrapToken"), "apiServerEndpoint": config.endpoint}
    own: dict[str, Json] = {"discovery": {**discovery, "bootstrapToken": token}}
    if host.is_control_plane:
        control_plane = _mapping(given, "controlPlane")
        local = {**_mapping(control_plane, "localAPIEndpoint"), "advertiseAddress": host.address}
        own["controlPlane"] = {**control_plane, "localAPIEndpoint": local}
    return _document("JoinConfiguration", {k: v for k, v in given.items() if k != "controlPlane"}, host, own)


def _document(kind: str, given: Mapping[str, Json], host: FleetHost, own: dict[str, Json]) -> dict[str, Json]:
    registration = {**_mapping(given, "nodeRegistration"), "name": host.name}
    more: dict[str, Json] = {"nodeRegistration": registration, "patches": {"directory": PATCHES}, **own}
    rest = {key: value for key, value in given.items() if key not in ("apiVersion", "kind")}
    return {"apiVersion": KUBEADM, "kind": kind, **rest, **more}


def _addons(config: HostsConfig) -> Iterator[RenderedManifest]:
    for index, each in enumerate(config.addons):
        metadata = _mapping(each, "metadata")
        name = _NOT_IN_A_NAME.sub("-", f"{each['kind']}-{metadata['name']}".lower())
        yield RenderedManifest(f"addons/{index:03}-{name[:120]}.yaml", each)


def _mapping(document: Mapping[str, Json], name: str) -> dict[str, Json]:
    found = document.get(name)
    return found if isinstance(found, dict) else {}
