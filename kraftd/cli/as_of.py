"""Offsets and times as people type them: 4711, 2026-11-22T06:51:05Z, "2026-11-22 06:51", 10m (ago)."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

import click

from kraftd.cli.sources.source import Limit
from kraftd.cli.times import time_text

_AGO = re.compile(r"(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?", re.ASCII)
_SECONDS = (86_400, 3_600, 60, 1)
MOST_OFFSET = (1 << 63) - 1


class AsOf(click.ParamType[Limit]):
    """The type of `--as-of`, `--from` and `--to`; a time without a zone is UTC."""

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
    text = text.strip()
    if text == "now":
        return Limit()
    if text.isascii() and text.isdecimal():
        if len(text) > 19 or int(text) > MOST_OFFSET:
            raise ValueError(f"{text} is beyond the largest offset, {MOST_OFFSET}")
        return Limit(offset=int(text))
    ago = _AGO.fullmatch(text)
    if ago is not None and text:
        seconds = sum(int(part) * unit for part, unit in zip(ago.groups(), _SECONDS, strict=True) if part)
        return Limit(time_ms=int((now_s - seconds) * 1000))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is neither an offset (4711) nor a time (2026-11-22T06:51:05Z; 10m for ten minutes ago)"
        ) from None
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    if zoned.timestamp() > now_s:
        raise ValueError(f"{text} is in the future: this machine's clock says {time_text(int(now_s * 1000))}")
    return Limit(time_ms=round(zoned.timestamp() * 1000))
