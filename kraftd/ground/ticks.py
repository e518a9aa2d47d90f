"""When work is due: periodic work at common times, because waking an idle process costs more than the
work.
"""

from __future__ import annotations

TICKS_MS = (5_000, 1_000, 500)  # the coarsest that divides the period holds


def next_tick_ms(now_ms: int, period_ms: int, after_ms: int | None = None) -> int:
    """The tick nearest to one period from now; without a tick that divides the period, that time itself.

    With after_ms: the time so long after now, for work that is due once at a time of its own.
    """
    if after_ms is not None:
        return now_ms + after_ms
    due_ms = now_ms + period_ms
    for tick_ms in TICKS_MS:
        if period_ms and period_ms % tick_ms == 0:
            return (due_ms + tick_ms // 2) // tick_ms * tick_ms
    return due_ms


def earliest_ms(*dues: int | None) -> int | None:
    """The earliest of some times, None standing for never."""
    found = None
    for due in dues:
        if due is not None and (found is None or due < found):
            found = due
    return found
