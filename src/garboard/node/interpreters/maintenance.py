"""etcd looked after without changing its members: snapshots saved, and a leader that goes elsewhere."""

import posixpath
from collections.abc import Callable, Iterable
from typing import Protocol

from garboard.engine import Interpreters, MoveLeader, SaveSnapshot, StepContext
from garboard.node.interpreters.files import FileWriter
from garboard.values import dataclass

_MODE, _FOLDER_MODE = 0o600, 0o700


class EtcdMaintenance(Protocol):
    def save_snapshot(self, client_url: str, write: Callable[[bytes], object]) -> str:
        """Pass the database of a member to `write`, part by part; return its digest, which is verified."""
        ...

    def move_leader(self, peer_url: str, timeout_s: float) -> None: ...


def outdated(action: SaveSnapshot, names: Iterable[str]) -> list[str]:
    """Return the snapshots beside a new one that are not among the newest; their names end with when they were made."""
    folder, own = posixpath.split(action.path)
    ending = posixpath.splitext(own)[1]
    found = [each for each in names if each.endswith(ending) and not each.startswith(".")]
    by_age = sorted(found, key=lambda each: each.rpartition("-")[2])
    surplus = len(by_age) - action.keeps if action.keeps else 0
    return [posixpath.join(folder, each) for each in by_age[: max(0, surplus)] if each != own]


@dataclass(frozen=True, slots=True)
class MaintenanceInterpreter:
    etcd: EtcdMaintenance
    files: FileWriter

    def add_to(self, interpreters: Interpreters) -> None:
        interpreters.add(SaveSnapshot, self.save_snapshot).add(MoveLeader, self.move_leader)

    def save_snapshot(self, action: SaveSnapshot, run: StepContext) -> None:
        """Save a snapshot; its file has its name once all is on the disk, and after the digest was recorded."""
        with self.files.new_file(action.path, mode=_MODE, folder_mode=_FOLDER_MODE) as write:
            run.note({action.path: self.etcd.save_snapshot(action.client_url, write)})
        for path in outdated(action, self.files.entries(posixpath.dirname(action.path))):
            self.files.remove(path)

    def move_leader(self, action: MoveLeader, _run: StepContext) -> None:
        self.etcd.move_leader(action.peer_url, action.timeout_s)
