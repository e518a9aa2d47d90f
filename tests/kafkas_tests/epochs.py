"""Kafka's LeaderEpochFileCache beside kraftd's EpochCache: a call, and the entries before and after it."""

from __future__ import annotations

from collections.abc import Callable

from kraftd.log.epochs import EpochCache
from tests.kafkas_tests.agent import Columns

UNDEFINED = -1


def _end(cache: EpochCache, epoch: int, log_end: int) -> str:
    found = cache.end_offset_for(epoch, log_end) if epoch != UNDEFINED else None
    return f"{UNDEFINED}={UNDEFINED}" if found is None else f"{found.epoch}={found.offset}"


def _changed(change: Callable[..., object]) -> Callable[..., None]:
    def call(cache: EpochCache, *arguments: int) -> None:
        change(cache, *arguments)

    return call


def _or_none(number: int | None) -> str:
    return "none" if number is None else str(number)


CALLS: dict[str, Callable[..., str | None]] = {
    "assign": _changed(EpochCache.assign),
    "clearAndFlush": _changed(EpochCache.clear),
    "endOffsetFor": _end,
    "epochForOffset": lambda cache, offset: _or_none(cache.epoch_of(offset)),
    "latestEpoch": lambda cache: _or_none(cache.latest),
    "truncateFromEndAsyncFlush": _changed(EpochCache.truncate_from_end),
    "truncateFromStartAsyncFlush": _changed(EpochCache.truncate_from_start),
}


def epochs_differ(columns: Columns) -> str | None:
    """How a call's result, or what it leaves, differs from Kafka's; None if it does not."""
    name, texts, before, answer, after = columns
    if "EpochEntry" in texts:
        return None  # a list of them, for tiered storage
    arguments = [int(text) for text in texts.strip("[]").split(", ") if text]
    if name.startswith("truncate") and arguments[0] == UNDEFINED:
        return None  # kraftd truncates to offsets alone
    entries = [each.split(":") for each in before.split()]
    cache = EpochCache([(int(epoch), int(start)) for epoch, start in entries])
    found = CALLS[name](cache, *arguments)
    left = " ".join(f"{epoch}:{start}" for epoch, start in cache.entries)
    return None if found in (None, answer) and left == after else f"{found}, leaves {left}"
