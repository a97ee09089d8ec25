"""`garboard.values.dataclass` beside the one of the standard library: the same class by both, and what each does."""

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from garboard.values import dataclass


class Base:
    """A body that both decorators get."""

    name: str
    secret: str = dataclasses.field(default="", repr=False)
    tags: tuple[str, ...] = ()
    notes: dict[str, str] = dataclasses.field(default_factory=dict, compare=False)

    @property
    def shown(self) -> str:
        return self.name.upper()


def body(doc: str | None = "A value.") -> type:
    members = {key: value for key, value in vars(Base).items() if key not in ("__dict__", "__weakref__")}
    return type("Value", (), {**members, "__qualname__": "Value", "__module__": __name__, "__doc__": doc})


Value: Any = dataclass(frozen=True, slots=True)(body())  # by this name pickle finds it
Standard: Any = dataclasses.dataclass(frozen=True, slots=True)(body())


@pytest.mark.parametrize(
    "look",
    [
        pytest.param(lambda cls: repr(cls("a", "b", ("c",))), id="repr leaves out what it should"),
        pytest.param(lambda cls: cls("a") == cls("a", notes={"of": "no account"}), id="equal"),
        pytest.param(lambda cls: cls("a") == cls("b"), id="unequal"),
        pytest.param(lambda cls: cls("a") == ("a", "", (), {}), id="unequal to a tuple of its fields"),
        pytest.param(lambda cls: len({cls("a"), cls("a"), cls("b")}), id="hashed by content"),
        pytest.param(lambda cls: repr(dataclasses.replace(cls("a"), tags=("t",))), id="replaced"),
        pytest.param(lambda cls: dataclasses.asdict(cls("a")), id="asdict"),
        pytest.param(lambda cls: [each.name for each in dataclasses.fields(cls)], id="fields"),
        pytest.param(lambda cls: cls.__match_args__, id="matched by position"),
        pytest.param(lambda cls: cls.__slots__, id="slots"),
        pytest.param(lambda cls: hasattr(cls("a"), "__dict__"), id="no dict"),
        pytest.param(lambda cls: cls("a").shown, id="property"),
        pytest.param(lambda cls: copy.deepcopy(cls("a", notes={"b": "c"})) == cls("a"), id="deep copy"),
    ],
)
def test_value_does_as_a_frozen_dataclass_of_the_standard_library(look: Callable[[Any], object]) -> None:
    assert look(Value) == look(Standard)


def test_value_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(Value("a", tags=("t",)))) == Value("a", tags=("t",))


@pytest.mark.parametrize("made", [Value("a"), dataclasses.replace(Value("b"), name="a"), copy.copy(Value("a"))])
def test_value_stays_as_it_was_made(made: Any) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.name = "b"
    with pytest.raises(dataclasses.FrozenInstanceError):
        del made.name
    with pytest.raises(AttributeError):
        made.other = "b"
    assert made.name == "a"


def test_method_of_the_class_is_kept() -> None:
    class Masked:
        token: str

        def __repr__(self) -> str:
            return "masked"

    masked: Any = dataclass(frozen=True, slots=True)(Masked)
    assert repr(masked("secret")) == "masked"


def test_keywords_only() -> None:
    made: Any = dataclass(frozen=True, slots=True, kw_only=True)(body(doc=None))
    with pytest.raises(TypeError):
        made("a")
    assert made(name="a").name == "a"
