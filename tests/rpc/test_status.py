import pytest

from garboard.rpc.status import StatusCode


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("0", StatusCode.OK),
        ("16", StatusCode.UNAUTHENTICATED),
        ("17", StatusCode.UNKNOWN),
        ("-1", StatusCode.UNKNOWN),
        ("", StatusCode.UNKNOWN),
        ("²", StatusCode.UNKNOWN),
        ("9" * 5000, StatusCode.UNKNOWN),
    ],
    ids=lambda value: str(value)[:10],
)
def test_any_status_text_is_a_code(text: str, code: StatusCode) -> None:
    assert StatusCode.parse(text) is code
