"""Which differences are meant: all hand edits, or those that were named as `cp1/kube-apiserver:--profiling`."""

import re
from collections.abc import Iterator, Sequence
from typing import Self

from garboard.change.drifting import ClusterDrift
from garboard.drift import Difference, DriftKind, FlagStep
from garboard.errors import BadUsage
from garboard.values import dataclass

ALL = "*"  # as it is recorded that nothing was named
_NAME = re.compile(r"(?:(?P<node>[a-z0-9.-]+)/)?(?P<component>[a-z-]*)(?::(?P<field>.+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftName:
    """A node, a component, or a field of one; what is empty is not asked about."""

    text: str
    node: str = ""
    component: str = ""
    field: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        found = _NAME.fullmatch(text)
        if found is None or not text or (found["field"] and not found["component"]):
            raise BadUsage(
                f"--only {text}: this names no difference",
                hint="write it as kube-apiserver, kube-apiserver:--profiling, cp1/kube-apiserver or cp1/",
            )
        return cls(text=text, node=found["node"] or "", component=found["component"], field=found["field"] or "")

    def is_of(self, node: str, difference: Difference) -> bool:
        if self.node not in ("", node) or self.component not in ("", difference.component):
            return False
        return not self.field or any(_is_below(each, self.field) for each in _fields(difference))


def _fields(difference: Difference) -> Iterator[str]:
    """Yield what a field may be called: a flag by its own name, too."""
    yield difference.field
    if difference.path and isinstance(difference.path[-1], FlagStep):
        yield str(difference.path[-1])


def _is_below(field: str, name: str) -> bool:
    return field == name or field.startswith((f"{name}.", f"{name}["))


@dataclass(frozen=True, slots=True)
class DriftNames:
    """The differences that are meant: every hand edit, unless some were named."""

    names: tuple[DriftName, ...] = ()

    @classmethod
    def parse(cls, texts: Sequence[str]) -> Self:
        return cls(tuple(DriftName.parse(each) for each in texts if each != ALL))

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(each.text for each in self.names) or (ALL,)

    def selects(self, node: str, difference: Difference) -> bool:
        """Say whether a hand edit is meant; what is only pending, so that nobody has edited it, has to be named."""
        by = [each for each in self.names if each.is_of(node, difference)]
        if difference.kind is DriftKind.PENDING:
            return any(each.field for each in by)
        return difference.kind is DriftKind.HAND_EDIT and (bool(by) or not self.names)

    def refuse_unknown(self, drift: ClusterDrift) -> None:
        """Refuse names that nothing has which could be meant."""
        parts = (*drift.nodes, drift.objects)
        for name in self.names:
            own = DriftNames((name,))
            if not any(own.selects(part.node, each) for part in parts for each in part.differences):
                raise BadUsage(
                    f"--only {name.text}: there is no such hand edit", hint="garboard change drift shows all of them"
                )
