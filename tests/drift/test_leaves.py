"""What the leaves of a document mean."""

from garboard.drift import leaves_of


def test_flag_that_stands_alone_means_true() -> None:
    alone, written, other = (
        next(iter(leaves_of({"command": [word]}, None).values())) for word in ("--v", "--v=true", "--v=false")
    )
    assert alone.means(written)
    assert not alone.means(other)
    assert (alone.value, written.value) == (True, "true")
