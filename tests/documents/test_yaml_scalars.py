import pytest

from garboard.documents.yaml_scalars import is_plain_text, is_timestamp


@pytest.mark.parametrize(
    "text",
    [
        "2001-12-14", "2001-1-2", "0000-02-29", "2001-12-14T21:59:43Z", "2001-12-14t1:2:3.5-24:60",
        "2001-12-14  1:2:3,5",
    ],
)  # fmt: skip
def test_timestamp_is_recognised(text: str) -> None:
    assert is_timestamp(text)
    assert not is_plain_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "2001-2-29", "2001-13-1", "2001-0-1", "201-12-14", "2001-12-14T21:59:43", "2001-12-14 21:59:43Z",
        "2001-12-14T24:00:00Z", "2001-12-14T21:59:43+25:00", "2001-12-14T21:59:43+1:00", "2001-12-14\n",
    ],
)  # fmt: skip
def test_other_text_is_no_timestamp(text: str) -> None:
    assert not is_timestamp(text)
    assert is_plain_text(text)
