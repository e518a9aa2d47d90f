"""The metadata log as a topic: during leader changes, and at an observer of Kafka's controllers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kraftd.types import METADATA_TOPIC
from testkit.java import TOOLS, java_command
from testkit.node import Kind
from testkit.process import Process, wait_until
from testkit.quorum import Quorum
from tests.kafka.clients.conftest import Served
from tests.kafka.clients.listeners import Addresses, records_on_disk, serve_clients, tool
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


def reader(bootstrap: str) -> Consumer:
    consumer = Consumer({"bootstrap.servers": bootstrap, **SETTINGS})
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


class JavaReader(Process):
    """Apache Kafka's console consumer of the metadata log from its beginning, until it is killed."""

    def __init__(self, home: Path, bootstrap: str) -> None:
        words = ["--bootstrap-server", bootstrap, "--topic", METADATA_TOPIC, "--partition", "0"]
        words += ["--offset", "earliest", "--formatter-property", "print.offset=true"]
        escaping = "value.deserializer=org.apache.kafka.common.serialization.BytesDeserializer"
        words += ["--formatter-property", escaping]
        super().__init__("reader", home, lambda: java_command(TOOLS["console-consumer"], *words))

    def seen(self) -> list[tuple[int, bytes]]:
        """Offset and value of each record so far; bytes that are not printable come as \\xHH."""
        lines = re.findall(r"^Offset:(\d+)\t(.*)\n", self.log.read_text(), re.MULTILINE)
        return [
            (int(offset), value.encode().decode("unicode_escape").encode("latin-1"))
            for offset, value in lines
        ]

    def wait_for(self, offset: int) -> None:
        self.wait(lambda: self.seen()[-1:] >= [(offset, b"")], f"has read {offset}")


@pytest.fixture
def java(served: Served, tmp_path: Path) -> Iterator[JavaReader]:
    """A reader that bootstraps from a listener with the name of the broker's listener."""
    one = JavaReader(tmp_path, served.bootstrap)
    one.start()
    yield one
    one.kill()


def test_consumers_lose_and_duplicate_nothing_during_leader_changes(served: Served, java: JavaReader) -> None:
    bootstrap = served.log_bootstrap
    consumer, seen = reader(bootstrap), list[tuple[int, bytes]]()
    for change in range(3):
        create(bootstrap, *[f"change-{change}-{number}" for number in range(20)])
        seen += consume(consumer, served.described().high_watermark - 2)  # type: ignore[union-attr]
        java.wait_for(seen[-1][0])
        leader = served.wait_for_leader()
        served.controllers[leader].kill()
        wait_until(lambda former=leader: served.leader() not in (None, former), "another leads")  # type: ignore[misc]
        served.start_controllers(leader)
    create(bootstrap, *[f"last-{number}" for number in range(20)])
    seen += consume(consumer, served.described().high_watermark - 2)  # type: ignore[union-attr]
    consumer.close()
    assert seen == records_on_disk(served.controller, seen[-1][0] + 1)
    java.wait_for(seen[-1][0])
    read = java.seen()
    assert read == records_on_disk(served.controller, read[-1][0] + 1)


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
