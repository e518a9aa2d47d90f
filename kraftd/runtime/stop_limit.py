"""How long a stop may take. A controlled shutdown of very many partitions gets more time while it goes on."""

from __future__ import annotations

MOST_MS = 300_000  # as long as Apache Kafka waits for a controlled shutdown


class StopLimit:
    """`period_ms` at first, and as long again if leaderships have left the process meanwhile."""

    def __init__(self, period_ms: int, led_count: int) -> None:
        self.period_ms = period_ms
        self._led_count = led_count
        self._waited_ms = 0

    def __repr__(self) -> str:
        return f"<StopLimit {self._waited_ms} ms waited, {self._led_count} partitions led>"

    def is_reached(self, led_count: int) -> bool:
        """Return whether to wait no longer, at the end of a period; `led_count` partitions are still led."""
        self._waited_ms += self.period_ms
        before, self._led_count = self._led_count, led_count
        return led_count >= before or self._waited_ms >= MOST_MS
