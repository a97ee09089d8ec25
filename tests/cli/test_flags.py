from datetime import timedelta

import click
import pytest

from garboard.cli.flags import DURATION, INTEGER, string_map, string_slice
from garboard.errors import BadUsage


def value_of(option: click.Option, *arguments: str) -> object:
    """Return what a command gets of its only option."""
    context = click.Command("probe", params=[option]).make_context("probe", list(arguments))
    assert option.name is not None
    return context.params[option.name]


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("8760h", timedelta(hours=8760)),
        ("1h30m", timedelta(minutes=90)),
        ("1.5h", timedelta(minutes=90)),
        ("250ms", timedelta(milliseconds=250)),
        ("2562047h", timedelta(hours=2562047)),
    ],
)
def test_duration_is_read(text: str, length: timedelta) -> None:
    assert DURATION.convert(text, None, None) == length


@pytest.mark.parametrize("text", ["", "1", "1d", "1h 2m", "h", "٣h", "2562048h", "9" * 40 + "h"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"write it as|about 292 years"):
        DURATION.convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("-1", -1), ("010", 8), ("0x1bb", 443), ("0b11", 3), ("2147483647", 2**31 - 1)]
)
def test_integer_is_read_as_go_reads_it(text: str, number: int) -> None:
    assert INTEGER.convert(text, None, None) == number


@pytest.mark.parametrize("text", ["", "x", "08", "1.5", "2147483648", "-2147483649"])
def test_other_number_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"not a valid integer|out of range"):
        INTEGER.convert(text, None, None)


def test_lists_take_commas_and_repeats() -> None:
    names = string_slice("names", "")
    assert value_of(names, "--names", "a.example,b.example", "--names=c.example") == (
        "a.example",
        "b.example",
        "c.example",
    )
    assert value_of(names) == ()


def test_list_with_an_open_quote_is_refused() -> None:
    with pytest.raises(BadUsage, match="is not a list of items"):
        value_of(string_slice("names", ""), '--names=a,"b')


def test_map_keeps_order_and_repeats() -> None:
    pairs = value_of(
        string_map("scheduler-extra-args", ""), "--scheduler-extra-args=z=1,a=2", "--scheduler-extra-args=a=3"
    )
    assert pairs == (("z", "1"), ("a", "2"), ("a", "3"))


@pytest.mark.parametrize("text", ["nope", "a=1,b", "a=b=c", ""])
def test_item_of_a_map_without_one_equals_sign_is_refused(text: str) -> None:
    with pytest.raises(BadUsage, match=f'invalid argument "{text}" for "--args" flag: malformed key=value pair'):
        value_of(string_map("args", ""), f"--args={text}")
