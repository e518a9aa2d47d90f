"""Topics through Kafka's topics tool and through librdkafka, on three stock brokers."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewPartitions, NewTopic

from testkit.cluster import Cluster

pytestmark = pytest.mark.kafka


def refusal(futures: dict) -> dict[str, int]:
    """The error code of each operation; every one must be refused."""
    codes = {}
    for name, future in futures.items():
        with pytest.raises(KafkaException) as refused:
            future.result(30)
        codes[name] = refused.value.args[0].code()
    return codes


def test_topics_tool_creates_describes_grows_and_deletes_a_topic(three_brokers: Cluster) -> None:
    cluster = three_brokers
    cluster.create_topic("tool-life", partitions=4, replication_factor=3, retention_ms=3600000)

    described = cluster.tool("topics", "--describe", "--topic", "tool-life").out
    assert "PartitionCount: 4\tReplicationFactor: 3" in described
    assert "retention.ms=3600000" in described
    assert "tool-life" in cluster.tool("topics", "--list").out.split()

    cluster.tool("topics", "--alter", "--topic", "tool-life", "--partitions", 6)
    cluster.wait_until(lambda: len(cluster.partitions("tool-life")) == 6, "six partitions")

    cluster.tool("topics", "--delete", "--topic", "tool-life")
    cluster.wait_until(lambda: "tool-life" not in cluster.metadata().topics, "the topic is gone")


def test_partitions_are_spread_evenly_over_the_brokers(three_brokers: Cluster) -> None:
    three_brokers.create_topic("spread", partitions=9, replication_factor=2)
    partitions = three_brokers.partitions("spread").values()
    for broker in (1, 2, 3):
        assert sum(partition.replicas[0] == broker for partition in partitions) == 3
        assert sum(broker in partition.replicas for partition in partitions) == 6


def test_an_explicit_assignment_is_kept_as_it_was_given(three_brokers: Cluster) -> None:
    three_brokers.tool("topics", "--create", "--topic", "assigned", "--replica-assignment", "3:1,2:3,1:2")
    three_brokers.wait_until(
        lambda: all(p.leader > 0 for p in three_brokers.partitions("assigned").values()), "leaders"
    )
    placed = {index: partition.replicas for index, partition in three_brokers.partitions("assigned").items()}
    assert placed == {0: [3, 1], 1: [2, 3], 2: [1, 2]}


def test_topics_tool_prints_the_errors_of_the_controller(three_brokers: Cluster) -> None:
    cluster = three_brokers
    cluster.create_topic("taken")
    refusals = {
        ("--topic", "taken"): "already exists",
        ("--topic", "wide", "--replication-factor", 4): "InvalidReplicationFactorException",
        ("--topic", "empty", "--partitions", 0): "greater than 0",
        ("--topic", "a" * 250): "InvalidTopicException",
    }
    for arguments, reason in refusals.items():
        run = cluster.try_tool("topics", "--create", *arguments)
        assert run.code == 1, run
        assert reason in run.out + run.err, (arguments, run.out, run.err)


def test_validate_only_creates_nothing(three_brokers: Cluster) -> None:
    futures = three_brokers.admin.create_topics([NewTopic("only-asked", 3, 3)], validate_only=True)
    futures["only-asked"].result(30)
    assert "only-asked" not in three_brokers.tool("topics", "--list").out.split()


def test_librdkafka_creates_grows_and_deletes_topics_in_one_request_each(three_brokers: Cluster) -> None:
    cluster = three_brokers
    names = [f"batch-{index}" for index in range(20)]
    for future in cluster.admin.create_topics([NewTopic(name, 2, 2) for name in names]).values():
        future.result(30)
    for future in cluster.admin.create_partitions([NewPartitions(name, 5) for name in names]).values():
        future.result(30)
    cluster.wait_until(
        lambda: all(len(cluster.partitions(name)) == 5 for name in names), "five partitions each"
    )
    for future in cluster.admin.delete_topics(names).values():
        future.result(30)
    cluster.wait_until(lambda: not set(names) & set(cluster.metadata().topics), "all are gone")


def test_librdkafka_gets_the_error_code_of_each_refusal(three_brokers: Cluster) -> None:
    admin = three_brokers.admin
    three_brokers.create_topic("coded", partitions=3)
    created = refusal(
        admin.create_topics(
            [
                NewTopic("coded", 1, 1),
                NewTopic("coded-wide", 1, 4),
                NewTopic("coded-none", 0, 1),
                NewTopic("../coded", 1, 1),
                NewTopic("coded-config", 1, 1, config={"no.such.config": "1"}),
                NewTopic("coded-value", 1, 1, config={"retention.ms": "soon"}),
                NewTopic("coded-missing", 1, replica_assignment=[[9]]),
            ]
        )
    )
    assert created == {
        "coded": KafkaError.TOPIC_ALREADY_EXISTS,
        "coded-wide": KafkaError.INVALID_REPLICATION_FACTOR,
        "coded-none": KafkaError.INVALID_PARTITIONS,
        "../coded": KafkaError.TOPIC_EXCEPTION,
        "coded-config": KafkaError.INVALID_CONFIG,
        "coded-value": KafkaError.INVALID_CONFIG,
        "coded-missing": KafkaError.INVALID_REPLICA_ASSIGNMENT,
    }
    grown = refusal(admin.create_partitions([NewPartitions("coded", 2), NewPartitions("coded-absent", 2)]))
    assert grown == {
        "coded": KafkaError.INVALID_PARTITIONS,
        "coded-absent": KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
    assert refusal(admin.delete_topics(["coded-absent"])) == {
        "coded-absent": KafkaError.UNKNOWN_TOPIC_OR_PART
    }


def test_a_recreated_topic_is_another_topic(three_brokers: Cluster) -> None:
    cluster = three_brokers

    def topic_id() -> str:
        words = cluster.tool("topics", "--describe", "--topic", "again").out.split()
        return words[words.index("TopicId:") + 1]

    cluster.create_topic("again")
    first = topic_id()
    cluster.tool("topics", "--delete", "--topic", "again")
    cluster.wait_until(lambda: "again" not in cluster.metadata().topics, "the first is gone")
    cluster.create_topic("again")
    assert topic_id() != first
