"""Laying what the lab needs over what the user wrote; where the two disagree, every disagreement by name. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from garboard.documents import Json, equal
from garboard.errors import BadDocument


@dataclass(frozen=True, slots=True)
class Conflict:
    """A field to which the user and the lab give different values."""

    where: str
    yours: Json
    needed: Json

    def __str__(self) -> str:
        return f"{self.where} is {self.yours!r}, the lab needs {self.needed!r}"


def merge(yours: Json, needed: Json, where: str, conflicts: list[Conflict]) -> Json:
    """Return `yours` with everything of `needed` in it, and note in `conflicts` where they contradict each other."""
    if yours is None:
        return needed
    if isinstance(yours, dict) and isinstance(needed, dict):
        merged = dict(yours)
        for key, value in needed.items():
            merged[key] = merge(yours.get(key), value, f"{where}.{key}", conflicts)
        return merged
    if isinstance(yours, list) and isinstance(needed, list):
        return _merge_lists(yours, needed, where, conflicts)
    if not equal(yours, needed):
        conflicts.append(Conflict(where, yours, needed))
    return yours


def fill(yours: Json, default: Json) -> Json:
    """Return `yours` with what it leaves open taken from `default`; of lists, entries with a name that is not there."""
    if yours is None:
        return default
    if isinstance(yours, dict) and isinstance(default, dict):
        return {**default, **{key: fill(value, default.get(key)) for key, value in yours.items()}}
    if isinstance(yours, list) and isinstance(default, list):
        named = {_name(entry) for entry in yours if isinstance(_name(entry), str)}
        return [*yours, *(entry for entry in default if isinstance(_name(entry), str) and _name(entry) not in named)]
    return yours


def refuse(conflicts: Iterable[Conflict], source: str) -> None:
    """Raise one error that names every conflict, if there is any."""
    found = list(conflicts)
    if found:
        listed = "".join(f"\n  {each}" for each in found)
        raise BadDocument(
            f"{source} contradicts what a lab needs:{listed}",
            hint="leave these fields out; the lab sets them",
            error_class="lab-conflict",
        )


def _merge_lists(yours: list[Json], needed: list[Json], where: str, conflicts: list[Conflict]) -> Json:
    """Unite two lists; entries with a `name` (arguments, volumes) are the same entry when the name is."""
    merged = list(yours)
    for entry in needed:
        same = next((each for each in yours if _name(each) is not None and _name(each) == _name(entry)), None)
        if same is not None:
            merge(same, entry, f"{where}[{_name(entry)}]", conflicts)
        elif not any(equal(each, entry) for each in merged):
            merged.append(entry)
    return merged


def _name(entry: Json) -> Json:
    return entry.get("name") if isinstance(entry, dict) else None
