"""Lengths of time on the command line, written as Go writes them: 8760h, 1h30m, 90s."""

from datetime import timedelta

import click

from garboard.errors import InvalidValue
from garboard.model.duration import Duration


class DurationType(click.ParamType[timedelta]):
    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        try:
            return Duration.parse(str(value)).as_timedelta
        except InvalidValue as error:
            self.fail(f"{error.message}: {error.hint}", param, ctx)


DURATION = DurationType()
