"""The tables of random histories at several offsets, compared with kraftd's own image there."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from kraftd.messages.abort_transaction_record import AbortTransactionRecord
from kraftd.messages.access_control_entry_record import AccessControlEntryRecord
from kraftd.messages.begin_transaction_record import BeginTransactionRecord
from kraftd.messages.client_quota_record import ClientQuotaRecord, EntityData
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata.image import Image
from kraftd.spark.inputs.layout import find_replicas
from kraftd.spark.inputs.replicas import committed_log
from kraftd.spark.live import decode_values
from kraftd.spark.replay.catalog import table as replayed_table
from kraftd.spark.replay.source import Replay
from kraftd.spark.tables.catalog import table
from kraftd.spark.timeline import Timeline
from kraftd.types import uuid_text
from kraftd.wire.message import Message
from tests.metadata.histories import history
from tests.spark.images import Rows, expected_rows, in_order
from tests.spark.logs import MS_PER_RECORD, START_MS, LogDirectory, framed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


class Story:
    """A random history in a directory: batches of up to five records, three segments, two elections.

    Its last records are in an aborted transaction and in one that is still open.
    """

    def __init__(self, path: Path, seed: int) -> None:
        random = Random(seed)
        self.directory = LogDirectory(path)
        self.messages: dict[int, Message] = {}
        records = history(seed, 400)
        self.directory.elect(1, 1)
        while records:
            size = random.randint(1, 5)
            chunk, records = records[:size], records[size:]
            first = self.directory.append(chunk)
            self.messages |= {first + at: message for at, message in enumerate(chunk)}
            if len(records) in range(150, 155) or len(records) in range(300, 305):
                self.directory.roll()
                self.directory.elect(1, self.directory.epoch + 1)
        self.committed = self.directory.end_offset - 1
        ghost = TopicRecord(name="ghost", topic_id=b"ghost of a topic")
        self.directory.append([BeginTransactionRecord(), ghost, AbortTransactionRecord()])
        self.directory.append([BeginTransactionRecord(), ghost])
        self.directory.index()

    def image(self, offset: int) -> Image:
        """The state as of an offset."""
        image = Image()
        for at, message in self.messages.items():
            if at <= offset:
                image.apply(message, at, 1)
        return image

    def quiet_offset(self, near: int) -> int:
        """The first offset from there on at which no transaction is open."""
        while self.image(near).in_transaction:
            near += 1
        return near


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    return Story(tmp_path_factory.mktemp("story") / "node", seed=11)


def timeline_of(
    spark: SparkSession, path: Path, as_of: int | None = None, staged: Path | None = None
) -> Timeline:
    """The timeline of a directory, decoded once into Parquet beside it."""
    log = committed_log(find_replicas([str(path)]))
    timeline = Timeline(spark, log, log.end_offset if as_of is None else as_of + 1)
    timeline.stage(str(staged) if staged else f"{path}-staged-{as_of}")
    return timeline


@pytest.fixture(scope="module")
def whole(spark: SparkSession, story: Story) -> Timeline:
    """The timeline of the whole story."""
    return timeline_of(spark, story.directory.path)


def rows_of(timeline: Timeline, name: str) -> Rows:
    """The rows of a table by Spark, once the replay without Spark is seen to give the same."""
    replicas = [timeline.source.replica]
    found = table(name, timeline, replicas)
    rows = [row.asDict(recursive=True) for row in found.collect()]
    replayed = replayed_table(name, Replay(timeline), replicas)
    theirs = to_arrow_schema(found.schema, timezone="UTC")
    assert _columns(theirs) == _columns(replayed.schema), name
    assert in_order(_with_seconds(replayed.to_pylist())) == in_order(_with_seconds(rows)), name
    return rows


def _columns(schema: pa.Schema) -> list[tuple[str, str]]:
    """Names and types; columns are nullable as they are written."""
    return [(one.name, str(one.type).replace(" not null", "").replace("item:", "element:")) for one in schema]


def _with_seconds(value: Any) -> Any:
    """Rows whose times are numbers, whatever their time zone is."""
    if isinstance(value, list):
        return [_with_seconds(one) for one in value]
    if isinstance(value, dict):
        return {key: _with_seconds(one) for key, one in value.items()}
    return value.timestamp() if isinstance(value, datetime) else value


def assert_state(timeline: Timeline, image: Image) -> None:
    """Check that the state tables equal the image; kraft.version is the quorum's and in no image."""
    for name, expected in expected_rows(image).items():
        columns = list(expected[0]) if expected else []
        rows = [row for row in rows_of(timeline, name) if row.get("name") != "kraft.version"]
        found = [{column: row[column] for column in columns} for row in rows]
        assert in_order(found) == in_order(expected), name


def test_state_tables_equal_the_image_at_an_offset(spark: SparkSession, story: Story) -> None:
    offset = story.quiet_offset(int(story.committed * 0.45))
    assert all(expected_rows(story.image(offset)).values())
    assert_state(timeline_of(spark, story.directory.path, offset), story.image(offset))


def test_aborted_and_open_transactions_are_records_and_not_state(whole: Timeline, story: Story) -> None:
    assert "ghost" not in {row["name"] for row in rows_of(whole, "topics")}
    records = sorted(rows_of(whole, "records"), key=lambda row: row["offset"])
    assert [row["offset"] for row in records] == list(range(story.directory.end_offset))
    assert sum(row["name"] == "ghost" for row in records) == 2
    assert {row["timestamp"].timestamp() * 1000 - row["timestamp_ms"] for row in records} == {0}
    assert {row["offset"]: row["type"] for row in records if row["offset"] in story.messages} == {
        offset: type(message).__name__ for offset, message in story.messages.items()
    }


def test_the_log_before_a_checkpoint_has_the_offsets(spark: SparkSession, tmp_path: Path) -> None:
    """Once the log begins with offset 0, once within the records that the checkpoint replaces."""
    for start in (0, 3):
        directory = LogDirectory(tmp_path / f"from {start}", start=start)
        named = [TopicRecord(name=f"t{number}", topic_id=bytes([number]) * 16) for number in range(4)]
        acls = [AccessControlEntryRecord(id=bytes([number]) * 16, principal="User:u") for number in range(4)]
        quota = ClientQuotaRecord([EntityData("user", "u"), EntityData("client-id", None)], "rate", 1.0)
        messages: list[Message] = [
            *named,
            *acls,
            ConfigRecord(2, "t3", "retention.ms", "1"),
            quota,
            RemoveTopicRecord(named[2].topic_id),
        ]
        image = Image()
        for offset, message in enumerate(messages):
            image.apply(message, offset, 1)
        for message in messages[start:]:
            directory.append([message])
        directory.snapshot(len(messages), list(image.records()))
        directory.append([ConfigRecord(2, "t1", "retention.ms", "1")])
        timeline = timeline_of(spark, directory.path)

        def told(name: str, key: str, column: str, timeline: Timeline = timeline) -> dict[Any, int | None]:
            return {row[key]: row[column] for row in rows_of(timeline, name)}

        known = {f"t{number}": number if number >= start else None for number in (0, 1, 3)}
        assert told("topics", "name", "created_offset") == known
        times = {row["name"]: row["created_timestamp_ms"] for row in rows_of(timeline, "topics")}
        assert times == {name: None if at is None else START_MS + 1000 * at for name, at in known.items()}
        ids = {uuid_text(acl.id): offset for offset, acl in enumerate(acls, 4)}
        assert told("acls", "id", "created_offset") == ids
        assert told("configs", "resource_name", "changed_offset") == {"t3": 8, "t1": 11}
        assert told("quotas", "key", "changed_offset") == {"rate": 9}


def test_each_leader_of_the_quorum_is_a_row(whole: Timeline, story: Story) -> None:
    rows = sorted(rows_of(whole, "elections"), key=lambda row: row["offset"])
    assert [row["epoch"] for row in rows] == list(range(1, story.directory.epoch + 1))
    for row in rows:
        assert row["leader_id"] == 1 and row["voters"] == row["granting_voters"] == [1]
        assert row["timestamp_ms"] == START_MS + MS_PER_RECORD * row["offset"]


def test_values_from_the_kafka_connector_give_the_same_columns(spark: SparkSession, story: Story) -> None:
    messages = dict(list(story.messages.items())[:80])
    values = [(offset, START_MS + offset // 3, framed(message)) for offset, message in messages.items()]
    rows = spark.createDataFrame(values, "offset bigint, ms bigint, value binary")
    rows = rows.selectExpr("offset", "timestamp_millis(ms) AS timestamp", "value")
    live = {row["offset"]: row.asDict(recursive=True) for row in decode_values(rows).collect()}
    assert [live[offset]["type"] for offset in messages] == [
        type(each).__name__ for each in messages.values()
    ]
    assert {offset: row["timestamp_ms"] for offset, row in live.items()} == {
        offset: START_MS + offset // 3 for offset in messages
    }
    read = (
        spark.read.format("kraft")
        .load(str(story.directory.path))
        .where(f"offset <= {max(messages)}")
        .collect()
    )
    other = {"epoch", "batch_offset", "timestamp_ms", "timestamp", "damage"}
    for row in (row.asDict(recursive=True) for row in read if row["offset"] in messages):
        assert {key: value for key, value in row.items() if key not in other} == {
            key: value for key, value in live[row["offset"]].items() if key not in other
        }


def test_what_tables_share_is_written_for_the_second_that_needs_it(
    spark: SparkSession, story: Story, tmp_path: Path
) -> None:
    timeline = timeline_of(spark, story.directory.path, staged=tmp_path / "staged")
    replay = tmp_path / "staged" / "partition_replay"
    alone = table("partition_changes", timeline)
    assert not replay.exists()
    again = table("partition_changes", timeline)
    assert replay.exists()
    assert sorted(map(repr, again.collect())) == sorted(map(repr, alone.collect()))
