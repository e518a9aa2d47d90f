"""Points in a log as people type them: 4711, 2026-11-22T06:51:05Z, "2026-11-22 06:51", 10m (ago), now."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from kraftd.named_tuple import NamedTuple
from kraftd.types import time_text

_AGO = re.compile(r"(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?", re.ASCII)
_SECONDS = (86_400, 3_600, 60, 1)
MOST_OFFSET = (1 << 63) - 1


class Point(NamedTuple):
    """An offset or a time, inclusive; with both None, the end of the log."""

    offset: int | None = None
    time_ms: int | None = None


def parse_point(text: str, now_s: float) -> Point:
    """Parse an offset, or a time (UTC without a zone). Raises ValueError, which lists the valid forms."""
    text = text.strip()
    if text == "now":
        return Point()
    if _is_number(text):
        if len(text) > 19 or int(text) > MOST_OFFSET:
            raise ValueError(f"{text} is beyond the largest offset, {MOST_OFFSET}")
        return Point(offset=int(text))
    try:
        return Point(time_ms=_time_ms(text, now_s))
    except _NoTime:
        raise ValueError(
            f"{text!r} is neither an offset (4711) nor a time (2026-11-22T06:51:05Z; 10m for ten minutes ago)"
        ) from None


def parse_time(text: str, now_s: float) -> int:
    """Parse a time alone, in ms (UTC without a zone). Raises ValueError, which lists the valid forms."""
    text = text.strip()
    try:
        return _time_ms(text, now_s)
    except _NoTime:
        what = "a number, not a time" if _is_number(text) else "no time"
        raise ValueError(
            f"{text!r} is {what}. Write a date (2026-11-22), a date and time in UTC (2026-11-22T06:51), "
            "one with a zone (2026-11-22T06:51:05+02:00), or how long ago (45s, 10m, 2h, 1d12h)"
        ) from None


class _NoTime(ValueError):
    """A text that is no time in any form."""


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _time_ms(text: str, now_s: float) -> int:
    """A time or an age. Raises _NoTime, and ValueError for a time in the future."""
    ago = _AGO.fullmatch(text)
    if ago is not None and text:
        seconds = sum(int(part) * unit for part, unit in zip(ago.groups(), _SECONDS, strict=True) if part)
        return int((now_s - seconds) * 1000)
    if _is_number(text):
        raise _NoTime  # 20261122 is a date by ISO 8601, and more probably an offset
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise _NoTime from None
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    if zoned.timestamp() > now_s:
        clock = time_text(int(now_s * 1000))
        raise ValueError(f"{text} is in the future: this machine's clock says {clock}")
    return round(zoned.timestamp() * 1000)
