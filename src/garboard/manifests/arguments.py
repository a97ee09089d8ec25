"""Command lines: kubeadm's own arguments, and what the user's extraArgs make of them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from garboard.manifests.sources import ConfigField, Source
from garboard.model.component import Arg
from garboard.values import dataclass


@dataclass(frozen=True, slots=True)
class Argument:
    """One `--name=value`, and what decided its value; no source means a default of the minor."""

    name: str
    value: str
    source: Source | None = None

    def __str__(self) -> str:
        return f"--{self.name}={self.value}"


def merged_arguments(
    defaults: Iterable[Argument], extra: Sequence[Arg], extra_field: ConfigField
) -> tuple[Argument, ...]:
    """Return the defaults sorted by name, then the extra arguments in their order, repeats kept.

    A default that an extra argument names is dropped. Where the last of that name has a merge method (API v1), the
    default stays in its place with that value joined to it, and arguments that have one are not listed again.
    """
    last = {arg.name: (index, arg) for index, arg in enumerate(extra)}
    kept: list[Argument] = []
    for default in sorted(defaults, key=lambda each: (each.name, each.value)):
        index, arg = last.get(default.name, (0, None))
        if arg is None:
            kept.append(default)
        elif arg.merge_method:
            kept.append(replace(default, value=merge_value(default.value, arg), source=extra_field / index))
    added = (Argument(arg.name, arg.value, extra_field / i) for i, arg in enumerate(extra) if not arg.merge_method)
    return (*kept, *added)


def merge_value(default: str, arg: Arg) -> str:
    """Return what an argument makes of kubeadm's own value: nothing is put between the two."""
    match arg.merge_method:
        case "append":
            return default + arg.value
        case "prepend":
            return arg.value + default
        case _:
            return arg.value


def last_arg(args: Sequence[Arg], name: str) -> tuple[int, Arg] | None:
    """Return the last argument of that name and its place, as the component itself would take it."""
    found = [(index, arg) for index, arg in enumerate(args) if arg.name == name]
    return found[-1] if found else None
