"""Every column of every table of random histories, compared with a naive replay (`truth`).

Of logs from offset 0, of logs that begin with a checkpoint, and as of offsets in between. The same tables
from the images of Kafka's own classes are compared with those from kraftd's.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kraftd.messages.abort_transaction_record import AbortTransactionRecord
from kraftd.messages.begin_transaction_record import BeginTransactionRecord
from kraftd.messages.end_transaction_record import EndTransactionRecord
from kraftd.metadata.image import Image
from kraftd.spark.inputs.layout import find_replica
from kraftd.spark.inputs.replicas import plan_log
from kraftd.spark.tables.catalog import NAMES, TABLES
from kraftd.spark.timeline import Timeline
from kraftd.wire.batch import decompressed, iter_batches, records
from kraftd.wire.message import Message
from kraftd.wire.record_frame import decode_record
from tests.spark.images import Rows, State, in_order, kafka_images, state_of
from tests.spark.logs import LogDirectory
from tests.spark.test_tables import Story, rows_of, timeline_of
from tests.spark.truth import Step, Truth

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MARKERS = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)
NOT_HERE = ("records", "elections", "snapshots")  # these have tests of their own
IN_OTHER_WORDS = {"audit": ("resource", "detail"), "leader_moves": ("cause",)}


def committed(path: Path) -> list[tuple[int, int, int, int, Message]]:
    """Offset, epoch, timestamp, batch and message of the records of a log, aborted transactions left out."""
    found: list[tuple[int, int, int, int, Message]] = []
    open_: list[tuple[int, int, int, int, Message]] | None = None
    for split in plan_log(find_replica(str(path))).splits:
        for batch in iter_batches(Path(split.path).read_bytes()[split.start : split.end]):
            header = batch.header
            for record in [] if header.is_control else records(decompressed(batch)):
                message = decode_record(bytes(record.value or b""))[0]
                row = (record.offset, header.leader_epoch, record.timestamp_ms, header.base_offset, message)
                if isinstance(message, BeginTransactionRecord):
                    open_ = []
                elif isinstance(message, EndTransactionRecord):
                    found += open_ or []
                    open_ = None
                elif isinstance(message, AbortTransactionRecord):
                    open_ = None
                else:
                    (found if open_ is None else open_).append(row)
    return found


def our_states(messages: list[Message]) -> list[State]:
    image, found = Image(), []
    for offset, message in enumerate(messages):
        image.apply(message, offset, 1)
        found.append(state_of(image))
    return found


def newest_ms(path: Path) -> int:
    """The time of the last record, whether or not it is committed."""
    batches = [batch for log in sorted(path.glob("*/*.log")) for batch in iter_batches(log.read_bytes())]
    return max(batch.header.max_timestamp_ms for batch in batches)


def truth_of(path: Path, base: State | None = None, states: list[State] | None = None) -> Truth:
    """The truth of a log, with the state of the checkpoint at which it begins, as old as the first record."""
    rows = committed(path)
    states = our_states([row[-1] for row in rows]) if states is None else states
    first = [] if base is None else [Step(-1, 0, rows[0][2], -1, None, base)]
    steps = [Step(*row, state) for row, state in zip(rows, states, strict=True)]
    return Truth(first + steps, newest_ms(path))


def tables_of(truth: Truth) -> dict[str, Rows]:
    return {
        "topics": truth.topics(),
        "topic_history": truth.topic_history(),
        "partitions": truth.state("partitions", "changed_offset"),
        "partition_history": truth.history("partitions"),
        "partition_changes": truth.partition_changes(),
        "isr_history": truth.isr_history(),
        "reassignments": truth.reassignments(),
        "brokers": truth.brokers(),
        "broker_history": truth.broker_history(),
        "broker_sessions": truth.broker_sessions(),
        "configs": truth.state("configs", "changed_offset"),
        "config_history": truth.history("configs"),
        "acls": truth.state("acls", "created_offset"),
        "acl_history": truth.history("acls"),
        "features": truth.state("features", "changed_offset"),
        "quotas": truth.state("quotas", "changed_offset"),
        "quota_history": truth.history("quotas"),
        "scram_users": truth.state("scram_users", "changed_offset"),
        "producer_ids": truth.producer_ids(),
        "partition_intervals": truth.partition_intervals(),
        "interval_totals": truth.interval_totals(),
        "leader_moves": truth.leader_moves(),
        "isr_churn": truth.isr_churn(),
        "audit": truth.audit(),
    }


def plain(name: str, rows: Rows) -> Rows:
    """The rows of a table, without its TIMESTAMPs, once they are seen to equal their milliseconds."""
    words = IN_OTHER_WORDS.get(name, ())
    return [
        without_timestamps({key: value for key, value in row.items() if key not in words}) for row in rows
    ]


def without_timestamps(row: dict[str, Any]) -> dict[str, Any]:
    kept = dict(row)
    for name in [name for name in row if f"{name}_ms" in row]:
        at, ms = kept.pop(name), row[f"{name}_ms"]
        assert (at is None) == (ms is None) and (at is None or int(at.timestamp() * 1000) == ms), name
    spans = kept.get("spans")
    return kept if spans is None else kept | {"spans": [without_timestamps(span) for span in spans]}


def compare(found: dict[str, Rows], truth: Truth) -> None:
    """Check that these tables equal the truth."""
    expected = tables_of(truth)
    assert set(expected) == set(TABLES) - set(NOT_HERE)
    wrong = []
    for name, rows in expected.items():
        ours, rows = in_order(found[name]), in_order(rows)
        if ours != rows:
            missing = [row for row in rows if row not in ours][:2]
            extra = [row for row in ours if row not in rows][:2]
            wrong.append(f"{name}: {len(ours)} rows for {len(rows)}; missing {missing}; extra {extra}")
    assert not wrong, "\n".join(wrong)


def behind_a_checkpoint(home: Path, seed: int) -> tuple[Path, Truth]:
    """The second half of a random history behind a checkpoint of the first half, and its truth."""
    story = Story(home / "whole", seed=seed)
    offset = story.quiet_offset(story.committed // 2)
    image = story.image(offset)
    short = LogDirectory(home / "short", start=offset + 1)
    short.epoch = 9
    short.snapshot(offset + 1, list(image.records()))
    later = [message for at, message in story.messages.items() if at > offset]
    while later:
        short.append(later[:4])
        later = later[4:]
    states = []
    for *_, message in committed(short.path):
        image.apply(message, image.offset + 1, 1)
        states.append(state_of(image))
    return short.path, truth_of(short.path, state_of(story.image(offset)), states)


def by_spark(timeline: Timeline) -> dict[str, Rows]:
    return {name: plain(name, rows_of(timeline, name)) for name in NAMES}


@pytest.mark.spark
def test_every_table_of_a_random_history_is_that_of_a_naive_replay(
    spark: SparkSession, tmp_path: Path
) -> None:
    story = Story(tmp_path / "node", seed=23)
    truth = truth_of(story.directory.path)
    compare(by_spark(timeline_of(spark, story.directory.path)), truth)


@pytest.mark.spark
def test_every_table_of_a_log_behind_a_checkpoint_is_that_of_a_naive_replay(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, truth = behind_a_checkpoint(tmp_path, seed=24)
    compare(by_spark(timeline_of(spark, path)), truth)


@pytest.mark.kafka
@pytest.mark.parametrize("seed", [23, 24, 25])
def test_the_naive_replay_of_kafkas_own_images_gives_the_same_tables(tmp_path: Path, seed: int) -> None:
    story = Story(tmp_path / "node", seed=seed)
    messages = [row[-1] for row in committed(story.directory.path)]
    theirs = [state_of(image) for image in kafka_images(messages)]
    by_kafka = tables_of(truth_of(story.directory.path, states=theirs))
    for name, rows in tables_of(truth_of(story.directory.path)).items():
        assert in_order(rows) == in_order(by_kafka[name]), name
