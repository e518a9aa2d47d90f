"""Validation of valid histories, its first finding for each kind of invalid one, and the report."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.producer_ids_record import ProducerIdsRecord
from kraftd.messages.register_broker_record import RegisterBrokerRecord
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.messages.unfence_broker_record import UnfenceBrokerRecord
from kraftd.metadata.image import Image
from kraftd.spark.inputs.layout import find_replicas
from kraftd.spark.report.page import make_page
from kraftd.spark.validation.comparisons import (
    checkpoint_difference,
    comparable_checkpoints,
    epochs_go_back,
    replica_difference,
)
from kraftd.spark.validation.invariants import INVARIANTS, first_break
from kraftd.wire.batch import iter_batches, records
from kraftd.wire.message import Message
from kraftd.wire.record_frame import decode_record
from tests.spark.logs import LogDirectory
from tests.spark.test_tables import rows_of, timeline_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
TOPIC = b"a topic's own id"


def broker(broker_id: int, epoch: int) -> list[Message]:
    """A broker with its directories in another order than a checkpoint keeps."""
    directories = (b"second directory", b"another one's id")
    return [
        RegisterBrokerRecord(
            broker_id=broker_id,
            broker_epoch=epoch,
            incarnation_id=bytes([broker_id]) * 16,
            log_dirs=directories,
        ),
        UnfenceBrokerRecord(id=broker_id, epoch=epoch),
    ]


def part(index: int, replicas: tuple[int, ...]) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index,
        topic_id=TOPIC,
        replicas=replicas,
        isr=replicas,
        leader=replicas[0],
        leader_epoch=0,
        partition_epoch=0,
    )


def sound(path: Path) -> LogDirectory:
    """Two brokers, two partitions and a producer id block; a checkpoint of them, and a later record."""
    directory = LogDirectory(path)
    directory.elect(1, 1)
    records = [FeatureLevelRecord("metadata.version", 30), *broker(1, 2), *broker(2, 4)]
    records += [TopicRecord(name="t", topic_id=TOPIC)]
    records += [part(0, (1, 2)), part(1, (2, 1))]
    records.append(ProducerIdsRecord(broker_id=1, broker_epoch=2, next_producer_id=1000))
    directory.append(records)
    image = Image()
    for offset, message in enumerate(records, 1):
        image.apply(message, offset, 1)
    directory.snapshot(directory.end_offset, list(image.records()))
    directory.append([PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=(1,))])
    return directory


BREAKS: dict[str, tuple[list[Message], str]] = {
    "C3": (broker(1, 2)[:1], "epoch_before 2"),
    "C4 ISR": ([PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=(1, 7))], "isr [1, 7]"),
    "C4 leader": ([part(1, (2, 1))], "old_partition_epoch 0, partition_epoch 0"),
    "C5": (
        [
            RegisterBrokerRecord(broker_id=2, broker_epoch=50),
            PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=(1, 2)),
        ],
        "broker_id 2, fenced True",
    ),
    "C6": ([ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=1000)], "next_before 1000"),
    "C7": ([TopicRecord(name="t", topic_id=b"another topic id")], "name t"),
}


def test_a_valid_history_passes_every_check_and_gives_a_report(spark: SparkSession, tmp_path: Path) -> None:
    directory = sound(tmp_path / "a")
    timeline = timeline_of(spark, directory.path)
    assert {name: first_break(timeline, name) for name in INVARIANTS} == dict.fromkeys(INVARIANTS)
    assert epochs_go_back(timeline) is None
    (checkpoint,) = comparable_checkpoints(timeline)
    assert checkpoint_difference(timeline, checkpoint, pytest.fail) is None
    steps: list[str] = []
    page = make_page(timeline, steps.append)
    assert page.count("<svg") >= 3 and page.count("<section>") == len(steps) == 12
    assert "create topic" in page and "TOPIC t" in page and "under-replicated, at most 1" in page
    assert "http-equiv" not in page and "<script" not in page and "src=" not in page


@pytest.mark.parametrize("name", BREAKS)
def test_an_invalid_history_is_reported_with_its_first_offset(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    directory = sound(tmp_path / "a")
    records, detail = BREAKS[name]
    first = directory.append(records)
    timeline = timeline_of(spark, directory.path)
    (invariant,) = (each for each in INVARIANTS if each.startswith(name))
    found = first_break(timeline, invariant)
    assert found is not None and detail in found
    assert f"offset {first + len(records) - 1}:" in found


def test_a_checkpoint_that_contradicts_the_log_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    directory = sound(tmp_path / "a")
    (path,) = directory.partition.glob("*.checkpoint")
    end = int(path.name[:20])
    path.unlink()
    image = Image()
    records = [TopicRecord(name="t", topic_id=TOPIC), part(0, (1, 2)), part(1, (2, 1))]
    for offset, message in enumerate(records):
        image.apply(message, offset, 1)
    directory.snapshot(end, list(image.records()))
    timeline = timeline_of(spark, directory.path)
    (checkpoint,) = comparable_checkpoints(timeline)
    difference = checkpoint_difference(timeline, checkpoint, pytest.fail)
    assert difference is not None and "only the log has in brokers" in difference and str(path) in difference


def test_a_stale_config_of_a_checkpoint_is_noted_and_not_in_the_tables(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Topic t is deleted and created again, and a checkpoint keeps a config of the first one."""
    directory = sound(tmp_path / "a")
    stale = [ConfigRecord(2, "t", name, "1") for name in ("retention.ms", "segment.ms")]
    removed = directory.append([*stale, RemoveTopicRecord(TOPIC), TopicRecord("t", b"another topic id")]) + 2
    again = directory.append([ConfigRecord(2, "t", "retention.ms", "2")])
    image = Image()
    messages = [decode_record(bytes(record.value or b""))[0]
                for batch in iter_batches(directory.log.read_bytes()) if not batch.header.is_control
                for record in records(batch)]  # fmt: skip
    for offset, message in enumerate([*messages, stale[1]], 1):
        image.apply(message, offset, 1)
    directory.snapshot(directory.end_offset, list(image.records()))
    timeline = timeline_of(spark, directory.path)
    notes: list[str] = []
    newest = comparable_checkpoints(timeline)[-1]
    assert checkpoint_difference(timeline, newest, notes.append) is None
    (note,) = notes
    assert (
        f"stale config segment.ms=1 of topic t: the topic that had it was deleted at offset {removed}" in note
    )
    (config,) = rows_of(timeline, "configs")
    assert (config["name"], config["value"], config["changed_offset"]) == ("retention.ms", "2", again)


def test_replicas_that_differ_are_reported_with_the_offset(spark: SparkSession, tmp_path: Path) -> None:
    one = sound(tmp_path / "a")
    shutil.copytree(one.path, tmp_path / "b")
    same, other = find_replicas([str(one.path), str(tmp_path / "b")])
    timeline = timeline_of(spark, one.path)
    assert replica_difference(timeline, [same, other], other) is None
    differing = LogDirectory(tmp_path / "c")
    differing.elect(1, 1)
    differing.append([TopicRecord(name="another", topic_id=TOPIC)])
    (third,) = find_replicas([str(differing.path)])
    difference = replica_difference(timeline, [same, third], third)
    assert difference == f"{differing.path}: offset 1: another record than in {one.path}"
