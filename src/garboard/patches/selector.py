"""Label selectors as Kubernetes writes them: `app=web,tier!=db,env in (a, b),release,!canary`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from garboard.errors import InvalidValue

_TERM = re.compile(
    r"""\s*(?:
        (?P<absent>!\s*(?P<absent_key>[\w./-]+))
      | (?P<key>[\w./-]+)\s*(?:
            (?P<set_op>in|notin)\s*\((?P<values>[^()]*)\)
          | (?P<op>==|=|!=)\s*(?P<value>[\w.-]*)
        )?
    )\s*(?:,|$)""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Requirement:
    """A label that must be there or not, and the values it may have (any, if none are named)."""

    key: str
    is_wanted: bool
    values: frozenset[str] | None = None

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.values is None:
            return (self.key in labels) == self.is_wanted
        return (labels.get(self.key) in self.values) == self.is_wanted


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All requirements must hold; an empty selector selects everything."""

    requirements: tuple[Requirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "LabelSelector":
        requirements: list[Requirement] = []
        end = 0
        while text[end:].strip():
            found = _TERM.match(text, end)
            if found is None:
                raise InvalidValue(
                    f"{text!r} is not a label selector: cannot read {text[end:]!r}",
                    hint="write it as app=web,tier!=db,env in (a,b),release,!canary",
                )
            requirements.append(_requirement(found))
            end = found.end()
        return cls(tuple(requirements))

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


def _requirement(found: re.Match[str]) -> Requirement:
    if found["absent"]:
        return Requirement(found["absent_key"], is_wanted=False)
    if found["set_op"]:
        values = frozenset(value.strip() for value in found["values"].split(","))
        return Requirement(found["key"], found["set_op"] == "in", values)
    if found["op"]:
        return Requirement(found["key"], found["op"] != "!=", frozenset([found["value"]]))
    return Requirement(found["key"], is_wanted=True)
