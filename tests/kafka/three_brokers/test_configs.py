"""Topic and broker configs, set by Kafka's configs tool and by librdkafka, reach the brokers."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource, ResourceType

from testkit.cluster import Cluster

pytestmark = pytest.mark.kafka


def resource(
    kind: ResourceType, name: str, **changes: tuple[AlterConfigOpType, str | None]
) -> ConfigResource:
    """A resource with incremental changes; underscores in keys stand for dots."""
    entries = [
        ConfigEntry(key.replace("_", "."), value, incremental_operation=operation)
        for key, (operation, value) in changes.items()
    ]
    return ConfigResource(kind, name, incremental_configs=entries)


def described(cluster: Cluster, kind: ResourceType, name: str) -> dict[str, ConfigEntry]:
    described_resource = ConfigResource(kind, name)
    return cluster.admin.describe_configs([described_resource])[described_resource].result(30)


def test_configs_tool_adds_appends_and_deletes_topic_configs(three_brokers: Cluster) -> None:
    cluster = three_brokers
    cluster.create_topic("configured")
    topic = ("--entity-type", "topics", "--entity-name", "configured")

    def describe() -> str:
        return cluster.tool("configs", "--describe", *topic).out

    cluster.tool(
        "configs", "--alter", *topic, "--add-config", "retention.ms=1000000,cleanup.policy=[compact,delete]"
    )
    cluster.wait_until(lambda: "retention.ms=1000000" in describe(), "the broker knows the new value")
    assert "cleanup.policy=compact,delete" in describe()
    assert "DYNAMIC_TOPIC_CONFIG:retention.ms=1000000" in describe()

    cluster.tool("configs", "--alter", *topic, "--delete-config", "retention.ms")
    cluster.wait_until(lambda: "retention.ms" not in describe(), "the value is gone")
    assert "cleanup.policy=compact,delete" in describe()


def test_librdkafka_sets_appends_subtracts_and_deletes_one_key_at_a_time(three_brokers: Cluster) -> None:
    cluster, operation, topics = three_brokers, AlterConfigOpType, ResourceType.TOPIC
    cluster.create_topic("stepwise")

    def alter(**changes: tuple[AlterConfigOpType, str | None]) -> None:
        for future in cluster.admin.incremental_alter_configs(
            [resource(topics, "stepwise", **changes)]
        ).values():
            future.result(30)

    def value(key: str) -> str:
        return described(cluster, topics, "stepwise")[key].value

    alter(segment_bytes=(operation.SET, "2000000"), cleanup_policy=(operation.APPEND, "compact"))
    cluster.wait_until(lambda: value("segment.bytes") == "2000000", "set")
    assert value("cleanup.policy") == "delete,compact"
    alter(segment_bytes=(operation.DELETE, None), cleanup_policy=(operation.SUBTRACT, "delete"))
    cluster.wait_until(lambda: value("segment.bytes") == "1073741824", "back to the default")
    assert value("cleanup.policy") == "compact"
    entry = described(cluster, topics, "stepwise")["cleanup.policy"]
    assert entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value


def test_a_topic_config_limits_the_records_that_the_leader_accepts(three_brokers: Cluster) -> None:
    three_brokers.create_topic("small-messages", max_message_bytes=200)
    failures: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": three_brokers.bootstrap})
    producer.produce("small-messages", b"x" * 1000, on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(30) == 0
    assert [error.code() for error in failures] == [KafkaError.MSG_SIZE_TOO_LARGE]


def test_broker_configs_are_dynamic_for_one_broker_and_for_all(three_brokers: Cluster) -> None:
    cluster = three_brokers

    def source(broker: int) -> tuple[str, int]:
        entry = described(cluster, ResourceType.BROKER, str(broker))["log.cleaner.threads"]
        return entry.value, entry.source

    all_brokers = ("--entity-type", "brokers", "--entity-default")
    second = ("--entity-type", "brokers", "--entity-name", "2")
    cluster.tool("configs", "--alter", *all_brokers, "--add-config", "log.cleaner.threads=2")
    for broker in (1, 2, 3):
        cluster.wait_until(
            lambda broker=broker: source(broker) == ("2", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value),
            f"broker {broker} took the default",
        )
    cluster.tool("configs", "--alter", *second, "--add-config", "log.cleaner.io.buffer.load.factor=0.8")
    cluster.wait_until(
        lambda: "log.cleaner.io.buffer.load.factor=0.8" in cluster.tool("configs", "--describe", *second).out,
        "broker 2 took its own",
    )
    cluster.tool("configs", "--alter", *second, "--delete-config", "log.cleaner.io.buffer.load.factor")
    cluster.tool("configs", "--alter", *all_brokers, "--delete-config", "log.cleaner.threads")
    cluster.wait_until(lambda: source(1)[0] == "1", "the default is gone")


def test_an_ill_typed_or_unknown_config_is_refused_and_changes_nothing(
    three_brokers: Cluster,
) -> None:
    cluster, operation = three_brokers, AlterConfigOpType
    cluster.create_topic("unharmed")
    changes = [
        resource(
            ResourceType.TOPIC, "unharmed", retention_ms=(operation.SET, "5"), flush_ms=(operation.SET, "x")
        ),
        resource(ResourceType.TOPIC, "not-there", retention_ms=(operation.SET, "5")),
        resource(ResourceType.BROKER, "1", advertised_listeners=(operation.SET, "PLAINTEXT://h:1,NO")),
    ]
    codes = []
    for future in cluster.admin.incremental_alter_configs(changes).values():
        with pytest.raises(KafkaException) as refused:
            future.result(30)
        codes.append(refused.value.args[0].code())
    assert codes[0] == KafkaError.INVALID_CONFIG
    assert codes[1] == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert codes[2] in (KafkaError.INVALID_CONFIG, KafkaError.INVALID_REQUEST)
    assert described(cluster, ResourceType.TOPIC, "unharmed")["retention.ms"].value == "604800000"
