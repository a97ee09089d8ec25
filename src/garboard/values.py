"""What values are made of everywhere: the alias for JSON trees, and frozen dataclasses that are quick to define.

The standard library writes and compiles six methods for every class, half a millisecond each time, and a join defines
two hundred classes. `dataclass` of this module writes only `__init__`; the other methods are the same functions for all
of them. See docs/decisions/values.md for what differs.
"""

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, TypeAlias, TypeVar

# A value that is JSON by nature: documents, and the few free-form fields of the model.
Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

T = TypeVar("T")


def _set_once(self: object, name: str, value: object) -> None:
    # __init__ sets every field, so an assignment after it is always a second one.
    if hasattr(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _refuse_to_delete(_self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _repr(self: object) -> str:
    shown = (each.name for each in dataclasses.fields(self) if each.repr)  # type: ignore[arg-type]
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _eq(self: object, other: object) -> bool:
    return _content(self) == _content(other) if type(other) is type(self) else NotImplemented


def _hash(self: object) -> int:
    return hash(_content(self))


def _content(value: object) -> tuple[object, ...]:
    return tuple(getattr(value, name) for name in _compared(type(value)))  # type: ignore[arg-type]  # a type is hashable


@cache
def _compared(cls: type) -> tuple[str, ...]:
    return tuple(each.name for each in dataclasses.fields(cls) if each.compare)


_SHARED = {
    "__setattr__": _set_once,
    "__delattr__": _refuse_to_delete,
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
}


def _dataclass(*, frozen: bool, slots: bool, kw_only: bool = False) -> Callable[[type[T]], type[T]]:
    assert frozen, "for others there is the one of the standard library"

    def define(cls: type[T]) -> type[T]:
        cls.__doc__ = cls.__doc__ or cls.__name__  # else a signature is made up for it, which takes as long again
        own = frozenset(vars(cls))
        made = dataclasses.dataclass(repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
        for name, method in _SHARED.items():
            if name not in own:
                setattr(made, name, method)
        return made

    return define


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _dataclass
