"""Segments whose index files are gone at a start: the indexes are made anew, and nothing else changes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kraftd.host.broker_logs.replayed_producers import ReplayedProducers
from kraftd.log.data.data_log import DataLog
from kraftd.log.data.opening import Found
from kraftd.log.data.transaction_index import AbortedTransaction, encode_aborted
from kraftd.log.memory_disk import MemoryDisk
from kraftd.log.segment import (
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    segment_name,
)
from kraftd.partition.config import PartitionConfig
from kraftd.wire.end_marker import build_end_marker
from kraftd.wire.records import build_records_batch
from tests.log.data.logs import DIRECTORY, NOW_MS, SMALL, append, content, new_log, reopened

BATCHES, PRODUCERS, START = 70, 3, 5


def stopped(log_start: int = 0) -> tuple[MemoryDisk, DataLog, list[int]]:
    """A log of several segments after a clean stop, and where they begin. The producers send in turn, the
    last of them in the first segment only.
    """
    disk, log = new_log(settings=SMALL)
    for number in range(BATCHES):
        producer = number % PRODUCERS if number < PRODUCERS else number % (PRODUCERS - 1)
        data = build_records_batch(
            [(1_000 + number, b"k", b"%d" % number, ())],
            base_offset=log.log_end,
            leader_epoch=number // 10,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=number,
        )
        append(log, bytes(data))
    log.increment_log_start(log_start)
    log.close(NOW_MS)
    bases = [segment.base_offset for segment in log.segments]
    assert len(bases) >= 4
    return disk, log, bases


def remove(disk: MemoryDisk, bases: list[int], suffix: str) -> None:
    for base in bases:
        disk.remove(f"{DIRECTORY}/{segment_name(base, suffix)}")


@pytest.mark.parametrize("suffix", [OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX])
@pytest.mark.parametrize("log_start", [0, START])
@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param(lambda bases: bases, id="of all"),
        pytest.param(lambda bases: bases[:1], id="of the first"),
        pytest.param(lambda bases: bases[1:2], id="of one between"),
        pytest.param(lambda bases: bases[-1:], id="of the last"),
        pytest.param(lambda bases: [bases[0], bases[-1]], id="of the first and the last"),
    ],
)
def test_a_clean_stop_without_indexes_loses_neither_records_nor_producers(
    chosen: Callable[[list[int]], list[int]], log_start: int, suffix: str
) -> None:
    disk, log, bases = stopped(log_start)
    expected, found = content(log), Found(log_start, log.recovery_point, clean=True)
    whole = ReplayedProducers(PartitionConfig(), NOW_MS)
    whole.load([], 0)
    reopened(disk, found._replace(clean=False, recovery_point=0), SMALL, whole)
    files = {name: disk.read_bytes(f"{DIRECTORY}/{name}") for name in disk.list_names(DIRECTORY)}
    removed = chosen(bases)
    remove(disk, removed, suffix)
    producers = ReplayedProducers(PartitionConfig(), NOW_MS)
    opened = reopened(disk, found, SMALL, producers)
    assert len(opened.notes) == len(removed)
    assert all("is missing and is made anew" in note for note in opened.notes)
    assert (opened.log.log_start, opened.log.log_end) == (log_start, BATCHES)
    assert content(opened.log) == expected
    assert opened.log.epochs.entries == log.epochs.entries
    assert sorted(producers.entries()) == sorted(whole.entries())
    assert {name: disk.read_bytes(f"{DIRECTORY}/{name}") for name in files} == files


@pytest.mark.parametrize("entry", [AbortedTransaction(7, 0, 1, 2), AbortedTransaction(7, 50, 60, 61)])
def test_a_damaged_index_of_transactions_is_made_anew(entry: AbortedTransaction) -> None:
    disk, log = new_log(settings=SMALL)
    replayed = ReplayedProducers(PartitionConfig(), NOW_MS)
    replayed.load([], 0)
    for number in range(20):
        producer = {"producer_id": 7, "producer_epoch": 0, "leader_epoch": 0}
        data = build_records_batch(
            [(NOW_MS, b"k", b"v", ())],
            base_offset=log.log_end,
            base_sequence=number,
            attributes=0x10,
            **producer,
        )
        append(log, bytes(data))
        marker = build_end_marker(7, 0, is_commit=False, coordinator_epoch=0, timestamp_ms=NOW_MS)
        marker[:16] = log.log_end.to_bytes(8, "big") + marker[8:12] + bytes(4)  # offset and leader epoch
        aborted = AbortedTransaction(7, log.log_end - 1, log.log_end, log.log_end + 1)
        append(log, bytes(marker), aborted=[aborted])
    expected, found = log.aborted_transactions(0, 40), Found(0, log.log_end, clean=True)
    log.close(NOW_MS)
    path = log.segments[1].path(DIRECTORY, TRANSACTION_INDEX_SUFFIX)
    sound = disk.read_bytes(path)
    version = b"\0\0" if entry.last_offset < 50 else b"\1\0"
    disk.open(path).write(0, version + encode_aborted(entry)[2:])
    again, notes = reopened(disk, found, SMALL, replayed)
    assert disk.read_bytes(path) == sound and any(path in note for note in notes)
    assert again.aborted_transactions(0, 40) == expected and len(expected) == 20
