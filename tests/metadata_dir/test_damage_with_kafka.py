"""Damaged checkpoints: kraftd detects every damage, and is compared with Kafka's own reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kraftd.log.disk import RealDisk
from kraftd.log.errors import CorruptStorage
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata_dir.files.checkpoint import CheckpointWriter, checkpoint_path, verify_checkpoint
from kraftd.types import OffsetAndEpoch
from kraftd.wire.batch import iter_batches
from kraftd.wire.record_frame import VersionedRecord, encode_record
from testkit.java import tools

pytestmark = pytest.mark.kafka
DISK = RealDisk()
ID = OffsetAndEpoch(100, 3)


def batches(directory: Path) -> list[bytes]:
    """A valid checkpoint: its header, three batches of records, its footer."""
    writer = CheckpointWriter(
        DISK,
        str(directory),
        ID,
        last_contained_log_timestamp_ms=7,
        now_ms=8,
        kraft_version=1,
        max_batch_bytes=600,
    )
    ids = [bytes(15) + bytes([at + 10]) for at in range(20)]
    topics = [VersionedRecord(TopicRecord(f"topic-{at}", id), 0) for at, id in enumerate(ids)]
    writer.append([encode_record(record) for record in topics])
    writer.freeze()
    path = Path(checkpoint_path(str(directory), ID))
    found = [bytes(batch.view) for batch in iter_batches(path.read_bytes())]
    path.unlink()
    return found


def flipped(batch: bytes, at: int = 70) -> bytes:
    return batch[:at] + bytes([batch[at] ^ 1]) + batch[at + 1 :]


def moved(batch: bytes, by: int = 1) -> bytes:
    """The batch with another base offset, which the checksum does not cover."""
    return (int.from_bytes(batch[:8], "big") + by).to_bytes(8, "big") + batch[8:]


# Damage to the batches of a checkpoint, and whether Kafka's reader reports it.
DAMAGES: dict[str, tuple[bool, Callable[[list[bytes]], list[bytes]]]] = {
    "nothing is left": (False, lambda parts: []),
    "the header is missing": (False, lambda parts: parts[1:]),
    "a bit of the header": (True, lambda parts: [flipped(parts[0]), *parts[1:]]),
    "a bit of the records": (True, lambda parts: [*parts[:2], flipped(parts[2]), *parts[3:]]),
    "a bit of a length": (True, lambda parts: [*parts[:2], flipped(parts[2], 11), *parts[3:]]),
    "a bit of the footer": (True, lambda parts: [*parts[:-1], flipped(parts[-1])]),
    "the footer is missing": (False, lambda parts: parts[:-1]),
    "cut in the footer": (True, lambda parts: [*parts[:-1], parts[-1][:-3]]),
    "cut in the records": (True, lambda parts: [parts[0], parts[1][:100]]),
    "a batch is missing": (False, lambda parts: [*parts[:2], *parts[3:]]),
    "a batch is there twice": (False, lambda parts: [*parts[:3], *parts[2:]]),
    "an offset is left out": (False, lambda parts: [*parts[:2], moved(parts[2]), *parts[3:]]),
    "records behind the footer": (False, lambda parts: [*parts, moved(parts[2], 100)]),
    "bytes behind the footer": (True, lambda parts: [*parts, b"more"]),
}


def kafka_complains(path: Path) -> bool:
    run = tools().run("dump-log", "--cluster-metadata-decoder", "--files", path)
    return "isvalid: false" in run.out or "invalid bytes" in run.out or "rror" in run.err


def test_kraftd_and_kafka_accept_an_undamaged_checkpoint(tmp_path: Path) -> None:
    path = Path(checkpoint_path(str(tmp_path), ID))
    path.write_bytes(b"".join(batches(tmp_path)))
    assert verify_checkpoint(DISK, str(path)) == path.stat().st_size
    assert not kafka_complains(path)


@pytest.mark.parametrize("damage", DAMAGES)
def test_kraftd_detects_every_damage_that_kafka_detects(tmp_path: Path, damage: str) -> None:
    noticed_by_kafka, damaged = DAMAGES[damage]
    path = Path(checkpoint_path(str(tmp_path), ID))
    path.write_bytes(b"".join(damaged(batches(tmp_path))))
    with pytest.raises(CorruptStorage, match=r"byte \d+.*Move the file aside"):
        verify_checkpoint(DISK, str(path))
    assert kafka_complains(path) is noticed_by_kafka
