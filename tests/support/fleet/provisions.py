"""Provisions in a child process that is killed at a chosen write, and what is asked of a work folder afterwards."""

import fcntl
import hashlib
import os
import signal
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from garboard.fleet.provision import OutputScrubber, ProvisionRecord, read_record
from garboard.host.work_folder import WorkFolder
from garboard.node.fleet.program_installer import InstallerTimes, ProgramInstaller
from garboard.node.fleet.provisioning import RECORD, Customized, InstallerOf, Provisioner, ProvisionOrder, provisioner
from tests.support.node.reporters import MemoryReporter

PROGRAM = str(Path(__file__).parent / "synthetic_installer.py")
PULL_SECRET = "pull-secret-of-this-test"


def nothing(_tree: Mapping[str, bytes | str]) -> Customized:
    return Customized({})


@dataclass
class Provisioning:
    """A deployment, its work folder and its installer."""

    work: Path
    installer_of: InstallerOf
    installer: str = "synthetic"
    install_config: bytes = b"metadata: {name: c1}\n"
    customize: Callable[[Mapping[str, bytes | str]], Customized] = nothing
    attempts_limit: int | None = None
    secrets: tuple[str, ...] = (PULL_SECRET,)
    reporter: MemoryReporter = field(default_factory=MemoryReporter)

    def provision(self) -> None:
        self._with(lambda each: each.provision(self.order()))

    def resume(self) -> None:
        self._with(lambda each: each.resume())

    def deprovision(self, *, again: bool = False) -> None:
        self._with(lambda each: each.deprovision(again=again))

    def is_killed(self, task: Callable[[], None]) -> bool:
        """Run one of the above in another process; say whether it was killed, once all that it started has ended."""
        ended = in_child(task)
        assert ended in (0, -signal.SIGKILL)
        if (self.work / ".lock").exists():
            with (self.work / ".lock").open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
        return ended != 0

    def order(self) -> ProvisionOrder:
        return ProvisionOrder(
            namespace="fleet",
            deployment="c1",
            install_config=self.install_config,
            customize=self.customize,
            attempts_limit=self.attempts_limit,
            extra_manifests={"extra.yaml": b"kind: Extra\n"},
            digest=hashlib.sha256(self.install_config).hexdigest(),
        )

    def record(self) -> ProvisionRecord:
        return read_record((self.work / RECORD).read_bytes(), source=RECORD)

    def _with(self, task: Callable[[Provisioner], Any]) -> None:
        scrubber = OutputScrubber(self.secrets)
        new = ProvisionRecord(namespace="fleet", deployment="c1", installer=self.installer)
        with provisioner(self.work, "fleet test", new, lambda _: self.installer_of, self.reporter, scrubber) as each:
            task(each)


def synthetic(cloud: Path, *, misbehave: str = "", say: str = "", cluster_s: float = 60.0) -> InstallerOf:
    """Return what makes the driver of the synthetic installer."""
    environment = {"CLOUD": str(cloud), "MISBEHAVE": misbehave, "SAY": say}
    times = InstallerTimes(render_s=60.0, cluster_s=cluster_s)
    return lambda scrubber, reporter, lock: ProgramInstaller(
        PROGRAM, reporter, scrubber, environment=environment, lock=lock, times=times
    )


def in_child(task: Callable[[], None]) -> int:
    """Run something in a process of its own; return its status, as a shell has it, negative for a signal."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            task()
            status = 0
        except BaseException:  # noqa: BLE001  # a child has nobody to raise to
            traceback.print_exc()
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(ended)


def kill_at_write(monkeypatch: pytest.MonkeyPatch, number: int, *, after: bool) -> Callable[[], None]:
    """Have the write of that number in a work folder be the last; return what counts them from zero again."""
    written = WorkFolder.write
    count = [0]

    def write(folder: WorkFolder, name: str, data: bytes) -> None:
        is_last = count[0] == number
        count[0] += 1
        if is_last and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        written(folder, name, data)
        if is_last:
            os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(WorkFolder, "write", write)
    return lambda: count.__setitem__(0, 0)
