"""``python -m bench.partition``: CPU of a partition's records, from the request's bytes to the effect, by
size.

`judge` is the C call alone; `produce` adds what a partition does with it; `idempotent` has a producer's
sequence. A figure is the best of several rounds: other load on the machine only adds to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

from kraftd.partition.config import PartitionConfig
from kraftd.partition.effects import AppendBatches
from kraftd.partition.partition import Partition, Produced
from kraftd.partition.views import BrokerView
from kraftd.types import OffsetAndEpoch
from kraftd.wire import records
from kraftd.wire.batch import HEADER_BYTES
from kraftd.wire.compression import CODEC_NAMES, compress
from kraftd.wire.records import Outcome, build_records_batch, finish_batch

NOW_MS = 1_700_000_000_000
RECORD_BYTES = 100
COUNTS = {"1 record": 1, "10 records": 10, "16 KiB": 148, "1 MiB": 9400}
ROUNDS, ROUND_S = 9, 0.05
LONGEST_MS = (1 << 63) - 1


class _Alone:
    """The only broker, the only replica, and its log's epochs."""

    replicas, isr, leader = (1,), (1,), 1
    leader_epoch, partition_epoch, leader_recovery_state = 1, 1, 0
    entries, latest = [(1, 0)], 1

    def alive_epoch(self, broker_id: int) -> int | None:
        return 1

    def is_shutting_down(self, broker_id: int) -> bool:
        return False

    def end_offset_for(self, epoch: int, log_end: int) -> OffsetAndEpoch | None:
        return None

    def epoch_of(self, offset: int) -> int | None:
        return 1


def batch_of(count: int, codec: int = 0, producer_id: int = -1) -> bytearray:
    """Records of 100 bytes without keys."""
    rows: list[Any] = [(NOW_MS, None, bytes([65 + at % 26]) * RECORD_BYTES, []) for at in range(count)]
    plain = build_records_batch(
        rows, producer_id=producer_id, producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=0 if producer_id >= 0 else -1,
    )  # fmt: skip
    if not codec:
        return plain
    body = compress(codec, bytes(plain[HEADER_BYTES:]))
    return finish_batch(body, count, 0, -1, codec, NOW_MS, NOW_MS, -1, -1, -1)


def best_us(run: Callable[[], object]) -> float:
    """CPU microseconds of one call in the best round."""
    best = float("inf")
    for _ in range(ROUNDS):
        calls, began = 0, time.process_time()
        while (took_s := time.process_time() - began) < ROUND_S:
            for _ in range(8):
                run()
            calls += 8
        best = min(best, took_s / calls)
    return best * 1e6


def judging(data: bytearray) -> Callable[[], object]:
    header = bytes(data[:HEADER_BYTES])

    def run() -> object:
        data[:HEADER_BYTES] = header
        return records.ENGINE.judge(data, None, NOW_MS, 7, 1, 1 << 30, LONGEST_MS, LONGEST_MS, -1, 1)

    assert run()[0] == Outcome.VALID  # type: ignore[index]
    return run


def producing(data: bytearray, partition: Partition) -> Callable[[], object]:
    header, sequence = bytes(data[:HEADER_BYTES]), 0
    is_idempotent = header[53:57] != b"\xff" * 4
    count = int.from_bytes(header[57:61], "big")

    def run() -> object:
        nonlocal sequence
        data[:HEADER_BYTES] = header
        if is_idempotent:
            data[53:57] = sequence.to_bytes(4, "big")
            data[17:21] = records.ENGINE.crc32c(memoryview(data)[21:]).to_bytes(4, "big")
            sequence = records.increment_sequence(sequence, count)
        found = partition.produce(data, 12, -1, NOW_MS)
        assert isinstance(found, Produced) and isinstance(found.append, AppendBatches)
        return partition.appended(found.append.end_offset, NOW_MS)

    return run


def new_partition() -> Partition:
    alone = _Alone()
    brokers: BrokerView = alone
    partition = Partition("topic", 0, 1, PartitionConfig(max_message_bytes=1 << 30), brokers, alone)
    partition.follow_metadata(alone, NOW_MS)
    return partition


def main() -> None:
    table = Table(title="A partition's records, µs of CPU")
    for column in ("", *COUNTS):
        table.add_column(column, justify="right" if column else "left")
    table.add_row("judge", *(f"{best_us(judging(batch_of(count))):.2f}" for count in COUNTS.values()))
    for name, producer_id in (("produce", -1), ("produce, idempotent", 5)):
        figures = (
            best_us(producing(batch_of(count, 0, producer_id), new_partition())) for count in COUNTS.values()
        )
        table.add_row(name, *(f"{figure:.2f}" for figure in figures))
    for codec in range(1, 5):
        figures = (best_us(producing(batch_of(count, codec), new_partition())) for count in COUNTS.values())
        table.add_row(f"produce, {CODEC_NAMES[codec]}", *(f"{figure:.2f}" for figure in figures))
    Console().print(table)


if __name__ == "__main__":
    main()
