"""A learner of etcd that is silent though it has its data: restarting it is quicker than waiting for it.

A new member announces its client URLs to etcd when it starts. If the data of the other members arrive after that, the
announcement is lost, and the member waits 7 s before it tries again; until then it serves nobody. A member that is
started with its data announces itself at once. It has no vote yet, so nobody misses it meanwhile.
"""

import re
from collections.abc import Callable
from typing import Protocol

from garboard.engine import Interpreters, RestartLearner, StepContext
from garboard.errors import GarboardError
from garboard.node.interpreters.files import FileWriter
from garboard.retry import CLOCK, Clock, Pauses, wait_until
from garboard.values import dataclass

_CONTAINER = "etcd"
_SNAPSHOT = re.compile(r"[0-9a-f]{16}-[0-9a-f]{16}\.snap")
_PAUSES = Pauses.every(0.1)
_SILENT_FOR_S = 0.5


class ContainerControl(Protocol):
    def stop_containers(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class LearnerInterpreter:
    files: FileWriter
    runtime: ContainerControl
    is_serving: Callable[[str], bool]
    is_learner: Callable[[str], bool]
    clock: Clock = CLOCK

    def add_to(self, interpreters: Interpreters) -> None:
        interpreters.add(RestartLearner, self.restart)

    def restart(self, action: RestartLearner, run: StepContext) -> None:
        """Wait until the learner serves, or is to be restarted; after the time, go on: it is only slower then."""
        silent_since: list[float] = []

        def probe() -> str | None:
            if self.is_serving(action.client_url):
                return None
            if not silent_since and self._has_data(action):
                silent_since.append(self.clock.now_s())
            if silent_since and self.clock.now_s() - silent_since[0] >= _SILENT_FOR_S:
                self._stop(action, run)
                return None
            return "it is silent"

        wait_until(probe, timeout_s=action.timeout_s, pauses=_PAUSES, clock=self.clock)

    def _has_data(self, action: RestartLearner) -> bool:
        return any(_SNAPSHOT.fullmatch(name) for name in self.files.entries(f"{action.data_dir}/member/snap"))

    def _stop(self, action: RestartLearner, run: StepContext) -> None:
        """Stop the container, if the others say that its member has no vote yet: one that votes may be needed."""
        try:
            if action.peer_url and self.is_learner(action.peer_url):
                self.runtime.stop_containers(_CONTAINER)
        except GarboardError as error:
            run.report(f"the learner could not be restarted, so it takes longer: {error.message}")
