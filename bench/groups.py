"""``python -m bench.groups``: the pure coordinator of groups: heartbeats, commits and loading, by CPU time.

No network and no disk: what a broker adds is measured elsewhere. Each figure is the best of some runs.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterable, Mapping

from kraftd.groups.call import Call
from kraftd.groups.config import GroupConfig
from kraftd.groups.coordinator import GroupCoordinator
from kraftd.groups.effects import AppendRecords, ReadRecords, ScheduleLoading
from kraftd.groups.events import (
    HighWatermarkAdvanced,
    LoadingDue,
    PartitionElected,
    RecordsAppended,
    RecordsRead,
)
from kraftd.groups.records import encode_record, group_record, offset_record
from kraftd.messages.group_metadata_value import GroupMetadataValue, MemberMetadata
from kraftd.messages.heartbeat_request import HeartbeatRequest
from kraftd.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftd.messages.offset_commit_value import OffsetCommitValue
from kraftd.runtime.garbage import THRESHOLDS
from kraftd.wire.codec import decode, encode_bytes
from testkit.keyed_batches import keyed_batch

BATCH_RECORDS = 500
TOPIC_ID = bytes(range(16))


class AnyTopic:
    """Every topic exists, and nothing changes."""

    def topic_id(self, name: str) -> bytes | None:
        return TOPIC_ID

    def topic_name(self, topic_id: bytes) -> str | None:
        return "orders"

    def has_partition(self, name: str, index: int) -> bool:
        return True

    def partition_count(self, topic_id: bytes) -> int:
        return 1

    def version(self) -> int:
        return 1

    hashes_version = names_version = version

    def names(self) -> Iterable[str]:
        return ["orders"]

    def topic_hash(self, name: str) -> int | None:
        return 1

    def group_configs(self, group_id: str) -> Mapping[str, str]:
        return {}

    def dynamic_config(self, name: str) -> str | None:
        return None


def new_coordinator() -> GroupCoordinator:
    coordinator = GroupCoordinator(GroupConfig(), AnyTopic(), lambda: "uuid")
    coordinator.partition_count = 1
    return coordinator


def group_bytes(number: int, members: int) -> tuple[bytes, bytes | None]:
    """The record of a stable group of consumers."""
    subscription = b"\0\0\0\0\0\1\0\6orders\0\0\0\0"
    rows = [
        MemberMetadata(
            f"app-{number}-{one}", None, "app", "/10.0.0.1", 300_000, 45_000, subscription, b"x" * 60
        )
        for one in range(members)
    ]
    value = GroupMetadataValue("consumer", 1, "range", rows[0].member_id, 1, rows)
    return encode_record(group_record(f"group-{number}", value))


def offset_bytes(number: int) -> tuple[bytes, bytes | None]:
    value = OffsetCommitValue(number, 3, "", 1_700_000_000_000, -1, TOPIC_ID)
    return encode_record(offset_record(f"group-{number % 1000}", "orders", number // 1000, value))


def batches(records: list[tuple[bytes, bytes | None]]) -> bytes:
    starts = range(0, len(records), BATCH_RECORDS)
    return b"".join(keyed_batch(records[start : start + BATCH_RECORDS], start, 0, 1) for start in starts)


def load(data: bytes, count: int) -> tuple[GroupCoordinator, float, float]:
    """Load a partition: the coordinator, CPU seconds, and the longest slice in milliseconds."""
    coordinator = new_coordinator()
    begin, longest = time.process_time(), 0.0
    effects = coordinator.step(PartitionElected(0, 1, 0, count), 1)
    while effects and isinstance(effects[0], ReadRecords | ScheduleLoading):
        start = time.process_time()
        if isinstance(effects[0], ReadRecords):
            effects = coordinator.step(RecordsRead(0, 1, data, count), 1)
        else:
            effects = coordinator.step(LoadingDue(0, 1), 1)
        longest = max(longest, time.process_time() - start)
    return coordinator, time.process_time() - begin, longest * 1000


def heartbeats(count: int) -> float:
    """Heartbeats a CPU second, with decoding the request and encoding the answer."""
    groups = 1000
    coordinator, _, _ = load(batches([group_bytes(number, 3) for number in range(groups)]), groups)
    frames = [
        encode_bytes(HeartbeatRequest(f"group-{number}", 1, f"app-{number}-{one}"), 4)
        for number in range(groups)
        for one in range(3)
    ]
    begin = time.process_time()
    for number in range(count):
        request = decode(HeartbeatRequest, 4, frames[number % len(frames)])
        (answer,) = coordinator.handle(Call(number, 4, "app", "/10.0.0.1"), request, number)
        encode_bytes(answer.response, 4)  # type: ignore[attr-defined]
    return count / (time.process_time() - begin)


def commits(count: int, together: int = 8) -> float:
    """OffsetCommits of one partition a CPU second; several share a batch, as in one event loop callback."""
    coordinator, _, _ = load(b"", 0)
    frames = [
        encode_bytes(
            OffsetCommitRequest(
                f"group-{number}",
                topics=[
                    OffsetCommitRequestTopic("orders", partitions=[OffsetCommitRequestPartition(0, number)])
                ],
            ),
            9,
        )
        for number in range(1000)
    ]
    begin = time.process_time()
    for start in range(0, count, together):
        for number in range(start, start + together):
            request = decode(OffsetCommitRequest, 9, frames[number % len(frames)])
            coordinator.handle(Call(number, 9, "app", "/10.0.0.1"), request, number)
        (effect,) = coordinator.flush(start)
        assert isinstance(effect, AppendRecords)
        coordinator.step(RecordsAppended(0, effect.batch_id), start)
        end = effect.base_offset + len(effect.records)
        for answer in coordinator.step(HighWatermarkAdvanced(0, end), start):
            encode_bytes(answer.response, 9)  # type: ignore[attr-defined]
    return count / (time.process_time() - begin)


def best(runs: int, measure: Callable[[], float]) -> float:
    return max(measure() for _ in range(runs))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.groups", description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="of which the best counts")
    parser.add_argument("--count", type=int, default=100_000, help="of heartbeats and of commits")
    options = parser.parse_args()
    gc.set_threshold(*THRESHOLDS)  # those of a daemon, within a callback
    print(f"heartbeats a CPU second        {best(options.runs, lambda: heartbeats(options.count)):>10,.0f}")
    print(f"commits a CPU second           {best(options.runs, lambda: commits(options.count)):>10,.0f}")
    for name, count, record in (
        ("10,000 groups of 3 loaded", 10_000, lambda number: group_bytes(number, 3)),
        ("100,000 commits loaded", 100_000, offset_bytes),
    ):
        data = batches([record(number) for number in range(count)])
        runs = [load(data, count)[1:] for _ in range(options.runs)]
        print(f"{name:<30} {min(runs)[0]:>10.3f} CPU s, longest slice {min(run[1] for run in runs):.1f} ms")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
