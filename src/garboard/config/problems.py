"""Problems of a configuration: every one with its field path, in kubeadm's words."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from garboard.documents import Json
from garboard.errors import BadDocument, BadUsage
from garboard.model.go import go_quote

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
    is_plain: bool = False  # kubeadm's message has no value and no path, only the detail

    def __str__(self) -> str:
        if self.is_plain:
            return self.detail
        where = ".".join(str(part) for part in self.path)
        if self.is_required:
            return f"{where}: Required value: {self.detail}"
        shown = REDACTED if self.is_secret and self.value else go_value(self.value)
        return f"{where}: Invalid value: {shown}: {self.detail}"


@dataclass(slots=True)
class ConfigNotes:
    """Warnings and problems that loading collects beside its result, in their order."""

    warnings: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    refused: "list[InvalidConfiguration]" = field(default_factory=list)  # documents of which a part is decoded

    def refusal(self, file: str, where: Callable[[Problem], str]) -> "InvalidConfiguration | None":
        """Return one error with everything that is wrong; what follows from a value of a wrong type is left out."""
        mismatched = [path for each in self.refused if each.partial for path in each.partial.mismatched]
        problems = [each for each in self.problems if not any(_touches(each.path, path) for path in mismatched)]
        lines = [line for each in self.refused for line in each.problems]
        lines += [f"{each}{where(each)}" for each in problems]
        return InvalidConfiguration(file, lines, hint=joined_hints(self.refused)) if lines else None

    def warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)


def _touches(one: FieldPath, other: FieldPath) -> bool:
    """Tell whether one of two fields holds the other."""
    return all(left == right for left, right in zip(one, other, strict=False))


def go_value(value: Json) -> str:
    """Print a value as Kubernetes does in field errors: text quoted, anything with members as JSON."""
    if isinstance(value, str):
        return go_quote(value)
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class PartialDocument:
    """What could be decoded of a document, with which checking goes on, and where the rest stands."""

    tree: dict[str, Json]
    mismatched: tuple[FieldPath, ...]


class InvalidConfiguration(BadDocument):
    """A configuration that kubeadm would refuse too; `problems` is everything that is wrong with it."""

    default_class = "invalid-configuration"

    def __init__(
        self, source: str, lines: Iterable[str], *, hint: str | None = None, partial: "PartialDocument | None" = None
    ) -> None:
        self.problems = tuple(dict.fromkeys(lines))
        self.partial = partial
        super().__init__(f"{source} is not valid:" + "".join(f"\n  {line}" for line in self.problems), hint=hint)


class InvalidFlags(InvalidConfiguration):
    """A configuration that flags make and that kubeadm would refuse too."""

    exit_code = BadUsage.exit_code
    default_class = "usage"


def joined_hints(errors: Iterable[InvalidConfiguration]) -> str | None:
    """Return the hints of several errors as one, questions last."""
    hints = dict.fromkeys(each.hint for each in errors if each.hint)
    return "; ".join(sorted(hints, key=lambda hint: hint.endswith("?"))) or None
