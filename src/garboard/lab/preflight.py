"""Whether this machine can run a lab: every reason why not, with the way out, before anything is changed.

One limit of the machine, that of inotify instances, is no reason: labs raise it while they run.
"""

import json
import os
import resource
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from garboard.errors import NotReady
from garboard.lab.cgroups import parse_hierarchies
from garboard.lab.machine import LabFilesystem, LabMachine

# Command, and the Debian package that has it.
PROGRAMS = {
    "containerd": "containerd", "ctr": "containerd", "runc": "runc", "ip": "iproute2", "nft": "nftables",
    "conntrack": "conntrack", "iptables": "iptables", "ldd": "libc-bin", "nsenter": "util-linux",
    "unshare": "util-linux", "setpriv": "util-linux",
}  # fmt: skip
CONTROLLERS = ("cpu", "cpuset", "memory", "pids")
NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "uts")
NODE_DISK_BYTES = 300 * 1024**2
BASE_DISK_BYTES = 3 * 1024**3
NODE_MEMORY_BYTES = 450 * 1024**2
MIN_OPEN_FILES = 4096

INSTANCES = Path("/proc/sys/fs/inotify/max_user_instances")


@dataclass(frozen=True, slots=True)
class MissingRequirement:
    """Something that the machine lacks, and how to get it."""

    what: str
    found: str
    remedy: str


@dataclass(frozen=True, slots=True)
class ProxyMode:
    """How kube-proxy can work here; `lacks` says why not with nftables."""

    mode: str
    lacks: str | None = None


Check = Callable[[], Iterable[MissingRequirement]]


@dataclass(frozen=True, slots=True)
class Preflight:
    machine: LabMachine
    home: Path
    nodes: int

    def run(self) -> tuple[MissingRequirement, ...]:
        """Return everything that is missing; without root or the programs, the other checks cannot run."""
        first = (*self._root(), *self._programs())
        if first:
            return first
        checks: tuple[Check, ...] = (
            self._namespaces, self._cgroups, self._overlay, self._links, self._limits, self._memory, self._disk,
        )  # fmt: skip
        return tuple(each for check in checks for each in check())

    def require(self) -> None:
        """Raise with a table if anything is missing."""
        missing = self.run()
        if missing:
            raise NotReady(
                f"this machine cannot run the lab yet; nothing was changed\n{render_table(missing)}",
                hint="put right what the table names, then run the same command again",
            )

    def proxy_mode(self) -> ProxyMode:
        """Find out, in a network namespace that is gone afterwards, how kube-proxy can program this kernel."""
        lacking = [name for name, rules in NFT_PROBES.items() if not self._accepts(rules)]
        if not lacking:
            return ProxyMode("nftables")
        return ProxyMode("iptables", f"the kernel's nftables lack {', '.join(lacking)}")

    def _accepts(self, rules: str) -> bool:
        command = ["unshare", "--net", "nft", "-f", "-"]
        return self.machine.run(command, stdin=rules.encode(), check=False).status == 0

    def _read(self, path: str | Path) -> str:
        return self.machine.read_kernel_file(Path(path))

    def _root(self) -> Iterable[MissingRequirement]:
        if os.geteuid() != 0:
            yield MissingRequirement("root", f"user {os.geteuid()}", "run the command as root, e.g. with sudo")

    def _programs(self) -> Iterable[MissingRequirement]:
        for name, package in PROGRAMS.items():
            if self.machine.find_program(name) is None:
                yield MissingRequirement(f"program {name}", "not on PATH", f"apt-get install {package}")

    def _namespaces(self) -> Iterable[MissingRequirement]:
        for name in NAMESPACES:
            if not Path(f"/proc/self/ns/{name}").exists():
                yield MissingRequirement(
                    f"{name} namespaces", "not in this kernel", "use a kernel with CONFIG_NAMESPACES and friends"
                )

    def _cgroups(self) -> Iterable[MissingRequirement]:
        hierarchies = parse_hierarchies(self._read("/proc/self/mountinfo"))
        if not hierarchies:
            yield MissingRequirement("control groups", "not mounted", "mount -t cgroup2 cgroup2 /sys/fs/cgroup")
            return
        available: set[str] = set()
        for each in hierarchies:
            available |= set(each.options.split(","))
            if each.is_v2:
                available |= set(self._read(each.path / "cgroup.controllers").split())
        for name in CONTROLLERS:
            if name not in available:
                yield MissingRequirement(
                    f"cgroup controller {name}", "not available", "mount it, or boot without cgroup_disable"
                )
        if not os.access(hierarchies[0].path, os.W_OK):
            yield MissingRequirement(
                "writable control groups", "read-only", "run outside of this container, or make it privileged"
            )

    def _overlay(self) -> Iterable[MissingRequirement]:
        """Try an overlay whose changes lie in the labs' home, in a mount namespace that is gone afterwards."""
        existing = next(each for each in (self.home, *self.home.parents) if each.is_dir())
        script = (
            'd=$(mktemp -d -p "$1" .garboard-probe-XXXXXX) || exit 2; mkdir $d/u $d/w $d/m; '
            "mount -t overlay overlay -o lowerdir=/etc,upperdir=$d/u,workdir=$d/w $d/m; s=$?; "
            'umount $d/m 2>/dev/null; rm -rf "$d"; exit $s'
        )
        ended = self.machine.run(["unshare", "--mount", "sh", "-c", script, "probe", existing], check=False)
        if ended.status != 0:
            remedy = "modprobe overlay; or set GARBOARD_LAB_HOME to a folder on ext4 or xfs"
            yield MissingRequirement(f"overlayfs over {existing}", ended.stderr.strip() or "not usable", remedy)

    def _links(self) -> Iterable[MissingRequirement]:
        for kind, rest in (("bridge", ""), ("veth", "peer name probe2")):
            command = ["unshare", "--net", "ip", "link", "add", "probe", "type", kind, *rest.split()]
            if self.machine.run(command, check=False).status != 0:
                yield MissingRequirement(f"{kind} links", "refused by the kernel", f"modprobe {kind}")

    def _limits(self) -> Iterable[MissingRequirement]:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if hard != resource.RLIM_INFINITY and hard < MIN_OPEN_FILES:
            yield MissingRequirement(f"{MIN_OPEN_FILES} open files", str(hard), f"ulimit -Hn {MIN_OPEN_FILES}")
        needed = inotify_instances(self.nodes)
        allowed = int(self._read(INSTANCES))
        if allowed < needed and not os.access(INSTANCES, os.W_OK):
            remedy = f"sysctl -w fs.inotify.max_user_instances={needed} on the machine itself"
            yield MissingRequirement(f"{needed} inotify instances", str(allowed), remedy)

    def _memory(self) -> Iterable[MissingRequirement]:
        fields = dict(line.split(":", 1) for line in self._read("/proc/meminfo").splitlines())
        available = int(fields["MemAvailable"].split()[0]) * 1024
        needed = self.nodes * NODE_MEMORY_BYTES
        if available < needed:
            yield MissingRequirement(
                f"{_mib(needed)} of memory", f"{_mib(available)} available", "ask for fewer nodes, or stop something"
            )

    def _disk(self) -> Iterable[MissingRequirement]:
        existing = next(each for each in (self.home, *self.home.parents) if each.is_dir())
        free, needed = self.machine.free_bytes(existing), BASE_DISK_BYTES + self.nodes * NODE_DISK_BYTES
        if free < needed:
            yield MissingRequirement(
                f"{_mib(needed)} of disk in {existing}", f"{_mib(free)} free", "free some, or set GARBOARD_LAB_HOME"
            )


def render_table(missing: Iterable[MissingRequirement]) -> str:
    """Write what is missing as a table."""
    rows = [("needed", "found", "how to get it"), *((each.what, each.found, each.remedy) for each in missing)]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(f"  {row[0]:{widths[0]}}  {row[1]:{widths[1]}}  {row[2]}" for row in rows)


# One rule each of the kinds that kube-proxy writes.
NFT_PROBES = {
    "numgen": 'table ip probe { chain c { numgen random mod 2 vmap { 0: accept, 1: drop }; }; }\n',
    "fib": 'table ip probe { chain c { fib daddr type local accept; }; }\n',
    "nat": 'table ip probe { chain c { type nat hook postrouting priority 0; masquerade fully-random; }; }\n',
    "verdict maps": 'table ip probe { map m { type ipv4_addr . inet_proto . inet_service : verdict; }; }\n',
}  # fmt: skip


def _mib(size: int) -> str:
    return f"{size // 1024**2} MiB"


@dataclass(frozen=True, slots=True)
class InotifyLimit:
    """The machine's limit of inotify instances: labs raise it, and the last one that ends puts it back.

    The value found is written down before anything is changed, so that a crash cannot lose it.
    """

    files: LabFilesystem
    home: Path

    @property
    def _saved(self) -> Path:
        return self.home / "limits.json"

    def raise_for(self, nodes: int) -> None:
        """Allow as many inotify instances as `nodes` nodes, in all labs together, need."""
        current, needed = int(self.files.read_kernel_file(INSTANCES)), inotify_instances(nodes)
        if current >= needed:
            return
        if not self._saved.exists():
            self.files.write_file(self._saved, json.dumps({str(INSTANCES): current}).encode())
        self.files.write_in_place(INSTANCES, str(needed).encode())

    def restore(self) -> None:
        """Put back what `raise_for` found."""
        if not self._saved.exists():
            return
        for path, value in json.loads(self.files.read_file(self._saved)).items():
            if Path(path) == INSTANCES:
                self.files.write_in_place(INSTANCES, str(value).encode())
        self.files.remove_file(self._saved)


def inotify_instances(nodes: int) -> int:
    """How many inotify instances the machine should allow for this many nodes: about 20 each, and room for others."""
    return 128 + 40 * nodes
