"""What is written down about a lab: its nodes, the process that makes it and the one that runs it.

From that, and from the processes that run, follows whether a lab is only left over from a crash.
"""

import json
import os
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Self

from garboard.documents import Json
from garboard.errors import BadUsage, GarboardError
from garboard.lab.kubeadm import Documents, Needs
from garboard.lab.layout import LabFiles
from garboard.lab.machine import LabFilesystem
from garboard.lab.topology import Lab


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process without ambiguity: numbers are used again, so the moment of its start is part of it."""

    pid: int
    started: int
    # Numbers mean something within one process namespace and one run of the machine only.
    namespace: str

    def as_json(self) -> Json:
        return {"pid": self.pid, "started": self.started, "namespace": self.namespace}

    @classmethod
    def from_json(cls, document: Json) -> Self | None:
        if not isinstance(document, dict):
            return None
        pid, started = document["pid"], document["started"]
        assert isinstance(pid, int)
        assert isinstance(started, int)
        return cls(pid, started, str(document["namespace"]))


@dataclass(frozen=True, slots=True)
class ProcessTable:
    """The processes of this machine that our own process namespace shows."""

    files: LabFilesystem

    def identify(self, pid: int) -> ProcessId | None:
        """Identify a running process; one that has ended but was not waited for counts as gone."""
        text = self._read(f"{pid}/stat")
        if text is None:
            return None
        fields = text.rpartition(")")[2].split()
        return None if fields[0] in {"Z", "X"} else ProcessId(pid, int(fields[19]), self._namespace())

    def myself(self) -> ProcessId:
        """Identify the running process."""
        found = self.identify(os.getpid())
        assert found is not None
        return found

    def is_alive(self, process: ProcessId) -> bool:
        return self.identify(process.pid) == process

    def is_foreign(self, process: ProcessId) -> bool:
        """Say whether a process lives in another process namespace of this machine, where we cannot see it."""
        ours, theirs = self._namespace().split("/"), process.namespace.split("/")
        return ours[0] == theirs[0] and ours != theirs

    def memory_bytes(self, process: ProcessId) -> int | None:
        """Return the resident memory of a process, or None once it has gone."""
        text = self._read(f"{process.pid}/statm")
        return None if text is None else int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def _namespace(self) -> str:
        """Name the run of the machine and the process namespace that we are in."""
        boot = self._read("sys/kernel/random/boot_id")
        assert boot is not None
        return f"{boot.strip()}/{Path('/proc/self/ns/pid').readlink()}"

    def _read(self, name: str) -> str | None:
        try:
            return self.files.read_kernel_file(Path("/proc") / name)
        except GarboardError:
            return None  # the process has gone, maybe while we looked


class Stage(StrEnum):
    CREATING = "creating"
    READY = "ready"
    REMOVING = "removing"


@dataclass(frozen=True, slots=True)
class Record:
    lab: Lab
    stage: Stage
    creator: ProcessId
    supervisor: ProcessId | None = None
    port: int = 0
    timings: dict[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, Json]:
        return {
            "lab": self.lab.as_json(),
            "stage": self.stage.value,
            "creator": self.creator.as_json(),
            "supervisor": self.supervisor.as_json() if self.supervisor else None,
            "port": self.port,
            "timings": dict(self.timings),
        }

    @classmethod
    def from_json(cls, document: dict[str, Json]) -> Self:
        lab, creator, supervisor = document["lab"], document["creator"], document["supervisor"]
        port, timings = document["port"], document["timings"]
        assert isinstance(lab, dict)
        assert isinstance(port, int)
        assert isinstance(timings, dict)
        found = ProcessId.from_json(creator)
        assert found is not None
        return cls(
            Lab.from_json(lab), Stage(str(document["stage"])), found, ProcessId.from_json(supervisor), port,
            {name: float(str(value)) for name, value in timings.items()},
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Records:
    """The records of all labs under one home."""

    machine: LabFilesystem
    home: Path

    @property
    def processes(self) -> ProcessTable:
        return ProcessTable(self.machine)

    def names(self) -> list[str]:
        """Every lab that has a folder, also one of which nothing else is left."""
        folder = self.home / "labs"
        return sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []

    def read(self, name: str) -> Record | None:
        """Return what is known of a lab; None if it has no record: its maker died before that was written."""
        data = self.machine.read_if_there(LabFiles(self.home, name).record)
        return None if data is None else Record.from_json(json.loads(data))

    def require(self, name: str) -> Record:
        record = self.read(name)
        if record is None:
            known = self.names()
            raise BadUsage(
                f"there is no lab {name!r} (labs here: {', '.join(known) or 'none'})",
                hint=f"pass --name {known[0]}" if known else "make one with `garboard lab up`",
            )
        return record

    def is_left_over(self, record: Record) -> bool:
        """Say whether no process runs this lab, or the one that was making or removing it has died on the way."""
        if self.processes.is_foreign(record.creator):
            return False  # a lab of a container that shares this folder: not ours to judge
        if record.stage is Stage.READY:
            return record.supervisor is None or not self.processes.is_alive(record.supervisor)
        return not self.processes.is_alive(record.creator)

    def write_given(self, files: LabFiles, yours: Documents, needs: Needs) -> None:
        """Keep what the cluster was configured with."""
        given = {"documents": dict(yours), "needs": asdict(needs)}
        self.machine.write_file(files.given, json.dumps(given).encode(), mode=0o600)

    def read_given(self, files: LabFiles) -> tuple[Documents, Needs]:
        given = json.loads(self.machine.read_file(files.given))
        return given["documents"], Needs(**given["needs"])

    def write(self, record: Record) -> Record:
        path = LabFiles(self.home, record.lab.name).record
        self.machine.write_file(path, json.dumps(record.as_json(), indent=2).encode(), mode=0o600)
        return record

    def update(self, record: Record, **changes: object) -> Record:
        return self.write(replace(record, **changes))  # type: ignore[arg-type]  # names and types are those of Record
