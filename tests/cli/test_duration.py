from datetime import timedelta

import click
import pytest

from garboard.cli.duration import DURATION


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
