"""A directory with a known past, for tests of the commands that show past states."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kraftd.log.disk import RealDisk
from kraftd.log.partition_log import PartitionLog
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.leader_change_message import LeaderChangeMessage, Voter
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata.image import Image
from kraftd.metadata.metadata_version import partition_record_version
from kraftd.metadata_dir.files.checkpoint import CheckpointWriter
from kraftd.metadata_dir.recovery import open_log
from kraftd.types import OffsetAndEpoch
from kraftd.wire.batch import ControlRecordType, build_batch, build_control_batch
from kraftd.wire.message import Message
from kraftd.wire.record_frame import VersionedRecord, encode_record, encode_records

ORDERS, PAYMENTS = b"o" * 16, b"p" * 16
BEGAN_MS = 1_700_000_000_000  # 2023-11-14T22:13:20Z; each batch is a minute later
MINUTE_MS = 60_000
DIRECTORY = b"d" * 16


def partition(topic_id: bytes, index: int, *replicas: int) -> PartitionRecord:
    directories = (DIRECTORY,) * len(replicas)
    return PartitionRecord(index, topic_id, replicas, replicas, (), (), replicas[0], 0, 0, 0, directories)


# One tuple a batch, with the offsets of its records behind it; offset 0 is the leader's control record.
PAST: tuple[tuple[Message, ...], ...] = (
    (FeatureLevelRecord("metadata.version", 30),),  # 1
    (TopicRecord("orders", ORDERS), partition(ORDERS, 0, 1, 2), partition(ORDERS, 1, 2, 1)),  # 2, 3, 4
    (ConfigRecord(2, "orders", "retention.ms", "500"),),  # 5
    (PartitionChangeRecord(0, ORDERS, leader=2, isr=(2,)),),  # 6
    (TopicRecord("payments", PAYMENTS), partition(PAYMENTS, 0, 1)),  # 7, 8
    (ConfigRecord(2, "orders", "retention.ms", "900"), RemoveTopicRecord(PAYMENTS)),  # 9, 10
)
END = 11


def encoded(messages: Sequence[Message]) -> list[bytes]:
    return [
        encode_record(
            VersionedRecord(
                one, partition_record_version(30) if isinstance(one, PartitionRecord) else _version(one)
            )
        )
        for one in messages
    ]


def _version(message: Message) -> int:
    from kraftd.wire.table import table_of

    return table_of(type(message)).valid[1]


def append(log: PartitionLog, messages: Sequence[Message], timestamp_ms: int, epoch: int = 1) -> None:
    log.append(build_batch(encoded(messages), log.log_end, epoch, timestamp_ms))
    log.sync()


def begin(folder: Path) -> PartitionLog:
    """Return an empty log whose first record names its leader."""
    log = open_log(RealDisk(), f"{folder}/__cluster_metadata-0").log
    leader = LeaderChangeMessage(leader_id=1, voters=[Voter(1)])
    log.append(build_control_batch([(ControlRecordType.LEADER_CHANGE, leader, 0)], 0, 1, BEGAN_MS))
    return log


def write_history(folder: Path) -> Path:
    """Write all of PAST; return the directory."""
    log = begin(folder)
    for number, messages in enumerate(PAST):
        append(log, messages, BEGAN_MS + number * MINUTE_MS)
    log.close()
    return folder


def checkpoint_at(folder: Path, end: int, *more: Message) -> OffsetAndEpoch:
    """Write the checkpoint that replaces the records before an offset, and more records that it has."""
    image, offset = Image(), 1
    for messages in PAST:
        for message in messages:
            if offset < end:
                image.apply(message, offset, 1)
            offset += 1
    for message in more:
        image.apply(message, end - 1, 1)
    snapshot_id = OffsetAndEpoch(end, 1)
    writer = CheckpointWriter(
        RealDisk(),
        f"{folder}/__cluster_metadata-0",
        snapshot_id,
        last_contained_log_timestamp_ms=BEGAN_MS,
        now_ms=BEGAN_MS,
    )
    writer.append(encode_records(list(image.records())))
    writer.freeze()
    return snapshot_id
