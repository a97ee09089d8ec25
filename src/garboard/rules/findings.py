"""What the rules find in a result: a code, the path of the field, and what is wrong with it."""

from collections.abc import Iterator
from typing import TypeAlias

from garboard.documents import DocumentPath
from garboard.rules.codes import RESULT_RULES
from garboard.rules.rule import Rule
from garboard.values import dataclass


@dataclass(frozen=True, slots=True)
class ResultFinding:
    """One thing that Kubernetes refuses, or that a cluster loses; its rule says why and whether it may be accepted."""

    code: str
    path: DocumentPath
    message: str
    hint: str | None = None
    depends_on_node: bool = False  # by a name, address or release that only the configuration of a node tells

    @property
    def rule(self) -> Rule:
        return RESULT_RULES[self.code]


Found: TypeAlias = Iterator[ResultFinding]
