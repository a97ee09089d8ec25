"""A cluster plan: plans of nodes, and steps on what all nodes share, in the order in which a coordinator takes them."""

from collections.abc import Iterator
from dataclasses import field
from typing import TypeAlias

from garboard.engine.plan import Plan
from garboard.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePart:
    """What one node does: the words of our command there, and the plan that it is expected to carry out.

    What must not be seen in a list of processes, such as a plan with its contents, goes by `stdin`.
    """

    node: str
    words: tuple[str, ...]
    plan: Plan = Plan()
    stdin: bytes = field(default=b"", repr=False)

    @property
    def title(self) -> str:
        return self.node


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPart:
    """Steps on what all nodes share, such as an object: the coordinator carries them out itself."""

    name: str
    plan: Plan

    @property
    def title(self) -> str:
        return self.name


Part: TypeAlias = NodePart | ClusterPart


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """Parts in their order: one after the other, and each only when all before it are done."""

    parts: tuple[Part, ...] = ()

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that take part, each once."""
        return tuple(dict.fromkeys(part.node for part in self.parts if isinstance(part, NodePart)))

    def misplaced(self) -> Iterator[str]:
        """Say which parts have steps that another node would have to carry out."""
        for part in self.parts:
            here = part.node if isinstance(part, NodePart) else ""
            for other in sorted({step.node for step in part.plan.steps} - {"", here}):
                yield f"{part.title} has steps for {other}"
