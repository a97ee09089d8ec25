"""The network of a lab as text for `ip -batch` and `nft -f`: a bridge in a namespace of its own, one port per node."""

from collections.abc import Iterable

from garboard.lab.topology import ENDPOINT_ADDRESS, ENDPOINT_NAME, NODE_NETWORK, Lab, Node

BRIDGE = "switch"
PREFIX = NODE_NETWORK.prefixlen
PEER_PORT, PEER_TABLE = 2380, "etcd_start"
ETCD_METRICS_PORT = 2381  # where etcd listens once it serves its peers
# The switch forwards (to nowhere), and its rules are for what it forwards: frames between nodes only cross its bridge.
SWITCH_SYSCTLS = {
    "/proc/sys/net/ipv4/ip_forward": "1",
    "/proc/sys/net/bridge/bridge-nf-call-iptables": "0",
    "/proc/sys/net/bridge/bridge-nf-call-ip6tables": "0",
}


def switch_commands() -> str:
    """Make the bridge; its address is that of the endpoint, and the gateway of the nodes, which has no way out."""
    return (
        "link set lo up\n"
        f"link add {BRIDGE} type bridge\n"
        f"addr add {ENDPOINT_ADDRESS}/{PREFIX} dev {BRIDGE}\n"
        f"link set {BRIDGE} up\n"
        # There is nothing behind it, but without a route the kernel would not apply the rules below.
        f"route add default dev {BRIDGE}\n"
    )


def refusal_rules() -> str:
    """Refuse connections out of the lab at once: a program whose connection gets no answer waits for minutes.

    The kernel's own "unreachable" will not do, for it is sent once a second at most. Run in the switch's namespace.
    """
    chain = "type filter hook forward priority 0; meta l4proto tcp reject with tcp reset; reject"
    return f"table inet outside {{ chain forward {{ {chain}; }}; }}\n"


def plug_commands(node: Node, pid: int) -> str:
    """Plug a node into the bridge; `pid` is a process of the node. Run in the switch's namespace."""
    return (
        f"link add {node.port_name} type veth peer name eth0 netns {pid}\n"
        f"link set {node.port_name} master {BRIDGE} up\n"
    )


def node_commands(node: Node) -> str:
    """Give a node its address and a default route, which the kubelet and kubeadm look for. Run in the node."""
    return (
        "link set lo up\n"
        f"addr add {node.address}/{PREFIX} dev eth0\n"
        "link set eth0 up\n"
        f"route add default via {ENDPOINT_ADDRESS}\n"
    )


def route_commands(node: Node, others: Iterable[Node], pods: str) -> str:
    """Route the pod network of each other node to that node. Run in the node."""
    return "".join(
        f"route replace {other.pod_subnet(pods)} via {other.address}\n" for other in others if other.name != node.name
    )


def partition_rules(pairs: Iterable[tuple[Node, Node]]) -> str:
    """Drop every frame between the nodes of each pair, both ways; no pair, no rule. Run in the switch's namespace."""
    lines = ["table bridge lab", "delete table bridge lab"]
    drops = [
        f'iifname "{a.port_name}" oifname "{b.port_name}" drop'
        for left, right in pairs
        for a, b in ((left, right), (right, left))
    ]
    if drops:
        chain = "type filter hook forward priority 0; " + "; ".join(drops)
        lines.append(f"table bridge lab {{ chain forward {{ {chain}; }}; }}")
    return "\n".join(lines) + "\n"


def peer_port_rules() -> str:
    """Refuse the peers of this node's etcd, whose port is open before it answers there. Run in the node."""
    chain = f"type filter hook input priority -10; iif eth0 tcp dport {PEER_PORT} reject with tcp reset"
    return f"table inet {PEER_TABLE} {{ chain input {{ {chain}; }}; }}\n"


def peer_port_opening() -> str:
    """Take the rules of `peer_port_rules` away, if they are there. Run in the node."""
    return f"table inet {PEER_TABLE}\ndelete table inet {PEER_TABLE}\n"


def listens(table: bytes, port: int) -> bool:
    """Whether somebody listens on the port, by the text of the kernel's /proc/net/tcp."""
    rows = (line.split() for line in table.splitlines()[1:])
    return any(row[3] == b"0A" and int(row[1].rpartition(b":")[2], 16) == port for row in rows)


def hosts_file(lab: Lab) -> str:
    """Write the /etc/hosts of every node of the lab."""
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost", f"{ENDPOINT_ADDRESS} {ENDPOINT_NAME}"]
    return "\n".join([*lines, *(f"{node.address} {node.name}" for node in lab.nodes)]) + "\n"


def resolver_file() -> str:
    """Write the /etc/resolv.conf of a node: an address that refuses at once.

    A resolver that does not answer costs 10 s a lookup, and CoreDNS does not start without any.
    """
    return f"nameserver {ENDPOINT_ADDRESS}\noptions timeout:1 attempts:1\n"
