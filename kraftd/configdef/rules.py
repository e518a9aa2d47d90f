"""Rules of single keys that need more than a range or a set."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kraftd.configdef.text import trim

_REPLICA = re.compile(r"([0-9]+:[0-9]+)?")
_DURATION = re.compile(
    r"([-+]?)P(?:([-+]?[0-9]+)D)?"
    r"(T(?:([-+]?[0-9]+)H)?(?:([-+]?[0-9]+)M)?(?:([-+]?[0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?",
    re.IGNORECASE,
)
_MAX_SECONDS = (1 << 63) - 1


def is_throttled_replicas(items: Sequence[str]) -> bool:
    """Return whether a list is ``*`` alone or names replicas as partition:broker (KIP-73)."""
    trimmed = [trim(item) for item in items]
    return all(_REPLICA.fullmatch(item) for item in trimmed) or "".join(trimmed) == "*"


def is_share_auto_offset_reset(text: str) -> bool:
    """Return whether a text is a reset strategy of share groups: earliest, latest or by_duration:<ISO 8601>
    (KIP-932).
    """
    if text in ("earliest", "latest"):
        return True
    prefix, colon, duration = text.partition(":")
    if prefix != "by_duration" or not colon:
        return False
    seconds = duration_seconds(duration)
    return seconds is not None and seconds >= 0


def duration_seconds(text: str) -> float | None:
    """The seconds of an ISO 8601 duration of days and less, as ``java.time.Duration`` reads it; None when
    it is none.
    """
    match = _DURATION.fullmatch(text)
    if match is None or (match[3] is not None and len(match[3]) == 1):
        return None
    days, hours, minutes, whole, fraction = match[2], match[4], match[5], match[6], match[7]
    if days is None and hours is None and minutes is None and whole is None:
        return None
    total = sum(
        int(part or 0) * unit for part, unit in ((days, 86400), (hours, 3600), (minutes, 60), (whole, 1))
    )
    if abs(total) > _MAX_SECONDS:
        return None
    below_one = int((fraction or "").ljust(9, "0")) / 1e9
    value = total + (-below_one if (whole or "").startswith("-") else below_one)
    return -value if match[1] == "-" else value
