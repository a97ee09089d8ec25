"""What a lab consists of: its name, its nodes and their addresses. Plain values; nothing here touches the machine."""

import ipaddress
import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from garboard.documents import Json
from garboard.errors import BadUsage, InvalidValue
from garboard.model import KubernetesVersion

# Each lab has a network namespace of its own, so all of them can use the same addresses.
NODE_NETWORK = ipaddress.IPv4Network("10.89.0.0/24")
ENDPOINT_ADDRESS = str(NODE_NETWORK[1])
ENDPOINT_NAME = "control-plane.lab"
API_PORT = 6443
FIRST_NODE = 11
MAX_NODES = 200
DEFAULT_POD_SUBNET = "10.244.0.0/16"
DEFAULT_NAME = "lab"


class Role(StrEnum):
    CONTROL_PLANE = "control-plane"
    WORKER = "worker"


class Bootstrap(StrEnum):
    """The program that makes a cluster of the nodes."""

    GARBOARD = "garboard"
    KUBEADM = "kubeadm"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Node:
    """A node: its place in the lab decides its addresses."""

    name: str
    role: Role
    index: int
    version: KubernetesVersion

    @property
    def address(self) -> str:
        return str(NODE_NETWORK[FIRST_NODE + self.index])

    @property
    def port_name(self) -> str:
        """The node's port on the switch."""
        return f"port{self.index}"

    def pod_subnet(self, pods: str) -> str:
        """The node's own part of the pod network `pods`."""
        network = ipaddress.ip_network(pods)
        if network.version != 4 or network.prefixlen > 24:
            raise InvalidValue(
                f"the pod subnet {pods} cannot be shared out to nodes", hint="use an IPv4 network of /16 or so"
            )
        first = int(network.network_address) + self.index * 256
        subnet = ipaddress.ip_network((first, 24))
        if not subnet.subnet_of(network):  # type: ignore[arg-type]  # both are IPv4
            raise InvalidValue(f"the pod subnet {pods} has no room for node {self.name}", hint="use a larger network")
        return str(subnet)


@dataclass(frozen=True, slots=True)
class Lab:
    """A lab as it was asked for, and the nodes it has now."""

    name: str
    version: KubernetesVersion
    bootstrap: Bootstrap
    nodes: tuple[Node, ...]
    pod_subnet: str = DEFAULT_POD_SUBNET
    # Releases whose programs and images every node has beside its own, for upgrades.
    also: tuple[KubernetesVersion, ...] = ()

    @property
    def control_planes(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.role is Role.CONTROL_PLANE)

    @property
    def workers(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.role is Role.WORKER)

    def node(self, name: str) -> Node:
        for node in self.nodes:
            if node.name == name:
                return node
        known = ", ".join(node.name for node in self.nodes)
        raise BadUsage(f"lab {self.name} has no node {name!r}", hint=f"its nodes are {known}")

    def with_node(self, role: Role, version: KubernetesVersion | None = None) -> Self:
        """Return the lab with one more node; an index is used once, so that no two nodes ever have the same address."""
        index = max((node.index for node in self.nodes), default=-1) + 1
        if index >= MAX_NODES:
            raise InvalidValue(f"a lab has at most {MAX_NODES} nodes", hint="start a second one with --name")
        prefix = "cp" if role is Role.CONTROL_PLANE else "worker"
        number = max((int(node.name.removeprefix(prefix)) for node in self.nodes if node.role is role), default=0) + 1
        node = Node(f"{prefix}{number}", role, index, version or self.version)
        return replace(self, nodes=(*self.nodes, node))

    def without_node(self, name: str) -> Self:
        return replace(self, nodes=tuple(node for node in self.nodes if node.name != name))

    def as_json(self) -> dict[str, Json]:
        return {
            "name": self.name,
            "kubernetesVersion": str(self.version),
            "by": self.bootstrap.value,
            "podSubnet": self.pod_subnet,
            "also": [str(version) for version in self.also],
            "nodes": [
                {"name": n.name, "role": n.role.value, "index": n.index, "kubernetesVersion": str(n.version)}
                for n in self.nodes
            ],
        }

    @classmethod
    def from_json(cls, document: dict[str, Json]) -> Self:
        nodes, also = document["nodes"], document["also"]
        assert isinstance(nodes, list)
        assert isinstance(also, list)
        return cls(
            name=str(document["name"]),
            version=KubernetesVersion.parse(str(document["kubernetesVersion"])),
            bootstrap=Bootstrap(str(document["by"])),
            nodes=tuple(_node_from_json(node) for node in nodes),
            pod_subnet=str(document["podSubnet"]),
            also=tuple(KubernetesVersion.parse(str(version)) for version in also),
        )


def check_name(name: str) -> None:
    """Refuse what cannot be the name of a lab: it is part of paths, control groups and links."""
    if not re.fullmatch(r"[a-z]([a-z0-9-]{0,22}[a-z0-9])?", name):
        raise InvalidValue(
            f"{name!r} is no name for a lab", hint="use up to 24 lower-case letters, digits and hyphens, a letter first"
        )


def plan_lab(
    name: str,
    version: KubernetesVersion,
    bootstrap: Bootstrap,
    *,
    control_planes: int,
    workers: int,
    pod_subnet: str = DEFAULT_POD_SUBNET,
    also: tuple[KubernetesVersion, ...] = (),
) -> Lab:
    """Name and number the nodes of a new lab; refuse what cannot be one."""
    check_name(name)
    if control_planes < 1 or workers < 0 or control_planes + workers > MAX_NODES:
        raise InvalidValue(
            f"{control_planes} control planes and {workers} workers make no lab",
            hint=f"use at least one control plane and at most {MAX_NODES} nodes",
        )
    lab = Lab(name, version, bootstrap, (), pod_subnet, also)
    for role in [Role.CONTROL_PLANE] * control_planes + [Role.WORKER] * workers:
        lab = lab.with_node(role)
    for node in lab.nodes:
        node.pod_subnet(pod_subnet)
    return lab


def _node_from_json(document: Json) -> Node:
    assert isinstance(document, dict)
    index = document["index"]
    assert isinstance(index, int)
    version = KubernetesVersion.parse(str(document["kubernetesVersion"]))
    return Node(str(document["name"]), Role(str(document["role"])), index, version)
