"""Whether a history of one register fits one order (Wing & Gong, with memory)."""

from __future__ import annotations

Value = bool | str
# from, to (None: open for ever), what it saw (None: anything, and an open one may never happen), what it left
Step = tuple[int, int | None, Value | None, Value]
History = list[Step]

MOST_STATES = 200_000


def linearizable(history: History, first: Value = False) -> bool:
    """Return whether the steps can be put into an order that keeps real time, beginning with a register of
    `first`.

    A step without an answer may take effect at any time after it began, or never. Gives up, in favour of the
    history, after MOST_STATES.
    """
    steps = sorted(history, key=lambda step: step[0])
    count = len(steps)
    closed = sum(1 << i for i, step in enumerate(steps) if step[1] is not None)
    seen: set[tuple[int, Value]] = set()
    waiting = [(0, first)]  # steps done, as bits; the register
    while waiting:
        done, value = waiting.pop()
        if done & closed == closed:
            return True
        if (done, value) in seen:
            continue
        seen.add((done, value))
        if len(seen) > MOST_STATES:
            return True
        # Nothing that began after the first open answer came may go before it.
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
                if value != left or ended is not None:  # else it may as well never happen
                    waiting.append((done | 1 << i, left))
            elif saw == value:
                waiting.append((done | 1 << i, left))
    return False
