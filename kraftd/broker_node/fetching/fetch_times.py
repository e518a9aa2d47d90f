"""Where the time of a follower goes that is behind: waiting for its leader's answers, writing, or neither.

A fetch counts if the answer before it brought records of a partition whose ISR lacks the follower. Then the
leader has more, answers at once, and what it takes is the time of the link and of the leader. A fetch of a
follower that has caught up waits for records. High watermarks tell nothing: with fewer replicas in sync than
min.insync.replicas (KIP-966) they stand still.
"""

from __future__ import annotations

from collections import deque

from kraftd.named_tuple import NamedTuple

WINDOW_MS = 60_000
ROUNDS_KEPT = 50
UNANSWERED_MS = 5_000  # a fetch that waits for longer is named, even of a replica in sync


class Round(NamedTuple):
    """One fetch of a follower that lacks records. `own_ms`: from the answer to the next fetch; `write_ms`:
    that part of it in which the log was written.
    """

    ended_ms: int
    fetch_ms: int
    own_ms: int
    write_ms: int
    size_bytes: int


class Times(NamedTuple):
    """The means of the latest rounds. `unanswered`: fetches in a row without an answer; `waits_ms`: how long
    the present one has waited, if that is long.
    """

    rounds: int = 0
    fetch_ms: float = 0.0
    write_ms: float = 0.0
    other_ms: float = 0.0
    size_bytes: float = 0.0
    unanswered: int = 0
    waits_ms: int = 0


class FetchTimes:
    """The times of one fetcher, which calls the methods in the order of its rounds."""

    def __init__(self) -> None:
        self.is_behind = False  # by the last answer
        self._rounds: deque[Round] = deque(maxlen=ROUNDS_KEPT)
        self._unanswered = 0
        self._counts = False  # the present round
        self._sent_ms: int | None = None
        self._answered_ms: int | None = None
        self._write_ms = self._size_bytes = 0

    def __repr__(self) -> str:
        return f"<FetchTimes of {len(self._rounds)} rounds, {'behind' if self.is_behind else 'caught up'}>"

    def sent(self, now_ms: int) -> None:
        """A fetch is sent: the round of the one before has ended."""
        if self._counts and self._sent_ms is not None and self._answered_ms is not None:
            answered_ms = self._answered_ms
            times = answered_ms - self._sent_ms, now_ms - answered_ms, self._write_ms
            self._rounds.append(Round(now_ms, *times, self._size_bytes))
        self._counts = self.is_behind
        self._sent_ms, self._answered_ms = now_ms, None

    def answered(self, now_ms: int) -> None:
        """Its answer is there."""
        self._answered_ms = now_ms
        self._write_ms = self._size_bytes = self._unanswered = 0
        self.is_behind = False

    def failed(self, *, is_answered: bool) -> None:
        """The fetch brought nothing: the next one is not sent at once."""
        self._unanswered = 0 if is_answered else self._unanswered + 1
        self._sent_ms, self._counts = None, False

    def took(self, size_bytes: int, *, is_in_sync: bool) -> None:
        """The answer has records of a partition, or none."""
        self._size_bytes += size_bytes
        self.is_behind |= size_bytes > 0 and not is_in_sync

    def wrote(self, took_ms: int) -> None:
        """Records of the answer were written."""
        self._write_ms += took_ms

    def recent(self, now_ms: int) -> Times:
        """Those of the last minute; none if the follower lacks nothing, as far as it knows."""
        sent_ms = self._sent_ms if self._answered_ms is None else None
        waits_ms = 0 if sent_ms is None else now_ms - sent_ms
        if waits_ms <= UNANSWERED_MS:
            waits_ms = 0
        rounds = [one for one in self._rounds if now_ms - one.ended_ms <= WINDOW_MS]
        if not rounds or not (self.is_behind or self._counts):
            return Times(unanswered=self._unanswered, waits_ms=waits_ms)
        count = len(rounds)
        fetch_ms, own_ms, write_ms, size_bytes = (
            sum(values) / count for values in list(zip(*rounds, strict=True))[1:]
        )
        other_ms = max(0.0, own_ms - write_ms)
        return Times(count, fetch_ms, write_ms, other_ms, size_bytes, self._unanswered, waits_ms)
