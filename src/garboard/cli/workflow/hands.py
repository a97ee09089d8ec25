"""Who carries out a plan on this machine, and who looks before; the same for a run, its resumption and its undoing."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Self

from garboard.cli.workflow.cluster import NodeCluster
from garboard.engine import Eyes, Hands, Issue, Plan, PutObject, paths_written
from garboard.host.node_machine import NodeMachine
from garboard.phases.init.context import ADMIN_CONF
from garboard.phases.issuing import PkiIssuer, PkiRequest
from garboard.pki.keys import PooledKeys


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What the hands need to know besides the plan. A journal keeps it, so it is texts, and none of them a secret."""

    kubeconfig: str = ADMIN_CONF
    local_server: str = ""

    def texts(self) -> dict[str, str]:
        return asdict(self)

    @classmethod
    def of_texts(cls, texts: Mapping[str, str]) -> Self:
        known = {each.name for each in fields(cls)}
        return cls(**{name: text for name, text in texts.items() if name in known})


@dataclass(frozen=True, slots=True)
class Crew:
    """The hands of a run, and the eyes that look before each step."""

    hands: Hands
    eyes: Eyes
    cluster: NodeCluster

    def check(self, plan: Plan) -> None:
        """Refuse a kubeconfig that cannot be used, if no step of the plan makes it."""
        if self.cluster.kubeconfig not in paths_written(plan.steps) and _puts_objects(plan):
            self.cluster.check()


@contextmanager
def crew_for(
    plan: Plan, machine: NodeMachine, settings: RunSettings, started_at: datetime, cluster: NodeCluster | None = None
) -> Iterator[Crew]:
    """Give everybody their tools; `started_at` is when certificates begin, also if the run is resumed later."""
    reached = cluster or NodeCluster(machine, settings.kubeconfig, settings.local_server)
    requests = (step.action.request for step in plan.steps if isinstance(step.action, Issue))
    with PooledKeys(each.inputs.key_algorithm for each in requests if isinstance(each, PkiRequest)) as keys:
        hands = Hands(
            files=machine,
            services=machine.manager,
            issuer=PkiIssuer(machine.folder, keys, started_at),
            objects=reached,
        )
        eyes = Eyes(files=machine, services=machine.manager, objects=reached)
        yield Crew(hands, eyes, reached)


def _puts_objects(plan: Plan) -> bool:
    return any(isinstance(step.action, PutObject) for step in plan.steps)
