"""Lengths of time on the command line, written as Go writes them: 8760h, 1h30m, 90s."""

import re
from datetime import timedelta

import click

_UNIT_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3}
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ms|h|m|s)")
_LONGEST_S = 2**63 / 1e9  # Go counts nanoseconds in 63 bits: about 292 years


class DurationType(click.ParamType[timedelta]):
    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        text = str(value)
        parts = _PART.findall(text)
        seconds = sum(float(number) * _UNIT_S[unit] for number, unit in parts)
        if not parts or "".join(number + unit for number, unit in parts) != text or seconds > _LONGEST_S:
            self.fail(f"{text!r} is not a length of time such as 8760h or 1h30m", param, ctx)
        return timedelta(seconds=seconds)


DURATION = DurationType()
