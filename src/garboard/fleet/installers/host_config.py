"""The install config of the installer `garboard`: the hosts, how they are reached, kubeadm documents and addons."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import field
from ipaddress import ip_address
from typing import Literal, TypeAlias

import msgspec

from garboard.documents import Json, read_yaml
from garboard.errors import BadDocument
from garboard.model.duration import Duration
from garboard.model.names import subdomain_problems
from garboard.values import dataclass

API_VERSION, KIND = "fleet.garboard.dev/v1alpha1", "InstallConfig"
KUBEADM = "kubeadm.k8s.io/v1beta4"
# The kubeadm documents that an install config may have, and their API versions.
KUBEADM_KINDS: Mapping[str, str] = {
    "ClusterConfiguration": KUBEADM,
    "InitConfiguration": KUBEADM,
    "JoinConfiguration": KUBEADM,
    "KubeletConfiguration": "kubelet.config.k8s.io/v1beta1",
    "KubeProxyConfiguration": "kubeproxy.config.k8s.io/v1alpha1",
}
HOST, ADDRESS = "{host}", "{address}"
Role: TypeAlias = Literal["control-plane", "worker"]
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class FleetHost:
    """A machine that becomes a node of its name; `via` is the command that leads there, split into words."""

    name: str
    address: str
    role: Role
    via: tuple[str, ...]

    @property
    def is_control_plane(self) -> bool:
        return self.role == "control-plane"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsConfig:
    """An install config that has been read and checked."""

    name: str
    base_domain: str
    hosts: tuple[FleetHost, ...]
    kubeadm: Mapping[str, dict[str, Json]] = field(default_factory=dict)  # by kind
    addons: tuple[dict[str, Json], ...] = ()
    ready_within_s: float = 600.0

    @property
    def control_planes(self) -> tuple[FleetHost, ...]:
        return tuple(each for each in self.hosts if each.is_control_plane)

    @property
    def workers(self) -> tuple[FleetHost, ...]:
        return tuple(each for each in self.hosts if not each.is_control_plane)

    @property
    def endpoint(self) -> str:
        """The address that all API servers share; without one, that of the first control plane."""
        shared = self.kubeadm.get("ClusterConfiguration", {}).get("controlPlaneEndpoint")
        if isinstance(shared, str) and shared:
            return shared if re.search(r":\d+$", shared) else f"{shared}:6443"
        address = self.control_planes[0].address
        return f"[{address}]:6443" if ":" in address else f"{address}:6443"


class _HostDocument(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    address: str
    role: Role = "worker"
    via: str = ""


class _MetadataDocument(msgspec.Struct):
    name: str


class _PlatformDocument(msgspec.Struct, forbid_unknown_fields=True):
    none: dict[str, str]


class _InstallConfigDocument(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    api_version: str
    kind: str
    metadata: _MetadataDocument
    hosts: list[_HostDocument]
    platform: _PlatformDocument | None = None
    base_domain: str = ""
    via: str = ""
    kubeadm: list[object] = []  # msgspec copies it
    addons: list[object] = []
    nodes_ready_within: str = "10m"
    pull_secret: str = ""  # what Hive puts into every install config; of no use to this installer
    ssh_key: str = ""


def read_hosts_config(data: bytes | str, *, source: str) -> HostsConfig:
    """Read an install config and check it; every problem is named."""
    document = read_yaml(data, source=source)
    try:
        given = msgspec.convert(document, _InstallConfigDocument)
    except msgspec.ValidationError as error:
        raise _refused(source, [str(error)]) from None
    problems = [*_of_document(given), *_of_hosts(given), *_of_kubeadm(given), *_of_addons(given)]
    if problems:
        raise _refused(source, problems)
    kubeadm = [each for each in given.kubeadm if isinstance(each, dict)]
    return HostsConfig(
        name=given.metadata.name,
        base_domain=given.base_domain,
        hosts=tuple(FleetHost(each.name, each.address, each.role, _words(each, given)) for each in given.hosts),
        kubeadm={str(each["kind"]): each for each in kubeadm},
        addons=tuple(each for each in given.addons if isinstance(each, dict)),
        ready_within_s=float(Duration.parse(given.nodes_ready_within).seconds),
    )


def _words(host: _HostDocument, given: _InstallConfigDocument) -> tuple[str, ...]:
    words = shlex.split(host.via or given.via)
    return tuple(each.replace(HOST, host.name).replace(ADDRESS, host.address) for each in words)


def _refused(source: str, problems: list[str]) -> BadDocument:
    listed = "".join(f"\n  {each}" for each in problems)
    return BadDocument(
        f"{source} is no install config that can be used:{listed}",
        hint="docs/fleet-provision.md has an example",
        error_class="bad-install-config",
    )


def _of_document(given: _InstallConfigDocument) -> list[str]:
    problems: list[str] = []
    if (given.api_version, given.kind) != (API_VERSION, KIND):
        problems.append(f"apiVersion and kind are {given.api_version} {given.kind}, not {API_VERSION} {KIND}")
    if not _NAME.fullmatch(given.metadata.name):
        problems.append(f"metadata.name: {given.metadata.name!r} is no DNS label")
    try:
        Duration.parse(given.nodes_ready_within)
    except BadDocument as error:
        problems.append(f"nodesReadyWithin: {error.message}")
    return problems


def _of_hosts(given: _InstallConfigDocument) -> list[str]:
    problems = [f"hosts[{index}].{each}" for index, host in enumerate(given.hosts) for each in _of_host(host, given)]
    for what in ("name", "address"):
        values = [getattr(each, what) for each in given.hosts]
        problems += [
            f"hosts: two have the {what} {each}" for each in sorted({e for e in values if values.count(e) > 1})
        ]
    control_planes = [each for each in given.hosts if each.role == "control-plane"]
    if not control_planes:
        problems.append("hosts: none has the role control-plane")
    cluster = next((e for e in given.kubeadm if isinstance(e, dict) and e.get("kind") == "ClusterConfiguration"), {})
    if len(control_planes) > 1 and not cluster.get("controlPlaneEndpoint"):
        problems.append("kubeadm: several control planes need the controlPlaneEndpoint of a ClusterConfiguration")
    return problems


def _of_host(host: _HostDocument, given: _InstallConfigDocument) -> list[str]:
    problems = [f"name: {host.name!r}: {each}" for each in subdomain_problems(host.name)]
    if not _is_address(host.address):
        problems.append(f"address: {host.address!r} is no IP address")
    via = host.via or given.via
    try:
        words = shlex.split(via)
    except ValueError as error:
        return [*problems, f"via: {via!r} is no command: {error}"]
    if not words or "\0" in via:
        problems.append(f"via: {via!r} is no command that leads to the host, such as ssh {HOST} sudo")
    elif not any(HOST in each or ADDRESS in each for each in words) and not host.via:
        problems.append(f"via: {via!r} leads to the same machine for every host: it has no {HOST} and no {ADDRESS}")
    return problems


def _is_address(text: str) -> bool:
    try:
        return bool(ip_address(text))
    except ValueError:
        return False


def _of_kubeadm(given: _InstallConfigDocument) -> list[str]:
    problems: list[str] = []
    seen = set[str]()
    for index, each in enumerate(given.kubeadm):
        kind = each.get("kind") if isinstance(each, dict) else None
        if not isinstance(each, dict) or not isinstance(kind, str) or kind not in KUBEADM_KINDS:
            problems.append(f"kubeadm[{index}]: kind {kind!r} is none of {', '.join(KUBEADM_KINDS)}")
        elif each.get("apiVersion") != KUBEADM_KINDS[kind]:
            problems.append(f"kubeadm[{index}]: {kind} has to be {KUBEADM_KINDS[kind]}")
        elif kind in seen:
            problems.append(f"kubeadm[{index}]: a second {kind}")
        seen.add(str(kind))
    return problems


def _of_addons(given: _InstallConfigDocument) -> list[str]:
    problems: list[str] = []
    for index, each in enumerate(given.addons):
        metadata = each.get("metadata") if isinstance(each, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if not isinstance(each, dict) or not each.get("kind") or not each.get("apiVersion") or not name:
            problems.append(f"addons[{index}]: an object has apiVersion, kind and metadata.name")
    return problems
