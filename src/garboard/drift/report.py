"""Differences as text for people, and as JSON for programs."""

from collections.abc import Iterator, Sequence

from garboard.documents import Json
from garboard.drift.difference import Difference, DriftKind, Seen


def differences_as_json(differences: Sequence[Difference]) -> list[Json]:
    return [each.as_json() for each in differences]


def differences_as_text(differences: Sequence[Difference], *, shows_explained: bool = False) -> str:
    """Return the differences by component, field by field; those that are explained only if that is asked for."""
    shown = [each for each in differences if shows_explained or each.kind is not DriftKind.COSMETIC]
    lines: list[str] = []
    for where in dict.fromkeys(each.where for each in shown):
        lines.append(f"{where}:")
        lines += [line for each in shown if each.where == where for line in _field(each)]
    return "".join(f"{line}\n" for line in lines)


def _field(difference: Difference) -> Iterator[str]:
    reason = f": {difference.reason}" if difference.reason else ""
    yield f"  {difference.field}  [{difference.kind}]{reason}"
    rendered, declared = difference.rendered, difference.declared
    seen = {"declared": declared, "on disk": difference.on_disk, "running": difference.running}
    if rendered.is_known and rendered != declared:
        yield _line("rendered", rendered)
    for name, each in seen.items():
        if each.is_known and not (name == "on disk" and not difference.path):
            yield _line(name, each)


def _line(name: str, seen: Seen) -> str:
    return f"    {name + ':':10} {seen.text}" + (f"    # {seen.source}" if seen.source else "")
