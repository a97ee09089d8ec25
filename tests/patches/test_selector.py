"""Label selectors mean what they mean to kubectl."""

import pytest

from garboard.errors import InvalidValue
from garboard.patches.selector import LabelSelector

LABELS = {"app": "web", "tier": "front", "example.com/team": "a"}


@pytest.mark.parametrize(
    ("text", "is_selected"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app!=web", False),
        ("env!=prod", True),
        ("app", True),
        ("env", False),
        ("!env", True),
        ("!app", False),
        ("app in (web, db)", True),
        ("app notin (web, db)", False),
        ("env notin (prod)", True),
        ("env in (prod)", False),
        ("app=web,tier=front", True),
        ("app=web, tier=back", False),
        ("example.com/team=a", True),
        ("app=", False),
    ],
)
def test_selector_selects(text: str, is_selected: bool) -> None:
    assert LabelSelector.parse(text).matches(LABELS) is is_selected


@pytest.mark.parametrize("text", ["=web", "app=web tier=front", "app in web", "!", "app in (a", ",", "a b", "app><b"])
def test_text_that_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue) as failure:
        LabelSelector.parse(text)
    assert failure.value.hint
