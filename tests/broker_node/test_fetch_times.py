"""Where the time of a follower goes that lacks records of its leader."""

from __future__ import annotations

from kraftd.broker_node.fetching.fetch_times import UNANSWERED_MS, WINDOW_MS, FetchTimes, Times
from kraftd.metrics.state.slow_fetches import DISK, LINK, PROCESSORS, SlowFetches, described


def rounds(
    times: FetchTimes, count: int, fetch_ms: int, write_ms: int, other_ms: int, now_ms: int = 0
) -> int:
    """Rounds of a follower that lacks records after each; returns when the last fetch was sent."""
    for _ in range(count):
        times.sent(now_ms)
        now_ms += fetch_ms
        times.answered(now_ms)
        times.took(1024, is_in_sync=False)
        times.wrote(write_ms)
        now_ms += write_ms + other_ms
    times.sent(now_ms)
    return now_ms


def test_a_round_has_the_time_of_its_answer_of_its_write_and_of_the_rest() -> None:
    times = FetchTimes()
    now_ms = rounds(times, 4, fetch_ms=400, write_ms=30, other_ms=5)
    assert times.recent(now_ms) == Times(3, 400, 30, 5, 1024)  # before the first one nothing was known
    assert times.recent(now_ms + WINDOW_MS + 1).rounds == 0


def test_a_fetch_that_waits_for_records_does_not_count() -> None:
    times = FetchTimes()
    for now_ms in range(0, 5_000, 500):
        times.sent(now_ms)
        times.answered(now_ms + 500)
        times.took(1024, is_in_sync=True)
        times.took(0, is_in_sync=False)
    assert times.recent(5_000) == Times()
    now_ms = rounds(times, 2, 400, 30, 5, 5_000)
    times.answered(now_ms + 400)
    times.sent(now_ms + 400)
    assert times.recent(now_ms + 400) == Times()  # it has caught up


def test_fetches_without_an_answer_count_until_one_comes() -> None:
    times = FetchTimes()
    for now_ms in (0, 1_000, 2_000):
        times.sent(now_ms)
        times.failed(is_answered=False)
    assert times.recent(2_000) == Times(unanswered=3)
    times.sent(3_000)
    assert times.recent(3_000 + UNANSWERED_MS).waits_ms == 0
    assert times.recent(3_001 + UNANSWERED_MS).waits_ms == UNANSWERED_MS + 1
    times.failed(is_answered=True)
    assert times.recent(9_000) == Times()


def test_what_takes_most_is_called_slow() -> None:
    def told(fetch_ms: float, write_ms: float, other_ms: float) -> str:
        return described(SlowFetches(1, 0, 5, fetch_ms, write_ms, other_ms, 65_536, 0, 0))

    assert told(800, 20, 5) == (
        f"an answer of node 1 takes 800 ms for 64 KiB, its write 20 ms, all else 5 ms: {LINK}"
    )
    assert told(20, 800, 5).endswith(DISK)
    assert told(20, 5, 800).endswith(PROCESSORS)
    waits = described(SlowFetches(1, 0, 0, 0, 0, 0, 0, 0, 12_000))
    assert waits == f"a fetch from node 1 has waited 12 s for its answer: {LINK}"
    down = described(SlowFetches(1, 0, 0, 0, 0, 0, 0, 4, 0))
    assert down == "4 fetches in a row from node 1 had no answer: it is down, or out of reach"
