"""The namespaces of a node: the commands that make and enter them, and its file system as a list of things to do there.

The node sees the machine's own folders (/usr, /etc, /opt …) through an overlay, so it finds every program that the
machine has and whatever it writes stays its own. /var is the node's alone and on disk, for container snapshots cannot
sit on an overlay. Everything vanishes with the last process of the node. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from garboard.documents import Json
from garboard.lab.cgroups import Hierarchy
from garboard.lab.layout import NodeFiles

NODE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# A process writes 0 into cgroup.procs to move itself; then it enters the node's namespaces and becomes the program.
JOIN_GROUPS = 'while [ "$1" != -- ]; do echo 0 >"$1" || exit 125; shift; done; shift; exec "$@"'

# Folders that are never shown through: the node gets its own, or none.
OWN_FOLDERS = frozenset({"proc", "sys", "dev", "run", "tmp", "var", "mnt", "media", "boot", "lost+found"})
# The kubelet insists on these values; the node sees files that already hold them, the machine's stay as they are.
SYSCTLS: Mapping[str, str] = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
# Written in the node's own network namespace.
NETWORK_SYSCTLS: Mapping[str, str] = {
    "net/ipv4/ip_forward": "1",
    "net/ipv4/conf/all/rp_filter": "0",
}


def enter_command(
    pid: int, groups: Iterable[Path], command: Sequence[str], *, env: Mapping[str, str] | None = None
) -> list[str]:
    """Return what runs `command` in the namespaces of the process `pid` and in the given control groups."""
    variables = {"PATH": NODE_PATH, "HOME": "/root", "LANG": "C.UTF-8", **(env or {})}
    return [
        "/bin/sh", "-c", JOIN_GROUPS, "join-groups", *map(str, groups), "--",
        "nsenter", "--target", str(pid), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root",
        "--wdns=/", "--", "/usr/bin/env", "-i", *(f"{name}={value}" for name, value in variables.items()), *command,
    ]  # fmt: skip


def first_process_command(groups: Iterable[Path], node_command: Sequence[str]) -> list[str]:
    """Return what runs `node_command` as the first process of a node, in new namespaces; it is killed when we end."""
    return [
        "/bin/sh", "-c", JOIN_GROUPS, "join-groups", *map(str, groups), "--",
        "setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup",
        "--kill-child=KILL", "--", *node_command,
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class MountStep:
    """One mount(8); `target` is inside the node's root."""

    kind: str
    source: str
    target: str
    options: str = ""

    def as_json(self) -> Json:
        return {"do": "mount", "kind": self.kind, "source": self.source, "target": self.target, "options": self.options}


@dataclass(frozen=True, slots=True)
class WriteStep:
    """Text for a file, written once the node's root is in place."""

    path: str
    text: str

    def as_json(self) -> Json:
        return {"do": "write", "path": self.path, "text": self.text}


@dataclass(frozen=True, slots=True)
class RootPlan:
    """What is shown through to a node: overlaid folders, and links of the machine's / to copy (`bin` → `usr/bin`)."""

    overlaid: tuple[str, ...]
    links: Mapping[str, str]


def plan_root(entries: Iterable[tuple[str, str | None, bool]], home: Path) -> RootPlan:
    """Sort the entries of / (name, link target, is a folder); the folder that holds the labs is never overlaid."""
    hidden = OWN_FOLDERS | {home.parts[1]}
    links = {name: target for name, target, _ in entries if target is not None}
    folders = tuple(name for name, target, is_folder in entries if is_folder and target is None and name not in hidden)
    return RootPlan(folders, links)


def plan_mounts(
    files: NodeFiles, root: RootPlan, hierarchies: Iterable[Hierarchy]
) -> tuple[MountStep | WriteStep, ...]:
    """List the mounts of a node in order, relative to its root, and the sysctls of its network."""
    steps: list[MountStep | WriteStep] = [
        MountStep(
            "overlay",
            "overlay",
            f"/{name}",
            f"lowerdir=/{name},upperdir={files.upper / name},workdir={files.work / name}",
        )
        for name in root.overlaid
    ]
    steps += [
        MountStep("proc", "proc", "/proc"),
        MountStep("sysfs", "sysfs", "/sys"),
        MountStep("rbind", "/dev", "/dev"),
        MountStep("tmpfs", "tmpfs", "/dev/shm", "mode=1777"),
        MountStep("tmpfs", "tmpfs", "/run", "mode=755"),
        MountStep("tmpfs", "tmpfs", "/tmp", "mode=1777"),
    ]
    steps += _cgroup_mounts(tuple(hierarchies))
    steps += [MountStep("bind", str(files.sysctls / name.replace("/", ".")), f"/proc/sys/{name}") for name in SYSCTLS]
    steps += [WriteStep(f"/proc/sys/{name}", value) for name, value in NETWORK_SYSCTLS.items()]
    return tuple(steps)


def _cgroup_mounts(hierarchies: tuple[Hierarchy, ...]) -> list[MountStep]:
    if [str(each.path) for each in hierarchies] == ["/sys/fs/cgroup"]:
        return [MountStep("cgroup2", "cgroup2", "/sys/fs/cgroup")]
    mounts = [MountStep("tmpfs", "tmpfs", "/sys/fs/cgroup", "mode=755")]
    return mounts + [MountStep(each.kind, "cgroup", str(each.path), each.options) for each in hierarchies]
