import base64

import pytest

from garboard.fleet import Scrubber

SECRET = 'a "quoted" secret\nof two lines, both long'


@pytest.mark.parametrize(
    "shown",
    [
        pytest.param(SECRET, id="as it is"),
        pytest.param(f"x{SECRET}y", id="inside of a word"),
        pytest.param(base64.b64encode(SECRET.encode()).decode(), id="base64"),
        pytest.param(SECRET.replace('"', '\\"').replace("\n", "\\n"), id="quoted"),
        pytest.param("of two lines, both long", id="one of its lines"),
    ],
)
def test_secret_is_replaced_in_every_form(shown: str) -> None:
    assert Scrubber([SECRET])(f"begin {shown} end").replace("xREDACTEDy", "REDACTED") == "begin REDACTED end"


def test_longer_secret_goes_before_the_one_that_it_holds() -> None:
    assert Scrubber(["secret", "secret-two"])("secret-two secret") == "REDACTED REDACTED"


def test_short_words_are_left_alone_and_nothing_is_shown_of_the_secrets() -> None:
    scrub = Scrubber(["true", "6443", SECRET])
    assert scrub("true 6443") == "true 6443"
    assert "quoted" not in repr(scrub)


def test_what_else_is_to_be_hidden_is_asked_afterwards() -> None:
    assert Scrubber(["secret"], also=str.upper)("a secret b") == "A REDACTED B"
