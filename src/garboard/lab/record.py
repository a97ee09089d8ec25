"""What is written down about a lab: its nodes, who makes it, who runs it; and with that, what is left over."""

import json
import os
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Self

from garboard.documents import Json
from garboard.errors import InvalidValue
from garboard.lab.kubeadm import Documents, Needs
from garboard.lab.layout import LabFiles
from garboard.lab.machine import Machine
from garboard.lab.topology import Lab


class Stage(StrEnum):
    CREATING = "creating"
    READY = "ready"
    REMOVING = "removing"


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process for certain: numbers are used again, the moment of its start tells two apart."""

    pid: int
    started: int
    # Numbers mean something within one process namespace and one run of the machine only.
    namespace: str

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Identify a running process; one that has ended but was not waited for counts as gone."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] in {"Z", "X"} else cls(pid, int(fields[19]), process_namespace())

    @property
    def is_alive(self) -> bool:
        return type(self).of(self.pid) == self

    @property
    def is_foreign(self) -> bool:
        """It lives in another process namespace of this machine, where we cannot see it."""
        ours, theirs = process_namespace().split("/"), self.namespace.split("/")
        return ours[0] == theirs[0] and ours != theirs


def process_namespace() -> str:
    """Name the run of the machine and the process namespace that we are in."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"


@dataclass(frozen=True, slots=True)
class Record:
    lab: Lab
    stage: Stage
    creator: ProcessId
    supervisor: ProcessId | None = None
    port: int = 0
    timings: dict[str, float] = field(default_factory=dict)

    @property
    def is_left_over(self) -> bool:
        """Nobody runs this lab, or whoever was making or removing it has died on the way."""
        if self.creator.is_foreign:
            return False  # a lab of a container that shares this folder: not ours to judge
        if self.stage is Stage.READY:
            return self.supervisor is None or not self.supervisor.is_alive
        return not self.creator.is_alive

    def as_json(self) -> dict[str, Json]:
        return {
            "lab": self.lab.as_json(),
            "stage": self.stage.value,
            "creator": _process_as_json(self.creator),
            "supervisor": _process_as_json(self.supervisor) if self.supervisor else None,
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
        found = _process_from_json(creator)
        assert found is not None
        return cls(
            Lab.from_json(lab), Stage(str(document["stage"])), found, _process_from_json(supervisor), port,
            {name: float(str(value)) for name, value in timings.items()},
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Records:
    """The records of all labs under one home."""

    machine: Machine
    home: Path

    def names(self) -> list[str]:
        """Every lab that has a folder, also one of which nothing else is left."""
        folder = self.home / "labs"
        return sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []

    def read(self, name: str) -> Record | None:
        """Return what is known of a lab; None if it has no record, for it died before it was written."""
        path = LabFiles(self.home, name).record
        if not path.exists():
            return None
        return Record.from_json(json.loads(self.machine.read_file(path)))

    def require(self, name: str) -> Record:
        record = self.read(name)
        if record is None:
            known = self.names()
            raise InvalidValue(
                f"there is no lab {name!r} (labs here: {', '.join(known) or 'none'})",
                hint=f"pass --name {known[0]}" if known else "make one with `garboard lab up`",
            )
        return record

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


def myself() -> ProcessId:
    """Identify the running process."""
    found = ProcessId.of(os.getpid())
    assert found is not None
    return found


def _process_as_json(process: ProcessId) -> Json:
    return {"pid": process.pid, "started": process.started, "namespace": process.namespace}


def _process_from_json(document: Json) -> ProcessId | None:
    if not isinstance(document, dict):
        return None
    pid, started = document["pid"], document["started"]
    assert isinstance(pid, int)
    assert isinstance(started, int)
    return ProcessId(pid, started, str(document["namespace"]))
