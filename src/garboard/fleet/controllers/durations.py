"""Lengths of time as Go writes them."""

import re
from datetime import timedelta
from typing import Final

_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h)")
_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def read_duration(text: str) -> timedelta | None:
    """Return the length that a text says; None if it says none."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return timedelta(seconds=sum(float(number) * _SECONDS[unit] for number, unit in parts))


def write_duration(length: timedelta) -> str:
    """Return a length as Go writes it, in whole seconds."""
    seconds = int(length.total_seconds())
    hours, minutes, left = seconds // 3600, seconds // 60 % 60, seconds % 60
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{left}s"
