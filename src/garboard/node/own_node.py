"""The node that this runs on, for a snapshot: its files, and the members of etcd; nothing is written."""

import ssl
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from garboard.change.node_files import (
    CERTIFICATE_NAMES,
    KUBECONFIG_PATHS,
    KUBELET_CERTIFICATE,
    KUBELET_PATHS,
    ObservedFiles,
    mounted_paths,
)
from garboard.change.snapshot import SnapshotMember, SnapshotNode
from garboard.errors import GarboardError
from garboard.host.folders import path_kind
from garboard.host.node_machine import NodeMachine
from garboard.lazy import lazy_module
from garboard.manifests.node import EXTRA_CA_DIRECTORIES
from garboard.model.addresses import join_host_port
from garboard.model.go import join_path
from garboard.model.paths import KUBELET_CONF, manifest_path
from garboard.phases.static_pods import ORDER
from garboard.phases.upgrade.context import node_name_of
from garboard.pki.kubeconfig import read_kubeconfig

if TYPE_CHECKING:
    from garboard import etcd
else:
    etcd = lazy_module("garboard.etcd")

_CLIENT_PORT = 2379
# Below the folder of certificates: the authority of etcd, and the client certificate that every member has.
_CREDENTIALS = ("etcd/ca.crt", "etcd/healthcheck-client.crt", "etcd/healthcheck-client.key")


def own_name(machine: NodeMachine, ca: bytes) -> str:
    """Return the name of this node if it is one of the cluster with that authority, else an empty text."""
    data = machine.read(KUBELET_CONF)
    if data is None:
        return ""
    current = read_kubeconfig(data, KUBELET_CONF)
    own = current.content(current.cluster, "certificate-authority", machine.read)
    if ca and own and not _same_authority(ca, own):
        return ""
    return node_name_of(machine)


def _same_authority(ca: bytes, own: bytes) -> bool:
    """Say whether two bundles of authorities have one in common; texts may differ in how they are wrapped."""
    try:
        first, second = (set(_der(bundle)) for bundle in (ca, own))
    except ValueError:
        return False
    return bool(first & second)


def _der(bundle: bytes) -> Iterable[bytes]:
    text = bundle.decode("ascii", "replace")
    end = "-----END CERTIFICATE-----"
    for part in text.split(end)[:-1]:
        yield ssl.PEM_cert_to_DER_cert(f"{part[part.index('-----BEGIN') :]}{end}\n")


def read_node_files(machine: NodeMachine, certificates_dir: str, paths: Iterable[str]) -> ObservedFiles:
    """Read what a snapshot takes of this node; of keys nothing is read."""
    manifests = _read(machine, {name: manifest_path(name) for name in ORDER})
    certificates = {name: join_path(certificates_dir, name) for name in CERTIFICATE_NAMES}
    wanted = dict.fromkeys((*mounted_paths(manifests.values()), *paths))
    return ObservedFiles(
        manifests=manifests,
        kubelet=_read(machine, {path: path for path in KUBELET_PATHS}),
        kubeconfigs=_read(machine, {path: path for path in KUBECONFIG_PATHS}),
        certificates=_read(machine, {**certificates, KUBELET_CERTIFICATE: KUBELET_CERTIFICATE}),
        host_paths={path: path_kind(path) for path in wanted},
        ca_directories=tuple(path for path in EXTRA_CA_DIRECTORIES if machine.has_folder(path)),
    )


def _read(machine: NodeMachine, paths: dict[str, str]) -> dict[str, bytes]:
    found = {name: machine.read(path) for name, path in paths.items()}
    return {name: data for name, data in found.items() if data is not None}


def read_members(machine: NodeMachine, certificates_dir: str, nodes: Sequence[SnapshotNode]) -> list[SnapshotMember]:
    """Return the members of etcd, and of each that answers its version; a cluster without any cannot be asked."""
    ca, certificate, key = (machine.read(join_path(certificates_dir, name)) for name in _CREDENTIALS)
    access = etcd.EtcdAccess(ca=ca or b"", certificate=certificate or b"", key=key or b"")
    addresses = [each.endpoint.advertise_address for each in nodes if each.endpoint]
    endpoints = [f"https://{join_host_port(each, _CLIENT_PORT)}" for each in ("127.0.0.1", *addresses)]
    client = etcd.EtcdClient(tuple(endpoints), access)
    members = (_member(client, each, nodes) for each in client.members())
    return sorted(members, key=lambda each: (each.name, each.member_id))


def _member(client: "etcd.EtcdClient", member: "etcd.Member", nodes: Sequence[SnapshotNode]) -> SnapshotMember:
    version, is_healthy = "", False
    for url in member.client_urls[:1]:
        try:
            status = client.status(url)
            version, is_healthy = status.version, not status.errors
        except GarboardError:
            is_healthy = False
    return SnapshotMember(
        name=member.name,
        member_id=member.hex_id,
        peer_urls=[*member.peer_urls],
        client_urls=[*member.client_urls],
        node=_node_of(member.name, member.peer_urls, nodes),
        is_learner=member.is_learner,
        is_healthy=is_healthy,
        version=version,
    )


def _node_of(name: str, peer_urls: Iterable[str], nodes: Sequence[SnapshotNode]) -> str:
    """Return the control-plane node that a member is of, by the address of its peer URL or else by its name."""
    for node in nodes:
        hosts = [f"//{join_host_port(each.address, '')}" for each in node.addresses]
        if node.is_control_plane and any(host in url for host in hosts for url in peer_urls):
            return node.name
    return next((node.name for node in nodes if node.is_control_plane and node.name == name), "")
