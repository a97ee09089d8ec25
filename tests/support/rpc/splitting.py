"""Bytes cut at chosen places, as a network may cut them."""

import itertools


def split_at(data: bytes, cuts: list[int]) -> list[bytes]:
    """The bytes in pieces; every cut falls somewhere into them."""
    places = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    return [data[start:end] for start, end in itertools.pairwise(places)] or [data]
