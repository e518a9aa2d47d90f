"""Points in a log as people type them: 4711, 2026-11-22T06:51:05Z, "2026-11-22 06:51", 10m (ago), now."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import NamedTuple

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
    if text.isascii() and text.isdecimal():
        if len(text) > 19 or int(text) > MOST_OFFSET:
            raise ValueError(f"{text} is beyond the largest offset, {MOST_OFFSET}")
        return Point(offset=int(text))
    ago = _AGO.fullmatch(text)
    if ago is not None and text:
        seconds = sum(int(part) * unit for part, unit in zip(ago.groups(), _SECONDS, strict=True) if part)
        return Point(time_ms=int((now_s - seconds) * 1000))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is neither an offset (4711) nor a time (2026-11-22T06:51:05Z; 10m for ten minutes ago)"
        ) from None
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    if zoned.timestamp() > now_s:
        clock = time_text(int(now_s * 1000))
        raise ValueError(f"{text} is in the future: this machine's clock says {clock}")
    return Point(time_ms=round(zoned.timestamp() * 1000))
