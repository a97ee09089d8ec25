"""Problems of a configuration: every one with its field path, in kubeadm's words."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from garboard.documents import Json
from garboard.errors import BadDocument
from garboard.model.go_text import go_quote

FieldPath = tuple[str | int, ...]
REDACTED = "(not shown)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong: `networking.podSubnet: Invalid value: "x": couldn't parse subnet`."""

    path: FieldPath
    detail: str
    value: Json = None
    is_required: bool = False
    is_secret: bool = False  # the value may be, or nearly be, a secret
    is_plain: bool = False  # kubeadm tells no value and no path, only the detail

    def __str__(self) -> str:
        if self.is_plain:
            return self.detail
        where = ".".join(str(part) for part in self.path)
        if self.is_required:
            return f"{where}: Required value: {self.detail}"
        shown = REDACTED if self.is_secret and self.value else go_value(self.value)
        return f"{where}: Invalid value: {shown}: {self.detail}"


@dataclass(slots=True)
class Notes:
    """What loading has to say beside its result, in the order it came up."""

    warnings: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)


def go_value(value: Json) -> str:
    """Print a value as Kubernetes does in field errors: text quoted, anything with members as JSON."""
    if isinstance(value, str):
        return go_quote(value)
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


class InvalidConfiguration(BadDocument):
    """A configuration that kubeadm would refuse too; `problems` are all that is wrong with it."""

    default_class = "invalid-configuration"

    def __init__(self, source: str, lines: Iterable[str], *, hint: str | None = None) -> None:
        self.problems = tuple(dict.fromkeys(lines))
        super().__init__(f"{source} is not valid:" + "".join(f"\n  {line}" for line in self.problems), hint=hint)
