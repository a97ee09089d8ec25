"""Provisions as processes of the controller: one for each attempt, with a work folder that outlives both."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from garboard.fleet.controllers import ObjectId, Stored
from garboard.fleet.controllers.attempt import RunState
from garboard.fleet.controllers.marks import DEPLOYMENT_NAME
from garboard.host.children import DetachedChild

log = logging.getLogger("garboard.fleet")

# How long after the end of a process the next one may begin for the same attempt.
PAUSE_S = 10.0
_LOOK_EVERY_S = 0.5


class LocalRuns:
    """Starts `garboard fleet attempt` for each attempt. One that goes on from before we began holds its work folder.

    `ended` is told when a process has ended, so that its attempt is decided about again.
    """

    def __init__(self, work: Path, command: Sequence[str], ended: Callable[[ObjectId, float], None]) -> None:
        self._work, self._command, self._ended = work, tuple(command), ended
        self._running: dict[ObjectId, DetachedChild] = {}
        self._not_before: dict[ObjectId, float] = {}

    def state(self, attempt: ObjectId) -> RunState:
        return "running" if attempt in self._running else "absent"

    def start(self, attempt: Stored) -> None:
        """See to it that a process works on an attempt; after one that has ended, not at once."""
        key = attempt.id
        left_s = self._not_before.get(key, 0.0) - asyncio.get_running_loop().time()
        if key in self._running:
            return
        if left_s > 0:
            self._ended(key, left_s)
            return
        deployment = attempt.text("spec", "clusterDeploymentRef", "name") or attempt.label(DEPLOYMENT_NAME)
        folder = self._work / key.namespace / deployment
        verb = ("--destroy",) if key.kind == "ClusterDeprovision" else ()
        command = (
            *self._command, "--namespace", key.namespace, "--name", key.name, "--work", str(folder), *verb,
        )  # fmt: skip
        self._running[key] = DetachedChild.start(command, log=self._work / key.namespace / f"{key.name}.log")
        log.info("attempt.started %s pid=%d", key, self._running[key].pid)

    def stop(self, attempt: ObjectId) -> None:
        child = self._running.get(attempt)
        if child is not None:
            log.info("attempt.stopped %s pid=%d", attempt, child.pid)
            child.end()

    async def watch(self) -> None:
        """Look after the processes, until cancelled. They go on without us."""
        while True:
            for key, child in list(self._running.items()):
                status = child.status()
                if status is not None:
                    del self._running[key]
                    self._not_before[key] = asyncio.get_running_loop().time() + (PAUSE_S if status else 0.0)
                    log.info("attempt.ended %s status=%d", key, status)
                    self._ended(key, 0.0)
            await asyncio.sleep(_LOOK_EVERY_S)


class NoRuns:
    """What there is where attempts run as Jobs."""

    def start(self, attempt: Stored) -> None:
        return

    def stop(self, attempt: ObjectId) -> None:
        return

    def state(self, attempt: ObjectId) -> RunState:
        return "absent"

    async def watch(self) -> None:
        return
