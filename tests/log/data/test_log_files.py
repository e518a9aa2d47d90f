"""The files of one log: what is found under the names of new ones, torn entries, damage, and none at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kraftd.log.data.log_files import LogFiles
from kraftd.log.data.resources import LogResources
from kraftd.log.data.segment import DataSegment
from kraftd.log.data.transaction_index import (
    AbortedTransaction,
    count_ended_before,
    decode_aborted,
    encode_aborted,
    iter_aborted,
)
from kraftd.log.disk import RealDisk
from kraftd.log.errors import CorruptStorage
from kraftd.log.memory_disk import MemoryDisk
from kraftd.log.segment import LOG_SUFFIX, PRODUCER_SNAPSHOT_SUFFIX, SUFFIXES
from kraftd.wire.producer_snapshot import SnapshotEntry, decode_producers
from tests.log.data.logs import DIRECTORY, NOW_MS, append, batch, new_log

ENTRY = SnapshotEntry(5, 0, 1, 2, 0, NOW_MS, 0, -1)


def files() -> tuple[MemoryDisk, LogFiles]:
    disk = MemoryDisk()
    disk.make_directory("/data")
    disk.make_directory(DIRECTORY)
    return disk, LogFiles(LogResources(disk), DIRECTORY)


def test_a_new_segment_begins_with_empty_files_and_keeps_a_snapshot() -> None:
    disk, log = files()
    segment = DataSegment(7, NOW_MS)
    for suffix in SUFFIXES:
        opened = log.resources.files.get(segment.path(DIRECTORY, suffix), create=True)
        opened.write(0, b"left behind")
    log.create(segment)
    sizes = {name[20:]: len(disk.read_bytes(f"{DIRECTORY}/{name}")) for name in disk.list_names(DIRECTORY)}
    assert sizes == {".log": 0, ".index": 0, ".timeindex": 0, PRODUCER_SNAPSHOT_SUFFIX: 11}
    log.resources.files.get(segment.path(DIRECTORY)).write(0, b"new")
    assert disk.read_bytes(segment.path(DIRECTORY, LOG_SUFFIX)) == b"new"


def test_snapshots_of_what_was_truncated_are_removed_and_a_new_one_replaces_its_file() -> None:
    disk, log = files()
    for offset in (0, 5, 6, 9):
        log.write_snapshot(offset, [ENTRY] * 3)
    log.remove_snapshots_behind(5)
    assert log.snapshot_offsets() == [0, 5]
    log.write_snapshot(5, [ENTRY])
    assert decode_producers(disk.read_bytes(log.snapshot_path(5))) == [ENTRY]
    assert len(disk.read_bytes(log.snapshot_path(5))) < len(disk.read_bytes(log.snapshot_path(0)))
    log.remove_snapshots_behind(-1)
    assert log.snapshot_offsets() == []


def test_a_snapshot_is_closed_once_it_is_written(tmp_path: Path) -> None:
    log = LogFiles(LogResources(RealDisk()), str(tmp_path))
    before = len(os.listdir("/proc/self/fd"))
    log.write_snapshot(0, [ENTRY])
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("content", "epochs"), [(None, []), (b"", []), (b"9\n", None), (b"0\n1\n3 7\n", [(3, 7)])]
)
def test_without_leader_epochs_there_are_none(
    content: bytes | None, epochs: list[tuple[int, int]] | None
) -> None:
    disk, log = files()
    if content is not None:
        disk.open(f"{DIRECTORY}/leader-epoch-checkpoint", create=True).write(0, content)
    assert log.read_epochs() == epochs


def test_a_truncation_finds_its_place_beside_damaged_records() -> None:
    disk, log = new_log()
    for offset in (0, 3, 6):
        append(log, batch(offset, 3))
    log.flush(NOW_MS)
    (segment,) = log.segments
    size = segment.end_position // 3
    disk.flip_bit(segment.path(DIRECTORY), size + 70, 1)
    for offset, place in [
        (2, (0, 0)),
        (3, (3, size)),
        (5, (3, size)),
        (8, (6, 2 * size)),
        (9, (9, 3 * size)),
    ]:
        assert log.files.place_of(segment, offset) == place


def test_a_torn_entry_of_a_transaction_is_left_out_and_a_strange_one_is_damage() -> None:
    entries = [AbortedTransaction(5, 10, 12, 13), AbortedTransaction(6, 11, 14, 15)]
    data = b"".join(map(encode_aborted, entries))
    for torn in (0, 1, len(data) // 2 - 1):
        assert decode_aborted(data + data[:torn], "/f", 10) == entries
    assert decode_aborted(data[: len(data) // 2 + 9], "/f", 12) == entries[:1]
    with pytest.raises(CorruptStorage, match="/f, byte 0: a transaction that ends at 12, before the segment"):
        decode_aborted(data, "/f", 13)
    with pytest.raises(CorruptStorage, match="/f, byte 34: an entry of version 256"):
        decode_aborted(encode_aborted(entries[0]) + b"\1" + data[1:], "/f", 0)


def test_of_many_aborted_transactions_only_those_behind_an_offset_are_decoded() -> None:
    data = b"".join(encode_aborted(AbortedTransaction(5, 2 * at, 2 * at + 1, 2 * at + 2)) for at in range(99))
    for offset, count in ((0, 0), (1, 0), (2, 1), (99, 49), (100, 50), (197, 98), (198, 99)):
        assert count_ended_before(data + data[:7], offset) == count
        assert [one.first_offset for one in iter_aborted(data, "/f", 0, count)] == list(
            range(2 * count, 198, 2)
        )
    assert next(iter_aborted(data[: 34 * 60] + b"\1" * 34, "/f", 0, 59)).first_offset == 118


def test_a_segment_stays_if_what_was_cleaned_of_it_has_gone() -> None:
    disk, log = files()
    segment = DataSegment(0, NOW_MS)
    log.create(segment)
    kept = disk.list_names(DIRECTORY)
    with pytest.raises(FileNotFoundError):
        log.swap_in(DataSegment(0, NOW_MS), [segment], NOW_MS)
    assert disk.list_names(DIRECTORY) == kept
