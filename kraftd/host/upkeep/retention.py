"""Which snapshots and segments may be deleted (KIP-630): pure arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from kraftd.named_tuple import NamedTuple
from kraftd.types import OffsetAndEpoch


class KeptSnapshot(NamedTuple):
    """A checkpoint; timestamp_ms is that of the last record in it, last_read_ms of its last download."""

    snapshot_id: OffsetAndEpoch
    size_bytes: int
    timestamp_ms: int
    last_read_ms: int | None = None


class RetentionRules(NamedTuple):
    """metadata.max.retention.bytes and .ms, -1 for no limit; how long a snapshot is kept after a read; how
    long the log start waits for live replicas (metadata.start.offset.lag.time.max.ms).
    """

    max_bytes: int = -1
    max_ms: int = -1
    after_read_ms: int = 60_000
    lag_max_ms: int = 604_800_000


def new_start(
    rules: RetentionRules,
    snapshots: Sequence[KeptSnapshot],
    log_bytes_from: Callable[[int], int],
    log_start: int,
    limit: int,
    now_ms: int,
    wall_ms: int,
    live_end: int | None = None,
) -> OffsetAndEpoch | None:
    """The snapshot at which the log may start, None if nothing may be deleted. snapshots are all, oldest
    first.

    Kafka's rules: the oldest snapshot is deleted while log and snapshots together exceed max_bytes, or while
    its last record is older than max_ms. The segments below the next one are deleted with it. The last
    snapshot is never deleted. Beyond Kafka's rules, none is deleted at or past `limit`: the leader's log
    start, and what the image was built from. None is deleted that a replica has read within after_read_ms.
    Ages of records are by the wall clock, `wall_ms`.
    The slowest live replica is at `live_end`: none that ends behind it is deleted until its last record is
    lag_max_ms old (KIP-630).
    """
    chosen: OffsetAndEpoch | None = None
    snapshot_bytes = sum(each.size_bytes for each in snapshots)
    start = log_start
    for oldest, following in pairwise(snapshots):
        is_large = 0 <= rules.max_bytes < snapshot_bytes + log_bytes_from(start)
        is_old = 0 <= rules.max_ms < wall_ms - oldest.timestamp_ms
        is_read = oldest.last_read_ms is not None and now_ms - oldest.last_read_ms < rules.after_read_ms
        is_awaited = (
            live_end is not None
            and following.snapshot_id.offset > live_end
            and wall_ms - following.timestamp_ms < rules.lag_max_ms
        )
        if not (is_large or is_old) or is_read or is_awaited or following.snapshot_id.offset > limit:
            break
        snapshot_bytes -= oldest.size_bytes
        if following.snapshot_id.offset > start:
            chosen, start = following.snapshot_id, following.snapshot_id.offset
    return chosen
