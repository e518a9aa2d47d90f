"""Values of options that several commands share; invalid ones are refused."""

from __future__ import annotations

import math

import click

MAX_TIMEOUT_S = 86_400.0
NODE_ID = click.IntRange(0, (1 << 31) - 1)


class Seconds(click.ParamType[float]):
    """A time to wait: more than nothing, a day at most."""

    name = "SECONDS"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            seconds = float(str(value))
        except ValueError:
            seconds = math.nan
        if not 0 < seconds <= MAX_TIMEOUT_S:
            self.fail(f"{value} is no number of seconds above 0 and up to {MAX_TIMEOUT_S:.0f}", param, ctx)
        return seconds


SECONDS = Seconds()
