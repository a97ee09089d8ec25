"""Names that are derived from others, as Hive derives them."""

from typing import Final

MAX_LENGTH: Final = 63
_OFFSET, _PRIME = 0x811C9DC5, 0x01000193


def derived_name(base: str, suffix: str) -> str:
    """Return `base-suffix` with at most 63 characters; in a longer one a hash stands for a part."""
    name = f"{base}-{suffix}"
    if len(name) <= MAX_LENGTH:
        return name
    kept = MAX_LENGTH - len(suffix) - 10
    if kept > 0:
        return f"{base[:kept]}-{_fnv1a(base)}-{suffix}"
    return f"{name[: MAX_LENGTH - 9]}-{_fnv1a(name)}"


def _fnv1a(text: str) -> str:
    """Return the 32-bit FNV-1a hash in hexadecimal digits."""
    value = _OFFSET
    for byte in text.encode():
        value = ((value ^ byte) * _PRIME) & 0xFFFFFFFF
    return f"{value:08x}"
