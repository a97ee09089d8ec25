"""Where the files of labs are. All of them are under one home, which only root may enter."""

import os
from dataclasses import dataclass
from pathlib import Path

DEFAULT_HOME = Path("/var/lib/garboard/lab")
# Programs of a node find the supervisor here (a path inside the node, below the node's own /var).
NODE_SOCKET = "lib/garboard-lab/systemctl.sock"


def lab_home() -> Path:
    """Return the folder of all labs: GARBOARD_LAB_HOME, or /var/lib/garboard/lab."""
    return Path(os.environ.get("GARBOARD_LAB_HOME") or DEFAULT_HOME)


@dataclass(frozen=True, slots=True)
class NodeFiles:
    """The files of one node: `root` becomes its /, `upper` holds what it changed in the machine's own folders."""

    folder: Path

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def var(self) -> Path:
        return self.root / "var"

    @property
    def upper(self) -> Path:
        return self.folder / "upper"

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def sysctls(self) -> Path:
        return self.folder / "sysctls"

    @property
    def socket(self) -> Path:
        return self.var / NODE_SOCKET

    def log(self, unit: str) -> Path:
        return self.var / "log" / f"{unit}.log"


@dataclass(frozen=True, slots=True)
class LabFiles:
    """The files of one lab."""

    home: Path
    name: str

    @property
    def folder(self) -> Path:
        return self.home / "labs" / self.name

    @property
    def record(self) -> Path:
        return self.folder / "lab.json"

    @property
    def control(self) -> Path:
        return self.folder / "control.sock"

    @property
    def supervisor_log(self) -> Path:
        return self.folder / "supervisor.log"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "admin.conf"

    @property
    def given(self) -> Path:
        """The user's configuration documents, and what this machine needs in addition."""
        return self.folder / "given.json"

    @property
    def patches(self) -> Path:
        return self.folder / "patches"

    def node(self, name: str) -> NodeFiles:
        return NodeFiles(self.folder / "nodes" / name)


@dataclass(frozen=True, slots=True)
class SnapshotFiles:
    """The files of one snapshot: those of a lab's nodes, and what says how they were made."""

    home: Path
    name: str

    @property
    def folder(self) -> Path:
        return snapshots_folder(self.home) / self.name

    @property
    def manifest(self) -> Path:
        return self.folder / "snapshot.json"

    @property
    def given(self) -> Path:
        return self.folder / "given.json"

    @property
    def patches(self) -> Path:
        return self.folder / "patches"

    def node(self, name: str) -> NodeFiles:
        return NodeFiles(self.folder / "nodes" / name)


def snapshots_folder(home: Path) -> Path:
    """Where the snapshots of labs are kept."""
    return home / "snapshots"


def images_folder(home: Path) -> Path:
    """Where the container images that all labs share are kept, unpacked."""
    return home / "images"


def failed_folder(home: Path) -> Path:
    """Where the logs of labs that did not come up are kept, by the names of the labs."""
    return home / "failed"


def program_folder(home: Path) -> Path:
    """Where the copy of garboard that nodes share is kept."""
    return home / "garboard"
