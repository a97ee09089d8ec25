"""The files of a node before it first starts: what its own folders hold and what it sees in place of the machine's.

Among them are programs of the lab: `systemctl` talks to the lab's supervisor, which keeps the services of the node
running, as there is no systemd in a node; `journalctl` shows their log files.
"""

import inspect
import json
import socket
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from garboard.lab.imageset import STORE_DATABASES
from garboard.lab.layout import NodeFiles
from garboard.lab.machine import LabFilesystem, LabMachine
from garboard.lab.namespaces import SYSCTLS, RootPlan
from garboard.lab.network import hosts_file, resolver_file
from garboard.lab.program import NodeGarboard
from garboard.lab.topology import Lab, Node

NODE_FOLDERS = (
    "proc", "sys", "dev", "run", "tmp", "var/lib/etcd", "var/lib/kubelet", "var/lib/garboard-lab", "var/log/pods",
    "var/log/containers", "var/cache", "var/tmp", "var/spool",
)  # fmt: skip
# The programs of every release that the lab has, by version: what an upgrade puts into /usr/bin.
RELEASES_FOLDER = "opt/kubernetes"
# What the machine itself may have there is none of the node's business.
OPAQUE = (
    "etc/kubernetes", "etc/cni", "etc/containerd", "etc/systemd/system", "opt/cni", "usr/libexec/kubernetes",
    "etc/default/kubelet.d",
)  # fmt: skip

# The services of a node write to files; of journalctl's options only the unit and the number of lines mean something.
JOURNAL_SCRIPT = """\
#!/bin/sh
unit=kubelet lines=50
while [ $# -gt 0 ]; do
    case "$1" in
        -n) lines=$2; shift ;;
        -u | -*u) unit=$2; shift ;;
    esac
    shift
done
exec tail -n "$lines" "/var/log/${unit%.service}.log"
"""

CNI_FOLDER = "/opt/cni/bin"
# Snapshotters that need a file system which is not there only cost time at start.
UNUSED_PLUGINS = tuple(f"io.containerd.snapshotter.v1.{name}" for name in ("aufs", "btrfs", "devmapper", "zfs"))


@dataclass(frozen=True, slots=True)
class NodeContent:
    """What goes into every node of a lab."""

    programs: Mapping[str, Path]
    releases: Mapping[str, Mapping[str, Path]]
    cni_plugins: Path
    image_store: Path
    pause_image: str
    may_lower_oom_score: bool
    program: NodeGarboard


def provision(
    machine: LabMachine, files: NodeFiles, lab: Lab, node: Node, root: RootPlan, content: NodeContent
) -> None:
    """Write the files of a new node."""
    lay_out(machine, files, root)
    _hide(machine, files, root)
    machine.make_folder(files.sysctls)
    for name, value in SYSCTLS.items():
        machine.write_in_place(files.sysctls / name.replace("/", "."), f"{value}\n".encode())
    _write_texts(machine, files, lab, node, content)
    _link_programs(machine, files, content)
    content.program.install(machine, [files])
    machine.link_tree(content.image_store, files.var / "lib/containerd", copied=STORE_DATABASES)


def lay_out(machine: LabFilesystem, files: NodeFiles, root: RootPlan) -> None:
    """Make the folders and links of a node's root, and its writable layers; what is there already stays as it is."""
    for name in NODE_FOLDERS:
        machine.make_folder(files.root / name)
    for path, target in [
        *((files.root / name, each) for name, each in root.links.items()),
        (files.var / "run", "/run"),
    ]:
        if not path.is_symlink():
            machine.make_link(path, target)
    for name in root.overlaid:
        _make_layer(machine, files, name)


def _make_layer(machine: LabFilesystem, files: NodeFiles, name: str) -> None:
    """Make the writable layer over the machine's /NAME; the node sees its mode and owner in place of the machine's."""
    for folder in (files.root, files.work):
        machine.make_folder(folder / name)
    if not (files.upper / name).is_dir():
        machine.make_folder(files.upper / name)
        machine.copy_attributes(Path("/") / name, files.upper / name)


def _hide(machine: LabFilesystem, files: NodeFiles, root: RootPlan) -> None:
    for name in OPAQUE:
        if name.split("/", 1)[0] in root.overlaid:
            machine.make_folder(files.upper / name)
            machine.set_attribute(files.upper / name, "trusted.overlay.opaque", b"y")


def _write_texts(machine: LabFilesystem, files: NodeFiles, lab: Lab, node: Node, content: NodeContent) -> None:
    texts = {
        "etc/hostname": f"{node.name}\n",
        "etc/hosts": hosts_file(lab),
        "etc/resolv.conf": resolver_file(),
        "etc/machine-id": f"{uuid.uuid4().hex}\n",
        "etc/containerd/config.toml": containerd_config(
            pause_image=content.pause_image, may_lower_oom_score=content.may_lower_oom_score
        ),
        "etc/crictl.yaml": "runtime-endpoint: unix:///run/containerd/containerd.sock\n",
        "etc/cni/net.d/10-lab.conflist": pod_network(node, lab.pod_subnet),
        "usr/bin/systemctl": systemctl_script(content.program.python),
        "usr/bin/journalctl": JOURNAL_SCRIPT,
    }
    for name, text in texts.items():
        path = files.upper / name
        machine.make_folder(path.parent)
        # Nothing here has to outlive a power cut, and fifteen fsyncs a node would be most of the time that it takes.
        machine.write_in_place(path, text.encode(), mode=0o755 if name.startswith("usr/bin/") else None)


def _link_programs(machine: LabFilesystem, files: NodeFiles, content: NodeContent) -> None:
    # Links, not copies: writing "to" one inside the node makes a private copy of the cached program behind it.
    for name, path in content.programs.items():
        machine.make_link(files.upper / "usr/bin" / name, path)
    for version, programs in content.releases.items():
        folder = files.upper / RELEASES_FOLDER / version
        machine.make_folder(folder)
        for name, path in programs.items():
            machine.make_link(folder / name, path)
    plugins = files.upper / CNI_FOLDER.lstrip("/")
    machine.make_folder(plugins)
    for plugin in sorted(content.cni_plugins.iterdir()):
        machine.make_link(plugins / plugin.name, plugin)


def systemctl() -> None:
    """Send the arguments to the supervisor, print its answer and end with its status.

    The source of this function is a script in the node: it uses nothing but the three modules that the script imports.
    """
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect("/var/lib/garboard-lab/systemctl.sock")
    except OSError as error:
        sys.exit(f"Failed to connect to the lab's supervisor: {error.strerror}")
    connection.sendall(json.dumps({"do": "systemctl", "arguments": sys.argv[1:]}).encode() + b"\n")
    answer = json.loads(connection.makefile().readline())
    sys.stdout.write(answer.get("text", ""))
    sys.exit(answer.get("status", 1))


def systemctl_script(python: str) -> str:
    """Write the script that goes into a node as /usr/bin/systemctl."""
    return (
        f"#!{python} -IS\nimport json\nimport socket\nimport sys\n\n\n{inspect.getsource(systemctl)}\n\nsystemctl()\n"
    )


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
