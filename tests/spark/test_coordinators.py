"""The tables of coordinators: commits and their transactions, lag, rebalances, replicas, and wrong input.

They are compared with the answers of a broker, and with what Kafka's own classes decode.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kraftd.groups.records import CoordinatorRecord, encode_record, group_record, offset_record
from kraftd.groups.transactions.records import expired_record, transaction_record
from kraftd.groups.transactions.states import COMPLETE_ABORT, ONGOING, PREPARE_ABORT
from kraftd.groups.transactions.transaction import Transaction
from kraftd.log.offset_checkpoint import HIGH_WATERMARKS, encode_offsets
from kraftd.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from kraftd.messages.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue
from kraftd.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kraftd.messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kraftd.messages.group_metadata_value import GroupMetadataValue, MemberMetadata
from kraftd.messages.offset_commit_value import OffsetCommitValue
from kraftd.spark import tables
from kraftd.spark.coordinators.choice import OF_GROUPS, OF_TRANSACTIONS
from kraftd.spark.main import main
from testkit.cluster import random_uuid
from testkit.java import tools
from testkit.keyed_batches import keyed_batch, marker_batch
from testkit.node import CombinedNode
from testkit.process import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = list[dict[str, Any]]
OFFSETS, STATE = "__consumer_offsets", "__transaction_state"


class BrokerDirectory:
    """A broker's log.dir; the high watermark of each partition is its end unless it is set."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.marks: dict[tuple[str, int], int] = {}

    def write(
        self, topic: str, partition: int, *batches: bytes, end: int | None = None, epoch: int = 0
    ) -> None:
        folder = self.path / f"{topic}-{partition}"
        folder.mkdir(parents=True)
        (folder / f"{0:020d}.log").write_bytes(b"".join(batches))
        (folder / "leader-epoch-checkpoint").write_text(f"0\n1\n{epoch} 0\n")
        if end is not None:
            self.marks[topic, partition] = end
        (self.path / HIGH_WATERMARKS).write_bytes(encode_offsets(self.marks.items()))


def commit(offset: int, at_ms: int, group: str = "g") -> CoordinatorRecord:
    return offset_record(group, "t", 0, OffsetCommitValue(offset, 3, "m", at_ms))


def batch(at: int, at_ms: int, *records: CoordinatorRecord, producer: int = -1) -> bytes:
    return keyed_batch(
        [encode_record(one) for one in records], at, 0, at_ms, producer, 0 if producer >= 0 else -1
    )


def data(*times_ms: int) -> list[bytes]:
    """Batches of ten records."""
    return [keyed_batch([(b"k", b"v")] * 10, 10 * at, 0, time) for at, time in enumerate(times_ms)]


def run(output: Path, *words: object) -> str:
    inputs = [str(word) for word in words]
    done = CliRunner().invoke(main, ["tables", "--output", str(output), *inputs])
    assert done.exit_code == 0, done.output
    return done.output


def read(output: Path, name: str) -> Rows:
    rows: Rows = (
        ds.dataset(str(output / name), format="parquet", exclude_invalid_files=True).to_table().to_pylist()
    )
    return sorted(
        rows, key=lambda row: (row["coordinator_partition"], row.get("offset", row.get("last_offset")))
    )


def picked(rows: Rows, names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names.split()) for row in rows]


def test_commits_have_their_outcome_and_the_lag_of_their_time(tmp_path: Path) -> None:
    broker = BrokerDirectory(tmp_path / "b")
    broker.write("t", 0, *data(100, 200, 300), end=30)
    broker.write(
        OFFSETS, 1,
        batch(0, 150, commit(4, 149)),
        batch(1, 210, commit(12, 210), producer=7),
        batch(2, 220, commit(15, 220), producer=8),
        marker_batch(3, 7, 0, is_commit=True),
        marker_batch(4, 8, 0, is_commit=False),
        batch(5, 320, commit(20, 320), producer=7),
        batch(6, 330, commit(1, 330, "old")),
        batch(7, 340, offset_record("old", "t", 0, None)),
        batch(8, 350, commit(29, 350)),
        end=8,
    )  # fmt: skip
    run(tmp_path / "out", "--input", broker.path)
    assert {each.name for each in (tmp_path / "out").iterdir()} == set(OF_GROUPS)
    rows = read(tmp_path / "out", "offset_commits")
    assert picked(
        rows, "group_id committed_offset outcome producer_id log_end_offset lag lag_before offset"
    ) == [
        ("g", 4, "committed", None, 10, 6, None, 0),
        ("g", 12, "committed", 7, 20, 8, 16, 1),
        ("g", 15, "aborted", 8, 20, 5, 16, 2),
        ("g", 20, "pending", 7, 30, 10, 18, 5),
        ("old", 1, "committed", None, 30, 29, None, 6),
        ("old", None, "removed", None, 30, None, 29, 7),
    ]
    assert [int(row["commit_timestamp"].timestamp() * 1000) for row in rows[:1]] == [149]
    state = read(tmp_path / "out", "committed_offsets")
    assert picked(state, "group_id committed_offset committed_leader_epoch metadata lag offset") == [
        ("g", 12, 3, "m", 18, 1)
    ]
    run(
        tmp_path / "then",
        "--input",
        broker.path,
        "--as-of",
        "1970-01-01T00:00:00.215",
        "--tables",
        OF_GROUPS[1],
    )
    assert picked(read(tmp_path / "then", OF_GROUPS[1]), "committed_offset log_end_offset lag") == [
        (12, 20, 8)
    ]


def test_a_commit_of_a_transaction_replaces_no_later_one(tmp_path: Path) -> None:
    broker = BrokerDirectory(tmp_path / "b")
    broker.write(
        OFFSETS,
        0,
        batch(0, 1, commit(5, 1), producer=7),
        batch(1, 2, commit(9, 2)),
        marker_batch(2, 7, 0, True),
    )
    run(tmp_path / "out", "--input", broker.path)
    assert picked(read(tmp_path / "out", "committed_offsets"), "committed_offset lag") == [(9, None)]


def test_offsets_that_no_log_has_are_shown_with_a_lag_within_the_log(tmp_path: Path) -> None:
    """Brokers take any offset from a client."""
    broker = BrokerDirectory(tmp_path / "b")
    broker.write("t", 0, *data(100), end=10)
    offsets = (-(2**63), -2, 2**63 - 1)
    broker.write(OFFSETS, 0, *(batch(at, 110, commit(one, 110)) for at, one in enumerate(offsets)))
    run(tmp_path / "out", "--input", broker.path)
    found = read(tmp_path / "out", "offset_commits")
    assert picked(found, "committed_offset lag lag_before") == [
        (-(2**63), 10, None),
        (-2, 10, 10),
        (2**63 - 1, 0, 10),
    ]


def test_the_replica_of_the_latest_epoch_counts_up_to_the_highest_watermark(tmp_path: Path) -> None:
    stale, leader, follower = (BrokerDirectory(tmp_path / name) for name in ("stale", "leader", "follower"))
    batches = [batch(at, at, commit(at, at)) for at in range(5)]
    stale.write(OFFSETS, 0, batches[0], batch(1, 1, commit(99, 1)), end=1, epoch=1)
    leader.write(OFFSETS, 0, *batches, end=2, epoch=2)
    follower.write(OFFSETS, 0, *batches[:4], end=4, epoch=2)
    (leader.path / f"{OFFSETS}-1.{'0' * 32}-delete").mkdir()
    inputs = [word for one in (stale, leader, follower) for word in ("--input", one.path)]
    run(tmp_path / "out", *inputs)
    assert picked(read(tmp_path / "out", "offset_commits"), "committed_offset") == [(0,), (1,), (2,), (3,)]


def test_rebalances_of_both_protocols_have_the_members_that_joined_and_left(tmp_path: Path) -> None:
    def classic(generation: int, *members: str) -> CoordinatorRecord:
        rows = [MemberMetadata(one, client_id=f"c-{one}", client_host="/h") for one in members]
        return group_record("old", GroupMetadataValue("consumer", generation, "range", members[0], 0, rows))

    def member(name: str) -> CoordinatorRecord:
        value = ConsumerGroupMemberMetadataValue(client_id=f"c-{name}", client_host="/h")
        return CoordinatorRecord(ConsumerGroupMemberMetadataKey("new", name), value)

    def epoch(number: int) -> CoordinatorRecord:
        return CoordinatorRecord(ConsumerGroupMetadataKey("new"), ConsumerGroupMetadataValue(number))

    gone = CoordinatorRecord(ConsumerGroupMemberMetadataKey("new", "a"), None)
    broker = BrokerDirectory(tmp_path / "b")
    broker.write(
        OFFSETS, 0,
        batch(0, 1, classic(1, "x"), classic(2, "x", "y"), classic(2, "x", "y"), classic(3, "y")),
        batch(4, 2, member("a"), epoch(1), member("b"), epoch(2), gone, epoch(3)),
    )  # fmt: skip
    run(tmp_path / "out", "--input", broker.path / f"{OFFSETS}-0")
    rows = read(tmp_path / "out", "rebalances")
    assert picked(rows, "group_id group_type old_generation generation joined left member_count") == [
        ("old", "classic", None, 1, ["x"], [], 1),
        ("old", "classic", 1, 2, ["y"], [], 2),
        ("old", "classic", 2, 3, [], ["x"], 1),
        ("new", "consumer", None, 1, ["a"], [], 1),
        ("new", "consumer", 1, 2, ["b"], [], 2),
        ("new", "consumer", 2, 3, [], ["a"], 1),
    ]
    assert picked(read(tmp_path / "out", "groups"), "group_id generation member_count") == [
        ("old", 3, 1), ("new", 3, 1)
    ]  # fmt: skip


def test_transactions_go_from_begin_to_end(tmp_path: Path) -> None:
    first = Transaction(
        7, producer_epoch=1, timeout_ms=60_000, state=ONGOING, start_ms=100, last_update_ms=100
    )
    states: list[tuple[int, CoordinatorRecord]] = []

    def put(at_ms: int, name: str, **fields: Any) -> None:
        known = {each: getattr(first, each) for each in first.__struct_fields__}
        states.append((at_ms, transaction_record(name, Transaction(**(known | fields)), 2)))

    put(100, "a", partitions=frozenset({("t", 0)}))
    put(130, "a", partitions=frozenset({("t", 0), ("t", 1)}))
    put(150, "a", state=PREPARE_ABORT, partitions=frozenset({("t", 0), ("t", 1)}))
    put(170, "a", state=COMPLETE_ABORT)
    put(180, "compacted", state=COMPLETE_ABORT)
    put(200, "open", start_ms=190)
    states.append((210, expired_record("compacted")))
    broker = BrokerDirectory(tmp_path / "b")
    broker.write(STATE, 2, *(batch(at, time, record) for at, (time, record) in enumerate(states)))
    run(tmp_path / "out", "--input", broker.path)
    assert {each.name for each in (tmp_path / "out").iterdir()} == set(OF_TRANSACTIONS)
    rows = read(tmp_path / "out", "transactions")
    assert picked(
        rows, "transactional_id outcome start_timestamp_ms decided_ms completed_ms duration_ms"
    ) == [
        ("a", "aborted", 100, 150, 170, 70),
        ("compacted", "aborted", 100, None, 180, 80),
        ("open", "ongoing", 190, None, None, None),
    ]
    assert rows[0]["partitions"] == [{"topic_name": "t", "partition_id": index} for index in (0, 1)]
    ids = read(tmp_path / "out", "transactional_ids")
    assert picked(ids, "transactional_id state") == [("a", "CompleteAbort"), ("open", "Ongoing")]


def test_what_has_no_such_tables_is_refused(tmp_path: Path) -> None:
    broker = BrokerDirectory(tmp_path / "b")
    broker.write(OFFSETS, 0, batch(0, 1, commit(5, 1)), batch(1, 2, commit(6, 2)))
    segment = broker.path / f"{OFFSETS}-0" / f"{0:020d}.log"
    whole = segment.read_bytes()
    words = ["tables", "--input", str(broker.path), "--output", str(tmp_path / "out")]
    for damage, options, text in (
        (whole, ["--tables", "transactions"], "no input has the partitions"),
        (whole, ["--tables", "groups", "--mode", "permissive"], "leave --mode permissive out"),
        (whole, ["--tables", "groups", "--format", "delta"], "written as Parquet"),
        (whole, ["--tables", "groups", "--as-of", "0"], "give a time"),
        (whole[:-1] + b"\x7f", [], f"{segment}: byte {len(whole) // 2}: "),
    ):
        segment.write_bytes(damage)
        done = CliRunner().invoke(main, [*words, *options])
        assert done.exit_code == 1 and text in done.stderr, done.output
    segment.write_bytes(whole[:-1])  # a torn tail, as a writer at work leaves it
    run(tmp_path / "out", "--input", broker.path)
    assert picked(read(tmp_path / "out", "offset_commits"), "committed_offset") == [(5,)]
    (broker.path / HIGH_WATERMARKS).write_text("0\n2\nnonsense\n")
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1 and f"{HIGH_WATERMARKS}: line 3 is malformed" in done.stderr, done.output


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A copy of a broker's directory with groups of both protocols and transactions, and its own answers."""
    home = tmp_path_factory.mktemp("groups")
    settings = {"transaction.state.log.replication.factor": 1, "transaction.state.log.min.isr": 1}
    node = CombinedNode("kraftd", home / "node", {**settings, "transaction.state.log.num.partitions": 2})
    node.format(random_uuid(), "--standalone")
    node.start()
    try:
        node.wait_ready()
        servers = {"bootstrap.servers": node.bootstrap}
        admin = AdminClient(servers)
        for future in admin.create_topics([NewTopic("in", 2, 1), NewTopic("out", 1, 1)]).values():
            future.result()
        producer = Producer({**servers, "transactional.id": "mover"})
        producer.init_transactions(30)
        for number, ends in enumerate((producer.commit_transaction, producer.abort_transaction, None)):
            producer.begin_transaction()
            producer.produce("out", b"v")
            for protocol in ("classic", "consumer") if number == 0 else ("classic",):
                consumer = Consumer({**servers, "group.id": protocol, "group.protocol": protocol})
                consumer.subscribe(["in"])
                wait_until(
                    lambda consumer=consumer: consumer.poll(0.1) or consumer.assignment(), "it has joined"
                )
                consumer.commit(offsets=[TopicPartition("in", 1, 10 + number)], asynchronous=False)
                place = [TopicPartition("in", 0, number)]
                producer.send_offsets_to_transaction(place, consumer.consumer_group_metadata(), 30)
                consumer.close()
            producer.flush()
            if ends is not None:
                ends(30)
        answers = {
            group: admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result()
            for group in ("classic", "consumer")
        }
        described = admin.describe_consumer_groups(list(answers))
        states = {group: future.result().state.name for group, future in described.items()}
        node.stop()
        shutil.copytree(node.data, home / "copy")
    finally:
        node.kill()
    yield (
        home / "copy",
        {
            "offsets": {
                (group, one.topic, one.partition): one.offset
                for group, answer in answers.items()
                for one in answer.topic_partitions
            },
            "states": states,
        },
    )


@pytest.mark.spark
@pytest.mark.kafka
def test_a_real_brokers_groups_and_transactions_are_those_that_kafkas_classes_read(
    copied: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    path, answers = copied
    names = ",".join((*OF_GROUPS, *OF_TRANSACTIONS))
    run(tmp_path, "--input", path, "--tables", names)
    committed = read(tmp_path, "committed_offsets")
    assert answers["offsets"] == {
        (row["group_id"], row["topic_name"], row["partition_id"]): row["committed_offset"]
        for row in committed
    }
    assert answers["states"] == {
        row["group_id"]: "EMPTY" if row["member_count"] == 0 else "STABLE" for row in read(tmp_path, "groups")
    }
    records = list(kafkas_records(path, OFFSETS, "--offsets-decoder"))
    commits = [one for one in records if one["type"] == "1" and one["value"] is not None]
    assert commits and [
        (
            one["partition"],
            one["offset"],
            one["key"]["group"],
            one["value"]["offset"],
            one["value"]["commitTimestamp"],
        )
        for one in commits
    ] == picked(
        [row for row in read(tmp_path, "offset_commits") if row["outcome"] != "removed"],
        "coordinator_partition offset group_id committed_offset commit_timestamp_ms",
    )
    outcomes = {row["outcome"] for row in read(tmp_path, "offset_commits")}
    assert outcomes == {"committed", "aborted", "pending"}
    rebalances = [
        (one["partition"], one["offset"], one["value"].get("generation", one["value"].get("epoch")))
        for one in records
        if one["type"] in ("2", "3") and one["value"] is not None
    ]
    assert rebalances == picked(read(tmp_path, "rebalances"), "coordinator_partition offset generation")
    states = list(kafkas_records(path, STATE, "--transaction-log-decoder"))
    statuses = [one["value"]["transactionStatus"] for one in states]
    assert picked(read(tmp_path, "transactions"), "transactional_id outcome") == [
        ("mover", "committed"), ("mover", "aborted"), ("mover", "ongoing")
    ] and (statuses.count(4), statuses.count(5), statuses[-1]) == (1, 1, 1)  # fmt: skip
    (last,) = read(tmp_path, "transactional_ids")
    assert last["start_timestamp_ms"] == states[-1]["value"]["transactionStartTimestampMs"]


@pytest.mark.spark
@pytest.mark.kafka
def test_a_notebook_has_these_tables_beside_those_of_the_metadata(
    spark: SparkSession, copied: tuple[Path, dict[str, Any]]
) -> None:
    path, answers = copied
    with tables(spark, str(path)) as found:
        found.create_views("committed_offsets", "topics")
        rows = spark.sql(
            "SELECT group_id, topic_name, partition_id, committed_offset, partition_count "
            "FROM committed_offsets JOIN topics ON topics.name = topic_name"
        ).collect()
        assert {tuple(row[:3]): row[3] for row in rows} == answers["offsets"]
        assert {row.outcome for row in found["transactions"].collect()} == {"committed", "aborted", "ongoing"}
    with tables(spark, str(path), as_of=5) as found:
        assert "groups" not in found


def kafkas_records(path: Path, topic: str, option: str) -> Iterator[Mapping[str, Any]]:
    """What Kafka's dump-log says of each record of a topic's partitions, markers left out."""
    files = sorted(path.glob(f"{topic}-*/*.log"))
    for file in (one for one in files if one.stat().st_size):
        partition = int(file.parent.name.rpartition("-")[2])
        for line in tools().run("dump-log", option, "--files", file).check().out.splitlines():
            found = re.match(r"\| offset: (\d+) .*? key: (\{.*?\}\}) payload: (.*)", line)
            if found:
                key, value = json.loads(found[2]), found[3]
                yield {
                    "partition": partition, "offset": int(found[1]), "type": key["type"], "key": key["data"],
                    "value": json.loads(value)["data"] if value.startswith("{") else None,
                }  # fmt: skip
