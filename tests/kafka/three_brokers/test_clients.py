"""Ordinary clients on three stock brokers: idempotent producers, groups of both protocols, transactions."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from testkit.cluster import Cluster

pytestmark = pytest.mark.kafka


def consumer(cluster: Cluster, group: str, **settings: object) -> Consumer:
    defaults = {"bootstrap.servers": cluster.bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    return Consumer({**defaults, **{key.replace("_", "."): value for key, value in settings.items()}})


def poll(source: Consumer, tries: int = 600) -> Iterator[Message]:
    """Messages as they come, for at most this many polls of 100 ms."""
    for _ in range(tries):
        message = source.poll(0.1)
        if message is not None and message.error() is None:
            yield message
    raise AssertionError(f"nothing more after {tries} polls")


def take(source: Consumer, count: int) -> list[Message]:
    messages = poll(source)
    return [next(messages) for _ in range(count)]


def produce(cluster: Cluster, topic: str, values: list[bytes], **settings: object) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, **settings})
    for value in values:
        producer.produce(topic, value, key=value)
    assert producer.flush(60) == 0


def test_an_idempotent_producer_writes_many_records_and_a_consumer_reads_all(
    three_brokers: Cluster,
) -> None:
    cluster, count = three_brokers, 250_000
    cluster.create_topic("many", partitions=3, replication_factor=3)
    report = cluster.tool(
        "producer-perf", "--topic", "many", "--num-records", count, "--record-size", 100,
        "--throughput", -1, "--command-property", "acks=all", "enable.idempotence=true", timeout_s=300,
    ).out  # fmt: skip
    assert f"{count} records sent" in report
    ends = cluster.tool("get-offsets", "--topic", "many").out.split()
    assert sum(int(line.rpartition(":")[2]) for line in ends) == count

    read = cluster.tool(
        "consumer-perf",
        "--topic",
        "many",
        "--num-records",
        count,
        "--group",
        "readers-of-many",
        timeout_s=300,
    ).out
    assert int(read.splitlines()[-1].split(", ")[4]) >= count, read
    cluster.tool("topics", "--delete", "--topic", "many")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_shares_partitions_and_its_offsets_survive_its_members(
    three_brokers: Cluster, protocol: str
) -> None:
    cluster, topic, group = three_brokers, f"shared-{protocol}", f"group-{protocol}"
    cluster.create_topic(topic, partitions=6, replication_factor=2)
    first = consumer(cluster, group, group_protocol=protocol)
    second = consumer(cluster, group, group_protocol=protocol)
    first.subscribe([topic])
    second.subscribe([topic])

    def both_assigned() -> bool:
        first.poll(0.1)
        second.poll(0.1)
        return len(first.assignment()) == 3 and len(second.assignment()) == 3

    cluster.wait_until(both_assigned, "three partitions each")
    second.close()
    cluster.wait_until(
        lambda: (first.poll(0.1), len(first.assignment()) == 6)[1], "all partitions to the first"
    )

    produce(cluster, topic, [f"{number}".encode() for number in range(300)])
    assert {message.value() for message in take(first, 300)} == {f"{n}".encode() for n in range(300)}
    first.commit(asynchronous=False)
    first.close()

    table = cluster.tool("consumer-groups", "--describe", "--group", group, "--offsets").out
    lags = [line.split()[5] for line in table.splitlines() if line.startswith(group)]
    assert lags == ["0"] * 6, table

    produce(cluster, topic, [b"later"])
    third = consumer(cluster, group, group_protocol=protocol)
    third.subscribe([topic])
    assert take(third, 1)[0].value() == b"later"
    third.close()


def test_a_share_group_hands_each_record_to_one_member(three_brokers: Cluster) -> None:
    cluster = three_brokers
    cluster.create_topic("shared-queue", partitions=1, replication_factor=3)
    cluster.tool(
        "configs", "--alter", "--entity-type", "groups", "--entity-name", "queue", "--add-config",
        "share.auto.offset.reset=earliest",
    )  # fmt: skip
    produce(cluster, "shared-queue", [b"one", b"two", b"three"])
    read = cluster.tool(
        "console-share-consumer", "--topic", "shared-queue", "--group", "queue", "--max-messages", 3,
        "--timeout-ms", 60000,
    ).out  # fmt: skip
    assert read.split() == ["one", "two", "three"]


def test_read_committed_returns_whole_committed_transactions_only(
    three_brokers: Cluster,
) -> None:
    cluster = three_brokers
    cluster.create_topic("transacted", partitions=3, replication_factor=3)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "writer"})
    producer.init_transactions(60)
    for batch, commit in (("a", True), ("b", False), ("c", True)):
        producer.begin_transaction()
        for number in range(10):
            producer.produce("transacted", f"{batch}{number}".encode())
        if commit:
            producer.commit_transaction(60)
        else:
            producer.flush(60)
            producer.abort_transaction(60)
    reader = consumer(cluster, "committed", isolation_level="read_committed")
    reader.subscribe(["transacted"])
    seen = sorted(message.value().decode() for message in take(reader, 20))
    reader.close()
    assert seen == sorted(f"{batch}{number}" for batch in "ac" for number in range(10))
    listed = cluster.tool("transactions", "list").out
    assert re.search(r"^writer\s.*CompleteCommit", listed, re.M), listed


def test_a_second_producer_with_the_same_transactional_id_fences_the_first(three_brokers: Cluster) -> None:
    cluster = three_brokers
    cluster.create_topic("fenced-writer")
    settings = {"bootstrap.servers": cluster.bootstrap, "transactional.id": "only-one"}
    old, new = Producer(settings), Producer(settings)
    old.init_transactions(60)
    old.begin_transaction()
    old.produce("fenced-writer", b"old")
    old.flush(60)
    new.init_transactions(60)
    with pytest.raises(KafkaException) as fenced:
        old.commit_transaction(60)
    assert fenced.value.args[0].code() in (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH)


def test_every_producer_gets_a_distinct_id(three_brokers: Cluster) -> None:
    cluster = three_brokers
    cluster.create_topic("identified", partitions=1)
    for number in range(5):
        produce(cluster, "identified", [f"{number}".encode()])
    table = cluster.tool("transactions", "describe-producers", "--topic", "identified", "--partition", 0).out
    ids = [line.split()[0] for line in table.splitlines()[1:] if line.split()]
    assert len(ids) == len(set(ids)) == 5, table
