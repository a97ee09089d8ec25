"""What a cluster has recorded of its changes: revisions, the target, the reports of nodes; and what follows of it."""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from garboard.errors import BadUsage
from garboard.phases.revision import BASELINE, ChangeTarget, NodeReport, Revision
from garboard.values import dataclass

NodeProgress: TypeAlias = Literal["done", "pending", "failed"]
NODE_COMMAND = "garboard change node --yes"


@dataclass(frozen=True, slots=True)
class NodeState:
    """How far one node is, and the command that takes it on; empty if there is nothing to do."""

    node: str
    state: NodeProgress
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRecord:
    """Revisions by number, the target with the version of its object, and what nodes report, by their names."""

    revisions: Mapping[int, Revision] = field(default_factory=dict)
    target: ChangeTarget | None = None
    target_version: str = ""
    reports: Mapping[str, NodeReport] = field(default_factory=dict)

    @property
    def states(self) -> tuple[NodeState, ...]:
        """Return how far each node is that the target has something to do on, in their order."""
        target = self.target
        return tuple(self._state(each, target) for each in target.nodes) if target else ()

    def _state(self, node: str, target: ChangeTarget) -> NodeState:
        report = self.reports.get(node)
        said = report.says(target) if report else None
        if target.is_settled or said in ("done", "confirmed"):
            return NodeState(node, "done")
        command = "garboard change resume" if node == target.canary and target.state == "canary" else NODE_COMMAND
        return NodeState(node, "failed" if said == "failed" else "pending", command)

    @property
    def left(self) -> tuple[NodeState, ...]:
        return tuple(each for each in self.states if each.state != "done")

    @property
    def is_rolled_out(self) -> bool:
        """Whether every node has what the target says, and so has what they share."""
        target = self.target
        return target is None or target.state in ("committed", "reverted") or (
            target.state == "rolling" and not self.left
        )  # fmt: skip

    @property
    def is_beginning(self) -> bool:
        """Whether the first node is at work, or was cut short: what nodes share is not written yet."""
        return self.target is not None and self.target.state in ("pending", "canary", "reverting")

    @property
    def is_finished(self) -> bool:
        """Whether another change may begin."""
        return self.is_rolled_out and not (self.target and self.target.is_unconfirmed)

    @property
    def current(self) -> int | None:
        """The revision that what nodes share is now; None before the first change."""
        if self.target is None:
            return None
        return self.target.parent if self.target.state == "reverted" else self.target.revision

    @property
    def settled(self) -> int:
        """The newest revision that all nodes have had."""
        current = self.current
        if current is None or self.is_rolled_out:
            return current or BASELINE
        return self.revisions[current].base if current in self.revisions else BASELINE

    @property
    def next_number(self) -> int:
        return max(self.revisions, default=BASELINE - 1) + 1

    def require(self, number: int) -> Revision:
        """Return a revision that is kept."""
        found = self.revisions.get(number)
        if found is None:
            kept = ", ".join(map(str, sorted(self.revisions))) or "none"
            raise BadUsage(f"the cluster keeps no revision {number}; it has {kept}", hint="garboard change history")
        return found
