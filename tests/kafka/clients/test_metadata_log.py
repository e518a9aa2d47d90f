"""The metadata log as a topic: during leader changes, and at an observer of Kafka's controllers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kraftd.types import METADATA_TOPIC
from testkit.node import Kind
from testkit.process import wait_until
from testkit.quorum import Quorum
from tests.kafka.clients.conftest import Served
from tests.kafka.clients.listeners import Addresses, records_on_disk, serve_clients, tool
from tests.kafka.clients.steady_readers import (
    DECLARED,
    AiokafkaReader,
    JavaReader,
    KafkaPythonReader,
    LibrdkafkaReader,
    Reader,
    wait_for_all,
)
from tests.kafka.clients.through import VALUES, through_aiokafka, through_kafka_python

pytestmark = pytest.mark.kafka

# A truncated log resets the position, which is an error here, or loses records.
SETTINGS = {"group.id": "none", "enable.auto.commit": False, "auto.offset.reset": "error"}


def create(bootstrap: str, *names: str) -> None:
    """Create topics, and repeat it until a leader has created them all."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def created() -> bool:
        with suppress(KafkaException):
            for future in admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
                with suppress(KafkaException):
                    future.result(20)
        return set(names) <= set(admin.list_topics(timeout=20).topics)

    wait_until(created, f"{names[0]} and the others are there")


def read_log_through(bootstrap: str, until_offset: int) -> list[tuple[int, bytes]]:
    return list(consume(reader(bootstrap), until_offset))


def reader(bootstrap: str, client_id: str = "rdkafka", assigned_after_s: float = 0) -> Consumer:
    consumer = Consumer({"bootstrap.servers": bootstrap, "client.id": client_id, **SETTINGS})
    if assigned_after_s:
        consumer.poll(assigned_after_s)
    consumer.assign([TopicPartition(METADATA_TOPIC, 0, 0)])
    return consumer


def consume(consumer: Consumer, until_offset: int) -> Iterator[tuple[int, bytes]]:
    """Offsets and values in order, up to the record at that offset or the first after it."""
    for _ in range(100_000):
        message = consumer.poll(30)
        assert message is not None, f"nothing came before {until_offset}"
        error, offset = message.error(), message.offset()
        assert error is None or error.retriable(), error
        if error is None:
            assert offset is not None
            yield offset, bytes(message.value() or b"")
            if offset >= until_offset:
                return


@pytest.fixture
def readers(served: Served, tmp_path: Path) -> Iterator[list[Reader]]:
    """Java's and those that declare themselves bootstrap from a listener with the name of the broker's."""
    log = served.log_bootstrap
    found: list[Reader] = [
        JavaReader(tmp_path, served.bootstrap),
        KafkaPythonReader(log),
        KafkaPythonReader(served.bootstrap, DECLARED),
        AiokafkaReader(log),
        AiokafkaReader(served.bootstrap, DECLARED),
        LibrdkafkaReader(served.bootstrap, DECLARED),
    ]
    for one in found:
        one.start()
    yield found
    for one in found:
        one.kill()


def test_consumers_lose_and_duplicate_nothing_while_each_controller_is_restarted(
    served: Served, readers: list[Reader]
) -> None:
    """The leader first, so that the leader changes at least twice."""
    bootstrap = served.log_bootstrap
    consumer, seen = reader(bootstrap), list[tuple[int, bytes]]()
    remaining, changes = set(served.controllers), 0
    while remaining or changes < 2:
        create(bootstrap, *[f"change-{len(remaining)}-{changes}-{number}" for number in range(20)])
        seen += consume(consumer, served.described().high_watermark - 2)  # type: ignore[union-attr]
        wait_for_all(readers, seen[-1][0])
        leader = served.wait_for_leader()
        victim = leader if leader in remaining or not remaining else min(remaining)
        served.controllers[victim].kill()
        if victim == leader:
            wait_until(lambda former=leader: served.leader() not in (None, former), "another leads")  # type: ignore[misc]
        changes += victim == leader
        remaining.discard(victim)
        served.start_controllers(victim)
    create(bootstrap, *[f"last-{number}" for number in range(20)])
    seen += consume(consumer, served.described().high_watermark - 2)  # type: ignore[union-attr]
    consumer.close()
    assert seen == records_on_disk(served.controller, seen[-1][0] + 1)
    wait_for_all(readers, seen[-1][0])
    for one in readers:
        read = one.seen()
        assert read == records_on_disk(served.controller, read[-1][0] + 1), one


def test_a_declared_reader_that_is_assigned_late_reads_where_brokers_are_named(served: Served) -> None:
    """Undeclared, librdkafka asks a broker for the topic in most of these starts, and reads nothing."""
    for assigned_after_s in (0.1, 0.3) * 4:
        consumer = reader(served.bootstrap, DECLARED, assigned_after_s)
        assert next(consume(consumer, 0))[0] >= 0
        consumer.close()


@pytest.fixture(scope="module")
def observed(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Quorum, Addresses]]:
    """Apache Kafka's controller 200, its broker 1, and a kraftd that observes."""
    if kind != "kraftd":
        pytest.skip("Apache Kafka's controllers serve no clients")
    with Quorum(tmp_path_factory.mktemp("observed"), {200: "apache"}) as quorum:
        quorum.start_controllers()
        quorum.start_brokers(1)
        observer = quorum.plan_observer(300, "kraftd")
        addresses = serve_clients(observer)
        observer.format(quorum.cluster_id, "--no-initial-controllers")
        observer.start()
        observer.wait_ready()
        yield quorum, addresses


def test_an_observer_of_kafkas_controllers_names_the_brokers_to_clients(
    observed: tuple[Quorum, Addresses],
) -> None:
    quorum, addresses = observed
    tool(addresses.log, "topics", "--create", "--topic", "seen", "--partitions", 2)
    values = [f"value-{number}" for number in range(20)]
    tool(addresses.clients, "console-producer", "--topic", "seen", stdin="\n".join(values))
    read = ("--topic", "seen", "--from-beginning", "--group", "observers", "--max-messages", len(values))
    assert sorted(tool(addresses.clients, "console-consumer", *read).out.split()) == sorted(values)
    assert "PartitionCount: 2" in tool(addresses.log, "topics", "--describe", "--topic", "seen").out
    assert quorum.voter_ids() == {200}


def test_librdkafka_and_pythons_clients_work_at_an_observer_of_kafkas_controllers(
    observed: tuple[Quorum, Addresses],
) -> None:
    bootstrap = observed[1].clients
    create(bootstrap, "of-kafka-python", "of-aiokafka", "of-librdkafka")
    assert through_kafka_python(bootstrap, "of-kafka-python") == VALUES
    assert through_aiokafka(bootstrap, "of-aiokafka") == VALUES
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for value in VALUES:
        producer.produce("of-librdkafka", value)
    assert producer.flush(60) == 0
    settings = {"group.id": "of-librdkafka-group", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    consumer.subscribe(["of-librdkafka"])
    seen = [consumer.poll(60) for _ in VALUES]
    consumer.close()
    assert [(one.value() or b"").decode() for one in seen if one is not None] == VALUES


def test_an_observer_serves_the_log_of_kafkas_controllers(observed: tuple[Quorum, Addresses]) -> None:
    quorum, addresses = observed
    create(addresses.log, "shown")
    described = quorum.described()
    assert described is not None
    seen = read_log_through(addresses.log, described.high_watermark - 2)
    assert seen == records_on_disk(quorum.controllers[200], seen[-1][0] + 1)
    assert quorum.voter_ids() == {200}


def test_a_position_past_the_end_is_out_of_range_at_an_observer(observed: tuple[Quorum, Addresses]) -> None:
    consumer = Consumer({"bootstrap.servers": observed[1].log, **SETTINGS})
    consumer.assign([TopicPartition(METADATA_TOPIC, 0, 1_000_000)])
    message = consumer.poll(30)
    error = None if message is None else message.error()
    consumer.close()
    assert error is not None and error.code() == KafkaError._AUTO_OFFSET_RESET


def test_librdkafka_reads_on_after_restarts_of_the_node_that_it_reads_from(
    observed: tuple[Quorum, Addresses],
) -> None:
    """Without an offset, it asks its coordinator for one; a broker would not know the topic then."""
    quorum, addresses = observed
    settings = {"group.id": "restarts", "auto.offset.reset": "earliest", "log_level": 0}
    consumer = Consumer({"bootstrap.servers": addresses.log, **settings})
    consumer.assign([TopicPartition(METADATA_TOPIC, 0)])
    seen: list[tuple[int, bytes]] = []
    for number in range(2):
        create(addresses.log, f"restarted-{number}")
        seen += consume(consumer, quorum.described().high_watermark - 2)  # type: ignore[union-attr]
        quorum.controllers[300].kill()
        quorum.controllers[300].start()
        quorum.controllers[300].wait_ready()
    consumer.close()
    assert seen == records_on_disk(quorum.controllers[200], seen[-1][0] + 1)
