"""Checkpoints, and the output of dump for them, for segments, and for damage."""

from __future__ import annotations

import json

import pytest

from kraftd.log.errors import CorruptStorage, DiskFull
from kraftd.log.memory_disk import MemoryDisk
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.messages.voters_record import VotersRecord
from kraftd.metadata_dir.files.checkpoint import (
    CheckpointReader,
    CheckpointWriter,
    PartFile,
    checkpoint_path,
    list_checkpoints,
    parse_checkpoint_name,
    split_values,
)
from kraftd.metadata_dir.formatting.voters import parse_voters, voters_record
from kraftd.metadata_dir.showing.dump import as_json_line, dump, find_dumpable, verify
from kraftd.types import OffsetAndEpoch
from kraftd.wire.batch import build_batch, iter_batches
from kraftd.wire.record_frame import VersionedRecord, encode_record
from tests.metadata_dir.logs import DIRECTORY, opened

ID = OffsetAndEpoch(205268, 5)
PATH = f"{DIRECTORY}/00000000000000205268-0000000005.checkpoint"
TOPICS = [encode_record(VersionedRecord(TopicRecord(f"t{at}", bytes([at] * 16)), 0)) for at in range(30)]
SEGMENT = f"{DIRECTORY}/00000000000000000000.log"


def written(voters: VotersRecord | None = None) -> MemoryDisk:
    disk = MemoryDisk()
    writer = CheckpointWriter(
        disk,
        DIRECTORY,
        ID,
        last_contained_log_timestamp_ms=77,
        now_ms=88,
        kraft_version=0 if voters is None else 1,
        voters=voters,
        max_batch_bytes=300,
    )
    writer.append(TOPICS)
    assert disk.list_names(DIRECTORY) == ["00000000000000205268-0000000005-made.checkpoint.part"]
    assert writer.freeze() == len(disk.read_bytes(PATH))
    return disk


def test_a_checkpoint_returns_header_and_records_in_bounded_batches() -> None:
    voters = voters_record(parse_voters("1@localhost:9093:J8aAPcfLQt2bqs1JT_rMgQ"), "controller")
    disk = written(voters)
    reader = CheckpointReader(disk, PATH)
    assert reader.header == (77, 1, voters)
    assert voters.voters[0].endpoints[0].name == "CONTROLLER"
    assert [bytes(value) for batch in reader.values() for value in batch] == TOPICS
    assert all(len(batch.view) <= 300 for batch in reader.batches())
    assert len(list(reader.control_batches())) == 2
    assert list_checkpoints(disk, DIRECTORY) == ([ID], [])


def test_checkpoint_names_are_kafkas_and_other_names_are_not_parsed() -> None:
    assert checkpoint_path(DIRECTORY, ID) == PATH
    assert parse_checkpoint_name("00000000000000205268-0000000005.checkpoint") == ID
    assert parse_checkpoint_name("00000000000000205268-0000000005-7234.checkpoint.part") == ID
    for name in (
        "bootstrap.checkpoint",
        "leader-epoch-checkpoint",
        "5-1.checkpoint",
        "x" * 31 + ".checkpoint",
    ):
        assert parse_checkpoint_name(name) is None


def test_an_abandoned_download_leaves_nothing() -> None:
    disk = MemoryDisk()
    part = PartFile(disk, DIRECTORY, ID)
    part.append(b"some")
    part.append(memoryview(b"thing"))
    assert part.size_bytes == 9
    part.abandon()
    assert disk.list_names(DIRECTORY) == []


def test_a_full_disk_while_a_checkpoint_is_written_is_reported() -> None:
    disk = MemoryDisk()
    disk.capacity_bytes = 300
    writer = CheckpointWriter(disk, DIRECTORY, ID, last_contained_log_timestamp_ms=0, now_ms=0)
    with pytest.raises(DiskFull):
        writer.append(TOPICS)
    writer.abandon()
    assert disk.list_names(DIRECTORY) == []


def test_voters_with_kraft_version_0_are_refused() -> None:
    with pytest.raises(ValueError, match=r"kraft\.version 0"):
        CheckpointWriter(
            MemoryDisk(), DIRECTORY, ID, last_contained_log_timestamp_ms=0, now_ms=0, voters=VotersRecord()
        )


def test_values_are_split_into_batches_and_one_that_fits_none_is_refused() -> None:
    values = [bytes(100)] * 10
    parts = list(split_values(values, 400))
    assert sum(len(part) for part in parts) == 10
    assert all(len(build_batch(part, 0, 0, 0)) <= 400 for part in parts)
    with pytest.raises(ValueError, match="does not fit into a batch of 400"):
        list(split_values([bytes(1000)], 400))


def test_every_truncation_and_damaged_byte_of_a_checkpoint_is_detected() -> None:
    whole = written().read_bytes(PATH)
    free = {at for batch in iter_batches(whole) for at in range(batch.position + 12, batch.position + 16)}
    for position in range(0, len(whole), 3):
        disk = MemoryDisk()
        disk.open(PATH, create=True).write(0, whole[:position])
        with pytest.raises(CorruptStorage, match="Move the file aside"):
            list(CheckpointReader(disk, PATH).values())
        if position in free:
            continue  # leader epochs are not covered by the checksum
        damaged = bytearray(whole)
        damaged[position] ^= 0x55
        disk.open(PATH).write(0, bytes(damaged))
        with pytest.raises(CorruptStorage):
            list(CheckpointReader(disk, PATH).values())


def test_dump_shows_batches_and_records_as_json() -> None:
    disk = written(voters_record(parse_voters("1@localhost:9093:J8aAPcfLQt2bqs1JT_rMgQ"), "controller"))
    assert find_dumpable(disk, [DIRECTORY]) == [PATH]
    assert find_dumpable(disk, [PATH]) == [PATH]
    rows = [json.loads(as_json_line(row)) for row in dump(disk, PATH)]
    records = [row for row in rows if row["kind"] == "record"]
    assert [row["data"]["name"] for row in records] == [f"t{at}" for at in range(30)]
    assert records[0]["type"] == "TopicRecord"
    assert records[1]["data"]["topic_id"] == "AQEBAQEBAQEBAQEBAQEBAQ"
    controls = [row["type"] for row in rows if row["kind"] == "control"]
    assert controls == ["SNAPSHOT_HEADER", "KRAFT_VERSION", "KRAFT_VOTERS", "SNAPSHOT_FOOTER"]
    assert list(verify(disk, PATH)) == []
    assert {row["kind"] for row in dump(disk, PATH, records=False)} == {"batch"}
    with pytest.raises(FileNotFoundError):
        find_dumpable(disk, ["/nowhere"])


def test_dump_reports_damage_and_continues_behind_it() -> None:
    disk, log, _ = opened()
    value = encode_record(VersionedRecord(NoOpRecord(), 0))
    for offset in range(5):
        log.append(build_batch([value], offset, 1, 5))
    log.close()
    size = len(build_batch([value], 0, 1, 5))
    assert list(verify(disk, SEGMENT)) == []
    file = disk.open(SEGMENT)
    file.write(2 * size + 30, b"\xff\xff")
    rows = list(dump(disk, SEGMENT))
    damage = [row for row in rows if row["kind"] == "damage"]
    assert [(row["position"], row["offset"]) for row in damage] == [(2 * size, 2)]
    assert f"readable again at byte {3 * size}" in damage[0]["reason"]
    assert [row["offset"] for row in rows if row["kind"] == "record"] == [0, 1, 3, 4]
    assert list(verify(disk, SEGMENT)) == damage
    file.truncate(5 * size - 1)
    assert "a torn tail" in list(verify(disk, SEGMENT))[-1]["reason"]


def test_verify_reports_unreadable_records_and_wrong_indexes() -> None:
    disk, log, _ = opened()
    log.append(build_batch([b"\x01\x7f\x00\x00"], 0, 1, 5))
    log.roll()
    log.close()
    assert ["no record has key 127" in row["reason"] for row in verify(disk, SEGMENT)] == [True]
    disk.remove(SEGMENT.replace(".log", ".index"))
    assert "missing" in list(verify(disk, SEGMENT))[-1]["reason"]


def test_an_outdated_index_is_not_reported_as_damage_of_the_log() -> None:
    def topic(offset: int, name: str) -> bytes:
        return build_batch([encode_record(VersionedRecord(TopicRecord(name, bytes(16)), 0))], offset, 1, 5)

    disk, log, _ = opened()
    for offset in range(7):
        log.append(topic(offset, "short"))
    log.close()  # with the index of the segment that is being written
    _, log, _ = opened(disk)
    log.truncate_to(2)
    for offset in range(2, 7):
        log.append(topic(offset, "not so short"))
    log.sync()
    rows = list(verify(disk, SEGMENT))
    assert rows == []
