"""The control groups of a node: one group in every hierarchy, which the node sees as its root.

A kubelet takes the pods of another one on the same root for orphans and kills them, so each node gets a cgroup
namespace; inside it the kubelet works with `/` as on a machine of its own.
"""

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path

from garboard.errors import GarboardError
from garboard.lab.machine import LabFilesystem

TOP = "garboard-lab"
# Processes of the node live in this leaf: with cgroup v2 a group with controllers switched on may hold none itself.
LEAF = "system"
# A group counts as one process beside those of the machine unless it is given more weight; a lab is dozens of them.
WEIGHTS = {"cpu.shares": "32768", "cpu.weight": "3200"}
NOT_OPTIONS = {"rw", "ro", "nsdelegate", "memory_recursiveprot", "memory_localevents"}


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A mounted cgroup hierarchy; `options` are those that mount it again (`memory`, `name=systemd`)."""

    path: Path
    kind: str
    options: str

    @property
    def is_v2(self) -> bool:
        return self.kind == "cgroup2"


def parse_hierarchies(mountinfo: str) -> tuple[Hierarchy, ...]:
    """Read the cgroup hierarchies from the text of /proc/self/mountinfo; of one mounted twice, the first."""
    found: dict[str, Hierarchy] = {}
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        kind, _, rest = right.partition(" ")
        if kind in {"cgroup", "cgroup2"}:
            options = ",".join(o for o in rest.split(" ")[1].split(",") if o not in NOT_OPTIONS)
            path = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), left.split(" ")[4])
            found.setdefault(f"{kind}:{options}", Hierarchy(Path(path), kind, options if kind == "cgroup" else ""))
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class LabGroups:
    """The groups of one lab in every hierarchy of the machine."""

    files: LabFilesystem
    hierarchies: tuple[Hierarchy, ...]
    lab: str

    def group(self, hierarchy: Hierarchy, node: str | None = None) -> Path:
        lab = hierarchy.path / TOP / self.lab
        return lab / node if node else lab

    def entry_files(self, node: str, *, leaf: bool = True) -> list[Path]:
        """The files into which a process writes itself to become one of the node's."""
        ends = f"{LEAF}/cgroup.procs" if leaf else "cgroup.procs"
        return [self.group(each, node) / ends for each in self.hierarchies]

    def make(self, node: str) -> None:
        """Make the node's groups; on cgroup v1 a new cpuset has no processors until they are written into it."""
        for hierarchy in self.hierarchies:
            path = hierarchy.path
            for part in (TOP, self.lab, node):
                path = path / part
                self._make_group(path)
                if part != node:
                    self._give_weight(path)
            self._make_group(path / LEAF)

    def _make_group(self, path: Path) -> None:
        self.files.make_folder(path)
        if not (path / "cpuset.sched_load_balance").exists():
            return  # on cgroup v2 an empty cpuset means "as the parent"; only v1 refuses processes until it is filled
        for name in ("cpuset.cpus", "cpuset.mems"):
            if (path / name).exists() and (path.parent / name).exists():
                self.files.write_in_place(path / name, self._read(path.parent / name).encode())

    def _give_weight(self, path: Path) -> None:
        for name, weight in WEIGHTS.items():
            if (path / name).exists():
                self.files.write_in_place(path / name, weight.encode())

    def admit(self, node: str, pid: int) -> None:
        """Make a process one of the node's."""
        for entry in self.entry_files(node):
            self.files.write_in_place(entry, str(pid).encode())

    def delegate(self, node: str) -> None:
        """On cgroup v2, switch on the controllers that the machine offers for the groups of the node's pods."""
        for hierarchy in self.hierarchies:
            if not hierarchy.is_v2:
                continue
            path = hierarchy.path
            for part in ("", TOP, self.lab, node):
                path = path / part
                for controller in self._read(path / "cgroup.controllers").split():
                    # Refused where processes sit in the group itself, as in a container: its pods then do without.
                    with contextlib.suppress(GarboardError):
                        self.files.write_in_place(path / "cgroup.subtree_control", f"+{controller}".encode())

    def remove(self, node: str | None = None) -> list[Path]:
        """Remove the groups of a node, or of the whole lab; return those that are still in use."""
        left: list[Path] = []
        for hierarchy in self.hierarchies:
            left += self.remove_below(self.group(hierarchy, node))
            if node is None:
                self.files.remove_group(hierarchy.path / TOP)
        return left

    def remove_below(self, group: Path) -> list[Path]:
        """Remove a group and those below it; return what could not be removed."""
        if not group.is_dir():
            return []
        left = [path for child in sorted(group.iterdir()) if child.is_dir() for path in self.remove_below(child)]
        return left or ([] if self.files.remove_group(group) else [group])

    def members(self, group: Path) -> list[int]:
        """Return the processes in a group; none once it has gone."""
        try:
            found = map(int, self._read(group / "cgroup.procs").split())
            return [
                pid for pid in found if pid > 0
            ]  # 0 is a process of another namespace; a signal to 0 would reach us
        except GarboardError:
            return []

    def memory_bytes(self) -> int | None:
        """The working set of the lab's processes, as the kubelet counts it: all but idle pages of files."""
        for hierarchy in self.hierarchies:
            for name, inactive in (
                ("memory.usage_in_bytes", "total_inactive_file"),
                ("memory.current", "inactive_file"),
            ):
                group = self.group(hierarchy)
                if (group / name).exists():
                    fields = dict(line.split() for line in self._read(group / "memory.stat").splitlines())
                    return int(self._read(group / name)) - int(fields.get(inactive, 0))
        return None

    def _read(self, path: Path) -> str:
        return self.files.read_kernel_file(path)
