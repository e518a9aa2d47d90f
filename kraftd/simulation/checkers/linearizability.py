"""The check that a history of one register fits one order (Wing & Gong, with memoization)."""

from __future__ import annotations

Value = bool | str
# begin, end (None: open forever), value seen (None: any; then an open step may never happen), value written
Step = tuple[int, int | None, Value | None, Value]
History = list[Step]

MAX_STATES = 200_000


def linearizable(history: History, first: Value = False) -> bool:
    """Return whether an order of the steps exists that respects real time and begins with a register of
    `first`.

    A step without an answer may take effect at any time after it began, or never. After MAX_STATES the
    search ends, and the history counts as linearizable.
    """
    steps = sorted(history, key=lambda step: step[0])
    count = len(steps)
    closed = sum(1 << i for i, step in enumerate(steps) if step[1] is not None)
    seen: set[tuple[int, Value]] = set()
    waiting = [(0, first)]  # a bit for each step done, and the register
    while waiting:
        done, value = waiting.pop()
        if done & closed == closed:
            return True
        if (done, value) in seen:
            continue
        seen.add((done, value))
        if len(seen) > MAX_STATES:
            return True
        # A step that began after another one's answer cannot come before it.
        horizon: int | None = None
        for i in range(count):
            began, ended, _, _ = steps[i]
            if horizon is not None and began > horizon:
                break
            if not done >> i & 1 and ended is not None:
                horizon = ended if horizon is None else min(horizon, ended)
        for i in range(count):
            began, ended, saw, left = steps[i]
            if horizon is not None and began > horizon:
                break
            if done >> i & 1:
                continue
            if saw is None:
                if value != left or ended is not None:  # else it can be skipped
                    waiting.append((done | 1 << i, left))
            elif saw == value:
                waiting.append((done | 1 << i, left))
    return False
