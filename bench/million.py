"""``python -m bench.million DIRECTORY``: fills a formatted controller's directory with very many partitions.

The same arguments give the same records, as a controller would have written them: brokers with one log
directory each, all of them active, and topics whose replicas lie in stripes over the brokers. In log form
they are the log of epoch 1, in checkpoint form a checkpoint and an empty log behind it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random

from kraftd.log.disk import RealDisk
from kraftd.messages.leader_change_message import LeaderChangeMessage, Voter
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.register_broker_record import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata.metadata_version import MINIMUM_VERSION, partition_record_version
from kraftd.metadata.metadata_version import register_broker_record_version as broker_version
from kraftd.metadata_dir.files.checkpoint import CheckpointReader, CheckpointWriter
from kraftd.metadata_dir.files.meta_properties import read_meta_properties
from kraftd.metadata_dir.recovery import open_log
from kraftd.types import OffsetAndEpoch
from kraftd.wire.batch import ControlRecordType, build_batch, build_control_batch
from kraftd.wire.record_frame import VersionedRecord, encode_record, encode_records

EPOCH = 1
LATEST = 30  # 4.3-IV0
_BATCH_RECORDS = 9_000  # about a MiB


@dataclass(frozen=True)
class Shape:
    """The numbers of topics, partitions, replicas and brokers.

    topics_a_request is the number of topics that share one random choice of stripes: with 1 nearly every list
    of replicas differs.
    """

    topics: int = 100_000
    partitions: int = 10
    replicas: int = 3
    brokers: int = 100
    topics_a_request: int = 90
    seed: int = 1

    @property
    def record_count(self) -> int:
        return self.topics * (self.partitions + 1)


def directory_of(broker_id: int) -> bytes:
    """The id of a broker's only log directory."""
    return Random(-broker_id).randbytes(16)


def brokers(shape: Shape) -> Iterator[VersionedRecord]:
    """The registrations, unfenced, as in a checkpoint."""
    for broker_id in range(1, shape.brokers + 1):
        record = RegisterBrokerRecord(
            broker_id=broker_id,
            incarnation_id=b"incarnation  " + broker_id.to_bytes(3),
            broker_epoch=broker_id,
            end_points=[BrokerEndpoint("PLAINTEXT", "127.0.0.1", 1000 + broker_id, 0)],
            features=[BrokerFeature("metadata.version", MINIMUM_VERSION, LATEST)],
            fenced=False,
            log_dirs=(directory_of(broker_id),),
        )
        yield VersionedRecord(record, broker_version(LATEST))


def topics(shape: Shape, *, by_id: bool = False) -> Iterator[VersionedRecord]:
    """Every topic with its partitions: in order of creation, or by id as in a checkpoint."""
    random = Random(shape.seed)
    ids = [(random.randbytes(16), number) for number in range(shape.topics)]
    if by_id:
        ids.sort()
    version = partition_record_version(LATEST)
    directory = {broker_id: directory_of(broker_id) for broker_id in range(1, shape.brokers + 1)}
    ring = list(range(1, shape.brokers + 1))
    stripes: dict[int, list[int]] = {}
    for topic_id, number in ids:
        yield VersionedRecord(TopicRecord(f"topic-{number:06d}", topic_id), 0)
        request = number // shape.topics_a_request
        order = stripes.get(request)
        if order is None:
            order = stripes[request] = Random(shape.seed << 32 | request).sample(ring, len(ring)) * 2
        first = number % shape.topics_a_request * shape.partitions
        for index in range(shape.partitions):
            at = (first + index) % shape.brokers
            replicas = tuple(order[at : at + shape.replicas])
            directories = tuple([directory[broker_id] for broker_id in replicas])
            record = PartitionRecord(
                index, topic_id, replicas, replicas, (), (), replicas[0], 0, 0, 0, directories
            )
            yield VersionedRecord(record, version)


def fill(
    directory: Path, shape: Shape, *, as_checkpoint: bool = False, now_ms: int = 1_700_000_000_000
) -> int:
    """Write all records into a directory that is formatted and still empty; return their number.

    Raises StorageError, FileNotFoundError.
    """
    disk = RealDisk()
    partition_directory = f"{directory}/__cluster_metadata-0"
    bootstrap = list(CheckpointReader(disk, f"{directory}/bootstrap.checkpoint").values())
    values = [bytes(value) for batch in bootstrap for value in batch]
    values += map(encode_record, brokers(shape))
    if as_checkpoint:
        return _write_checkpoint(partition_directory, shape, values, now_ms)
    properties = read_meta_properties(disk, str(directory))
    assert properties is not None and properties.node_id is not None
    log = open_log(disk, partition_directory).log
    leader = LeaderChangeMessage(leader_id=properties.node_id, voters=[Voter(properties.node_id)])
    log.append(build_control_batch([(ControlRecordType.LEADER_CHANGE, leader, 0)], 0, EPOCH, now_ms))
    log.append(build_batch(values, log.log_end, EPOCH, now_ms))
    records = topics(shape)
    while some := list(islice(records, _BATCH_RECORDS)):
        log.append(build_batch(encode_records(some), log.log_end, EPOCH, now_ms))
        log.sync()
    end = log.log_end
    log.close()
    return end


def _write_checkpoint(partition_directory: str, shape: Shape, values: list[bytes], now_ms: int) -> int:
    disk = RealDisk()
    first = CheckpointReader(disk, f"{partition_directory}/00000000000000000000-0000000000.checkpoint")
    end = 1 + len(values) + shape.record_count
    writer = CheckpointWriter(
        disk,
        partition_directory,
        OffsetAndEpoch(end, EPOCH),
        last_contained_log_timestamp_ms=now_ms,
        now_ms=now_ms,
        kraft_version=first.header.kraft_version,
        voters=first.header.voters,
    )
    writer.append(values)
    records = topics(shape, by_id=True)
    while some := list(islice(records, _BATCH_RECORDS // 4)):
        writer.append(encode_records(some))
    writer.freeze()
    return end


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.million", description=__doc__)
    parser.add_argument("directory", type=Path, help="formatted by kraftd format --standalone")
    parser.add_argument("--form", choices=("log", "checkpoint"), default="log")
    for name in ("topics", "partitions", "replicas", "brokers", "topics_a_request", "seed"):
        default = getattr(Shape(), name)
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default, metavar=str(default))
    options = vars(parser.parse_args())
    directory, form = options.pop("directory"), options.pop("form")
    began = time.monotonic()
    count = fill(directory, Shape(**options), as_checkpoint=form == "checkpoint")
    print(f"{count} records in {form} form in {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
