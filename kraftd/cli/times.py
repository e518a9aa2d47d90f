"""Times for people."""

from datetime import UTC, datetime


def time_text(timestamp_ms: int) -> str:
    """`2026-11-22 06:51:05.123Z`; "-" for an unknown time."""
    if not 0 <= timestamp_ms < 1 << 47:
        return "-"
    moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{timestamp_ms % 1000:03d}Z"
