"""The type of `--as-of`, `--from` and `--to`: offsets and times, by `kraftd.history.points`."""

from __future__ import annotations

import time

import click

from kraftd.cli.sources.source import Limit
from kraftd.history.points import MOST_OFFSET, parse_point

__all__ = ["MOST_OFFSET", "AsOf", "parse_as_of"]


class AsOf(click.ParamType[Limit]):
    """A limit; a time without a zone is UTC."""

    name = "OFFSET|TIME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Limit:
        if isinstance(value, Limit):
            return value
        try:
            return parse_as_of(str(value), time.time())
        except ValueError as error:
            self.fail(str(error), param, ctx)


def parse_as_of(text: str, now_s: float) -> Limit:
    """Parse an offset or a time. Raises ValueError, which lists the valid forms."""
    return Limit(*parse_point(text, now_s))
