"""Java's, librdkafka's and Python's clients that know only kraftd's client listeners."""

from __future__ import annotations

import asyncio
from itertools import takewhile

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, ResourceType
from kafka import KafkaAdminClient, KafkaConsumer
from kafka.admin import NewTopic as PythonNewTopic
from kafka.structs import TopicPartition as PythonTopicPartition

from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.types import METADATA_TOPIC
from testkit.client import Client
from testkit.cluster import status_fields
from testkit.process import wait_until
from tests.kafka.clients.conftest import Served
from tests.kafka.clients.listeners import tool
from tests.kafka.clients.through import VALUES, through_aiokafka, through_kafka_python

pytestmark = pytest.mark.kafka


def test_javas_tools_produce_consume_and_administer(served: Served) -> None:
    bootstrap = served.bootstrap
    tool(bootstrap, "topics", "--create", "--topic", "java", "--partitions", 2)
    described = tool(bootstrap, "topics", "--describe", "--topic", "java").out
    assert "PartitionCount: 2" in described and "Leader: 1" in described
    assert "java" in tool(bootstrap, "topics", "--list").out.split()
    tool(bootstrap, "console-producer", "--topic", "java", stdin="\n".join(VALUES))
    arguments = ("--topic", "java", "--from-beginning", "--group", "java-group", "--max-messages", 50)
    assert sorted(tool(bootstrap, "console-consumer", *arguments).out.split()) == sorted(VALUES)
    groups = tool(bootstrap, "consumer-groups", "--describe", "--group", "java-group").out
    assert "java-group" in groups
    change = ("--alter", "--entity-type", "topics", "--entity-name", "java", "--add-config", "retention.ms=9")
    tool(bootstrap, "configs", *change)
    configs = tool(bootstrap, "configs", "--describe", "--entity-type", "topics", "--entity-name", "java")
    assert "retention.ms=9" in configs.out
    ends = tool(bootstrap, "get-offsets", "--topic", "java").out.split()
    assert sum(int(line.rpartition(":")[2]) for line in ends) == 50
    quorum = status_fields(tool(bootstrap, "metadata-quorum", "describe", "--status").out)
    assert quorum["LeaderId"] == str(served.wait_for_leader())
    tool(bootstrap, "topics", "--delete", "--topic", "java")


def test_librdkafka_produces_in_transactions_and_consumes_in_a_group(served: Served) -> None:
    admin = AdminClient({"bootstrap.servers": served.bootstrap})
    for future in admin.create_topics([NewTopic("rdkafka", 3, 1)]).values():
        future.result(30)
    producer = Producer({"bootstrap.servers": served.bootstrap, "transactional.id": "rdkafka-writer"})
    producer.init_transactions(60)
    for is_committed in (True, False):
        producer.begin_transaction()
        for value in VALUES:
            producer.produce("rdkafka", f"{is_committed}-{value}")
        if is_committed:
            producer.commit_transaction(60)
        else:
            producer.flush(60)
            producer.abort_transaction(60)
    settings = {"group.id": "rdkafka-group", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": served.bootstrap, **settings})
    consumer.subscribe(["rdkafka"])
    seen = []
    while len(seen) < len(VALUES):
        message = consumer.poll(30)
        assert message is not None and message.error() is None
        seen.append((message.value() or b"").decode())
    consumer.commit(asynchronous=False)
    consumer.close()
    assert sorted(seen) == sorted(f"True-{value}" for value in VALUES)


def test_javas_admin_client_reads_and_writes_without_a_broker(served: Served) -> None:
    bootstrap = served.log_bootstrap
    tool(bootstrap, "topics", "--create", "--topic", "by-way-of-kraftd")
    expected = {"by-way-of-kraftd", METADATA_TOPIC}

    def listed() -> bool:
        return expected <= set(tool(bootstrap, "topics", "--list").out.split())

    wait_until(listed, f"{expected} are listed")  # by any node, which may follow a little late
    described = tool(bootstrap, "topics", "--describe", "--topic", METADATA_TOPIC).out
    assert "PartitionCount: 1" in described and f"Leader: {served.wait_for_leader()}" in described
    configs = tool(
        bootstrap, "configs", "--describe", "--entity-type", "topics", "--entity-name", METADATA_TOPIC
    )
    assert "cleanup.policy=snapshot" in configs.out


def test_metadata_topic_is_described_and_cannot_be_changed__kip630(served: Served) -> None:
    admin = AdminClient({"bootstrap.servers": served.log_bootstrap})
    resource = ConfigResource(ResourceType.TOPIC, METADATA_TOPIC)
    (described,) = admin.describe_configs([resource]).values()
    assert described.result(30)["cleanup.policy"].value == "snapshot"
    changes = [
        *admin.delete_topics([METADATA_TOPIC]).values(),
        *admin.create_partitions([NewPartitions(METADATA_TOPIC, 2)]).values(),
    ]
    for change in changes:
        with pytest.raises(KafkaException):
            change.result(30)
    failed: list[object] = []
    producer = Producer({"bootstrap.servers": served.log_bootstrap})
    producer.produce(METADATA_TOPIC, b"no", on_delivery=lambda error, _: failed.append(error))
    producer.flush(30)
    assert "POLICY_VIOLATION" in str(failed)


def test_kafka_python_produces_consumes_and_administers(served: Served) -> None:
    bootstrap = served.bootstrap.split(",")
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([PythonNewTopic("kafka-python", 1, 1)])
    assert through_kafka_python(served.bootstrap, "kafka-python") == VALUES
    # kafka-python takes the APIs of the node that it bootstraps from for those of the brokers.
    assert "kafka-python" in str(admin.describe_log_dirs())
    assert "kafka-python" in str(admin.list_config_resources())
    assert admin.describe_producers([PythonTopicPartition("kafka-python", 0)])
    assert admin.list_transactions() is not None
    admin.close()


def test_client_listener_lists_the_apis_and_versions_of_a_broker(served: Served) -> None:
    def listed(address: str) -> set[tuple[int, int, int]]:
        host, _, port = address.rpartition(":")
        with Client(host, int(port)) as client:
            answer = client.call(ApiVersionsRequest("test", "1"), version=4)
        return {(one.api_key, one.min_version, one.max_version) for one in answer.api_keys}

    assert listed(served.addresses[100].clients) == listed(served.brokers[1].address)


def test_aiokafka_produces_in_a_transaction_and_consumes_in_a_group(served: Served) -> None:
    tool(served.bootstrap, "topics", "--create", "--topic", "aiokafka")

    assert through_aiokafka(served.bootstrap, "aiokafka") == VALUES


def test_pythons_clients_read_the_metadata_log_of_a_listener_without_brokers(served: Served) -> None:
    bootstrap, last = served.log_bootstrap, 10  # elsewhere their first Metadata request gets brokers
    consumer = KafkaConsumer(
        METADATA_TOPIC,
        bootstrap_servers=bootstrap.split(","),
        auto_offset_reset="earliest",
        consumer_timeout_ms=30_000,
    )
    seen = list(takewhile(lambda offset: offset < last, (one.offset for one in consumer)))
    consumer.close()
    assert seen and seen == sorted(set(seen))

    async def through_aiokafka() -> list[int]:
        consumer = AIOKafkaConsumer(
            METADATA_TOPIC, bootstrap_servers=bootstrap, auto_offset_reset="earliest", group_id=None
        )
        await consumer.start()
        found: list[int] = []
        while not found or found[-1] < last:
            found.append((await asyncio.wait_for(consumer.getone(), 30)).offset)
        await consumer.stop()
        return found[:-1]

    assert asyncio.run(through_aiokafka()) == seen


def test_a_writer_reads_its_own_writes_at_every_node(served: Served) -> None:
    leader = served.wait_for_leader()
    for node_id in sorted(served.addresses, key=lambda one: one == leader):
        host, _, port = served.addresses[node_id].log.rpartition(":")
        with Client(host, int(port)) as client:
            for number in range(10):
                name = f"own-{node_id}-{number}"
                created = client.call(CreateTopicsRequest([CreatableTopic(name, 1, 1)], 10_000), 7)
                assert created.topics[0].error_code == 0
                seen = client.call(MetadataRequest([MetadataRequestTopic(name=name)]), 12)
                assert seen.topics[0].error_code == 0, f"{name} at {node_id}"


def test_clients_survive_the_loss_of_the_node_they_bootstrapped_from(served: Served) -> None:
    first = served.wait_for_leader()
    admin = AdminClient({"bootstrap.servers": served.addresses[first].log})
    assert METADATA_TOPIC in admin.list_topics(timeout=30).topics
    served.controllers[first].kill()
    wait_until(lambda: served.leader() not in (None, first), "another leads")
    for future in admin.create_topics([NewTopic("after-the-loss", 1, 1)]).values():
        future.result(30)
    served.heal()
