"""The configuration of a node's container runtime and of its pod network, as text."""

import json

from garboard.lab.topology import Node

CNI_FOLDER = "/opt/cni/bin"
SOCKET = "/run/containerd/containerd.sock"
# Snapshotters that need a file system which is not there only cost time at start.
UNUSED_PLUGINS = tuple(f"io.containerd.snapshotter.v1.{name}" for name in ("aufs", "btrfs", "devmapper", "zfs"))


def containerd_config(*, pause_image: str, may_lower_oom_score: bool) -> str:
    """Write the containerd configuration of a node.

    Without CAP_SYS_RESOURCE runc may not lower oom_score_adj, and dies of it unless containerd refrains from asking.
    """
    disabled = ", ".join(f'"{name}"' for name in UNUSED_PLUGINS)
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""\
version = 2
disabled_plugins = [{disabled}]

[{cri}]
  sandbox_image = "{pause_image}"
  restrict_oom_score_adj = {"false" if may_lower_oom_score else "true"}

[{cri}.cni]
  bin_dir = "{CNI_FOLDER}"
  conf_dir = "/etc/cni/net.d"

[{cri}.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[{cri}.containerd.runtimes.runc.options]
  SystemdCgroup = false
"""


def pod_network(node: Node, pods: str) -> str:
    """Write the CNI configuration of a node: a bridge with the node's own part of the pod network."""
    bridge = {
        "type": "bridge",
        "bridge": "pods",
        "isGateway": True,
        "ipMasq": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "dataDir": "/run/cni-addresses",
            "ranges": [[{"subnet": node.pod_subnet(pods)}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    plugins = [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}]
    return json.dumps({"cniVersion": "1.0.0", "name": "lab", "plugins": plugins}, indent=2) + "\n"
