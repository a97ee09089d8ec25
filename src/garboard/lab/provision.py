"""The files of a node before it first starts: what its own folders hold and what it sees in place of the machine's."""

import os
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from garboard.lab.imageset import copy_store
from garboard.lab.layout import NodeFiles
from garboard.lab.mounts import SYSCTLS, RootPlan
from garboard.lab.network import hosts_file, resolver_file
from garboard.lab.program import install_program
from garboard.lab.runtime import CNI_FOLDER, containerd_config, pod_network
from garboard.lab.systemctl import JOURNAL_SCRIPT, render_script
from garboard.lab.topology import Lab, Node

NODE_FOLDERS = (
    "proc", "sys", "dev", "run", "tmp", "var/lib/etcd", "var/lib/kubelet", "var/lib/garboard-lab", "var/log/pods",
    "var/log/containers", "var/cache", "var/tmp", "var/spool",
)  # fmt: skip
# The programs of every release that the lab has, by version: what an upgrade puts into /usr/bin.
RELEASES_FOLDER = "opt/kubernetes"
# What the machine itself may have there is none of the node's business.
OPAQUE = ("etc/kubernetes", "etc/cni", "etc/containerd", "opt/cni", "usr/libexec/kubernetes", "etc/default/kubelet.d")


@dataclass(frozen=True, slots=True)
class NodeContent:
    """What goes into every node of a lab."""

    programs: Mapping[str, Path]
    releases: Mapping[str, Mapping[str, Path]]
    cni_plugins: Path
    image_store: Path
    pause_image: str
    may_lower_oom_score: bool
    python: str


def provision(files: NodeFiles, lab: Lab, node: Node, root: RootPlan, content: NodeContent) -> None:
    """Write the files of a new node."""
    for name in NODE_FOLDERS:
        (files.root / name).mkdir(parents=True, exist_ok=True)
    for name, target in root.links.items():
        (files.root / name).symlink_to(target)
    (files.var / "run").symlink_to("/run")
    for name in root.overlaid:
        _own_folder(files, name)
    _hide(files, root)
    _write_sysctls(files)
    _write_texts(files, lab, node, content)
    _link_programs(files, content)
    install_program(files, content.python)
    copy_store(content.image_store, files.var / "lib/containerd")


def _own_folder(files: NodeFiles, name: str) -> None:
    """Make the writable layer over the machine's /NAME; the node sees its mode and owner in place of the machine's."""
    (files.root / name).mkdir(exist_ok=True)
    (files.work / name).mkdir(parents=True)
    upper, machine = files.upper / name, Path("/") / name
    upper.mkdir(parents=True)
    shutil.copystat(machine, upper)
    os.chown(upper, machine.stat().st_uid, machine.stat().st_gid)


def _hide(files: NodeFiles, root: RootPlan) -> None:
    for name in OPAQUE:
        if name.split("/", 1)[0] in root.overlaid:
            (files.upper / name).mkdir(parents=True, exist_ok=True)
            os.setxattr(files.upper / name, "trusted.overlay.opaque", b"y")


def _write_sysctls(files: NodeFiles) -> None:
    files.sysctls.mkdir()
    for name, value in SYSCTLS.items():
        (files.sysctls / name.replace("/", ".")).write_text(f"{value}\n")


def _write_texts(files: NodeFiles, lab: Lab, node: Node, content: NodeContent) -> None:
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
        "usr/bin/systemctl": render_script(content.python),
        "usr/bin/journalctl": JOURNAL_SCRIPT,
    }
    for name, text in texts.items():
        path = files.upper / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # Nothing here has to outlive a power cut, and fifteen fsyncs a node would be most of the time that it takes.
        path.write_text(text)
    for name in ("systemctl", "journalctl"):
        (files.upper / "usr/bin" / name).chmod(0o755)


def _link_programs(files: NodeFiles, content: NodeContent) -> None:
    # Links, not copies: writing "to" one inside the node makes a private copy of the cached program behind it.
    for name, path in content.programs.items():
        (files.upper / "usr/bin" / name).symlink_to(path)
    for version, programs in content.releases.items():
        folder = files.upper / RELEASES_FOLDER / version
        folder.mkdir(parents=True)
        for name, path in programs.items():
            (folder / name).symlink_to(path)
    plugins = files.upper / CNI_FOLDER.lstrip("/")
    plugins.mkdir(parents=True, exist_ok=True)
    for plugin in sorted(content.cni_plugins.iterdir()):
        (plugins / plugin.name).symlink_to(plugin)
