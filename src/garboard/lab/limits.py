"""Limits of the machine that a lab raises while one runs and puts back when the last one ends."""

import json
from dataclasses import dataclass
from pathlib import Path

from garboard.lab.machine import Machine
from garboard.lab.preflight import inotify_instances

INSTANCES = Path("/proc/sys/fs/inotify/max_user_instances")


@dataclass(frozen=True, slots=True)
class Limits:
    """The saved values are written down before anything is changed, so that a crash cannot lose them."""

    machine: Machine
    home: Path

    @property
    def _saved(self) -> Path:
        return self.home / "limits.json"

    def raise_for(self, nodes: int) -> None:
        """Allow as many inotify instances as `nodes` nodes, in all labs together, need."""
        current, needed = int(INSTANCES.read_text()), inotify_instances(nodes)
        if current >= needed:
            return
        if not self._saved.exists():
            self.machine.write_file(self._saved, json.dumps({str(INSTANCES): current}).encode())
        INSTANCES.write_text(str(needed))

    def restore(self) -> None:
        """Put back what `raise_for` found."""
        if not self._saved.exists():
            return
        for path, value in json.loads(self.machine.read_file(self._saved)).items():
            if Path(path) == INSTANCES:
                INSTANCES.write_text(str(value))
        self._saved.unlink()
