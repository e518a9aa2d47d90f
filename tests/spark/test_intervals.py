"""Intervals in which partitions were unhealthy, and the spans of the brokers in them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.spark.tables.intervals import MIN_ISR
from tests.spark.logs import MS_PER_RECORD, LogDirectory
from tests.spark.test_tables import rows_of, timeline_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TOPIC = b"t" * 16


def test_each_broker_has_its_own_spans_in_an_interval(spark: SparkSession, tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path / "node")
    three, directories = (1, 2, 3), (b"d" * 16,) * 3
    created = PartitionRecord(0, TOPIC, three, three, (), (), 1, 0, 0, 0, directories)
    directory.append([TopicRecord("orders", TOPIC), created])
    # 2: 3 is missing; 3: 2 and 3 are; 4: only 2 is; 5: 3 again; 6: none. Broker 4 is added meanwhile.
    more = {"replicas": (1, 2, 3, 4), "adding_replicas": (4,), "directories": (b"d" * 16,) * 4}
    isrs = [(1, 2), (1,), (1, 3), (1, 2), three]
    for at, isr in enumerate(isrs):
        change = PartitionChangeRecord(0, TOPIC, isr=isr, **(more if at == 2 else {}))
        assert directory.append([change]) == at + 2
    timeline = timeline_of(spark, directory.path)
    (interval,) = rows_of(timeline, "partition_intervals")
    assert (interval["kind"], interval["start_offset"], interval["end_offset"]) == ("under_replicated", 2, 6)
    assert interval["duration_ms"] == 4 * MS_PER_RECORD and interval["brokers"] == [2, 3]
    spans = [(span["broker_id"], span["start_offset"], span["end_offset"]) for span in interval["spans"]]
    assert spans == [(2, 3, 5), (3, 2, 4), (3, 5, 6)]
    totals = {(row["scope"], row["name"]): row for row in rows_of(timeline, "interval_totals")}
    assert totals["topic", "orders"]["duration_ms"] == 4 * MS_PER_RECORD
    durations = {name: totals["broker", name]["duration_ms"] for name in ("2", "3")}
    assert durations == {"2": 2 * MS_PER_RECORD, "3": 3 * MS_PER_RECORD}
    assert (
        totals["broker", "3"]["intervals"] == 2 and totals["broker", "3"]["longest_ms"] == 2 * MS_PER_RECORD
    )
    assert ("broker", "4") not in totals


def test_min_isr_is_that_of_the_time_and_at_most_the_replicas(spark: SparkSession, tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path / "node")
    two, directories = (1, 2), (b"d" * 16,) * 2
    created = PartitionRecord(0, TOPIC, two, two, (), (), 1, 0, 0, 0, directories)
    directory.append([TopicRecord("orders", TOPIC), created])
    messages = [
        ConfigRecord(4, "", MIN_ISR, "3"),  # 2: no more than both replicas, which are in sync
        PartitionChangeRecord(0, TOPIC, isr=(1,)),  # 3
        ConfigRecord(2, "orders", MIN_ISR, "1"),  # 4: the topic's value, which one replica fulfils
        ConfigRecord(4, "", MIN_ISR, "2"),  # 5
        ConfigRecord(2, "orders", MIN_ISR, None),  # 6: the cluster's again
        RemoveTopicRecord(TOPIC),  # 7
    ]
    for message in messages:
        directory.append([message])
    intervals = rows_of(timeline_of(spark, directory.path), "partition_intervals")
    found = sorted((row["kind"], row["start_offset"], row["end_offset"]) for row in intervals)
    assert found == [("under_min_isr", 3, 4), ("under_min_isr", 6, 7), ("under_replicated", 3, 7)]
