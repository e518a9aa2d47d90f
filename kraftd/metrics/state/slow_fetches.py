"""What keeps the broker of this process behind a leader: its link to it, its own disk, or its processors."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kraftd.broker_node.fetching.fetcher import Fetcher

MAX_NAMED = 20
TOLD_UNANSWERED = 3  # fetches in a row: one fails whenever its leader restarts
LINK = "its link to that node, or that node itself, is slow"
DISK = "its disk is slow"
PROCESSORS = "its processors are busy, or too slow"


class SlowFetches(Struct, frozen=True):
    """The fetches from one leader, of a follower that lacks records: the means of the last minute's.

    `fetch_ms`: until the answer; `write_ms`: of its records; `other_ms`: all else until the next fetch.
    `unanswered`: fetches in a row that failed; `waits_ms`: of the present one, if that is long.
    """

    leader: int
    fetcher: int
    fetches: int
    fetch_ms: float
    write_ms: float
    other_ms: float
    size_bytes: int
    unanswered: int
    waits_ms: int


def slow_fetches(fetchers: Iterable[Fetcher], now_ms: int) -> list[SlowFetches]:
    """Those of fetchers that lack records, or have no answer; the first ones."""
    found = []
    for one in fetchers:
        times = one.times.recent(now_ms)
        if times.rounds or times.unanswered >= TOLD_UNANSWERED or times.waits_ms:
            means = (round(each, 1) for each in (times.fetch_ms, times.write_ms, times.other_ms))
            tried = times.unanswered, times.waits_ms
            row = one.leader_id, one.number, times.rounds, *means, round(times.size_bytes), *tried
            found.append(SlowFetches(*row))  # type: ignore[arg-type]
    return sorted(found, key=lambda one: (one.leader, one.fetcher))[:MAX_NAMED]


def described(one: SlowFetches) -> str:
    """Where the time goes, and what is slow therefore."""
    node = f"node {one.leader}"
    if one.waits_ms:
        return f"a fetch from {node} has waited {one.waits_ms / 1000:.0f} s for its answer: {LINK}"
    if not one.fetches:
        return f"{one.unanswered} fetches in a row from {node} had no answer: it is down, or out of reach"
    size = f"{one.size_bytes / 1024:,.0f} KiB"
    times = f"an answer of {node} takes {one.fetch_ms:,.0f} ms for {size}, its write {one.write_ms:,.0f} ms"
    rest = f", all else {one.other_ms:,.0f} ms"
    most = max(one.fetch_ms, one.write_ms, one.other_ms)
    slow = LINK if most == one.fetch_ms else DISK if most == one.write_ms else PROCESSORS
    return f"{times}{rest}: {slow}"
