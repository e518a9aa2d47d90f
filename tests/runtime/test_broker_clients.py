"""Clients of one process that is a whole Kafka: records and groups across stops, kills, deleted topics."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from kafka import KafkaConsumer, KafkaProducer

from testkit.process import free_port, wait_until
from tests.runtime.daemon_process import DaemonProcess

RUNNING = '"state":"RUNNING"'
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class WholeKafka:
    """A combined node, and librdkafka's clients of it."""

    def __init__(self, home: Path) -> None:
        port, controller_port = free_port(), free_port()
        self.bootstrap = {"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0}
        self.daemon = DaemonProcess(
            home,
            controller_port,
            process__roles="broker,controller",
            listeners=f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            offsets__topic__replication__factor=1,
            offsets__topic__num__partitions=3,
            group__initial__rebalance__delay__ms=0,
            broker__session__timeout__ms=1500,  # a killed broker may register again after it
            broker__heartbeat__interval__ms=500,
        )
        self.daemon.format()
        self.start()
        self.admin = AdminClient(self.bootstrap)

    def __repr__(self) -> str:
        return f"<WholeKafka at {self.bootstrap['bootstrap.servers']}>"

    def start(self) -> None:
        """Start it, and wait until its broker serves."""
        log = self.daemon.log
        before = log.read_text().count(RUNNING) if log.exists() else 0
        self.daemon.start()
        wait_until(lambda: log.read_text().count(RUNNING) > before, "the broker serves")

    def restart(self, number: int) -> None:
        """End it by a signal, and start it again."""
        assert self.daemon.stop(number) == (0 if number == signal.SIGTERM else -number)
        self.start()

    def create(self, topic: str, partitions: int = 1, **configs: str) -> None:
        new = NewTopic(topic, partitions, 1, config={key.replace("_", "."): configs[key] for key in configs})
        self.admin.create_topics([new])[topic].result(10)

    def delete(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(10)

    def produce(self, topic: str, values: list[bytes], **settings: Any) -> None:
        """Produce, and check that each record is acknowledged."""
        errors: list[KafkaError] = []
        producer = Producer({**self.bootstrap, "linger.ms": 2, **settings})
        for value in values:
            producer.produce(
                topic, value, on_delivery=lambda error, _: errors.append(error) if error else None
            )
        assert not producer.flush(20) and not errors, errors[:3]

    def consume(self, topic: str, group: str, count: int) -> list[bytes]:
        """Values from the group's offset on, which is committed afterwards."""
        consumer = Consumer(
            {
                **self.bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe([topic])
        values: list[bytes] = []

        def is_enough() -> bool:
            for message in consumer.consume(1000, 0.1):
                assert message.error() is None, message.error()
                values.append(message.value())
            return len(values) >= count

        try:
            wait_until(is_enough, f"{count} records of {topic} arrive", 20)
            consumer.commit(asynchronous=False)
        finally:
            consumer.close()
        return values


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[WholeKafka]:
    kafka = WholeKafka(tmp_path)
    yield kafka
    kafka.daemon.stop()


def values(prefix: str, count: int) -> list[bytes]:
    return [f"{prefix}-{number}".encode() * 5 for number in range(count)]


def test_batches_of_every_codec_for_topics_of_every_codec(kafka: WholeKafka) -> None:
    for target in ("producer", "uncompressed", *CODECS[1:]):
        kafka.create(f"of-{target}", compression_type=target)
    for target in ("producer", "uncompressed", *CODECS[1:]):
        expected = []
        for codec in CODECS:
            expected += values(codec, 100)
            kafka.produce(f"of-{target}", values(codec, 100), **{"compression.type": codec})
        assert kafka.consume(f"of-{target}", f"group-{target}", 500) == expected


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_restart_keeps_records_and_offsets_and_a_producer_goes_on(kafka: WholeKafka, number: int) -> None:
    kafka.create("kept")
    kafka.produce("kept", values("first", 100))
    assert kafka.consume("kept", "group", 100) == values("first", 100)
    acknowledged: list[int] = []
    errors: list[KafkaError] = []

    def delivered(offset: int, error: KafkaError | None) -> None:
        if error is None:
            acknowledged.append(offset)
        else:
            errors.append(error)

    producer = Producer({**kafka.bootstrap, "enable.idempotence": True, "batch.num.messages": 10})

    def send(first: int, end: int) -> None:
        for at in range(first, end):
            producer.produce("kept", b"%d" % at, on_delivery=lambda error, _, at=at: delivered(at, error))

    send(0, 2000)
    wait_until(lambda: producer.poll(0.01) >= 0 and len(acknowledged) >= 100, "some are acknowledged")
    before = len(acknowledged)
    kafka.restart(number)
    send(2000, 2100)
    assert not producer.flush(20) and not errors, (before, errors[:3])
    assert acknowledged == list(range(2100))
    assert kafka.consume("kept", "group", 2100) == [b"%d" % at for at in range(2100)]


def test_records_of_a_recreated_topic_outlive_a_restart(kafka: WholeKafka) -> None:
    for number in range(3):
        kafka.create("again", 3)
        kafka.produce("again", values(f"topic-{number}", 30))
        if number < 2:
            kafka.delete("again")
    kafka.create("gone")
    kafka.delete("gone")
    kafka.restart(signal.SIGTERM)
    assert sorted(kafka.consume("again", "group", 30)) == sorted(values("topic-2", 30))
    names = {path.name for path in (kafka.daemon.home / "data").iterdir()}
    assert {"again-0", "again-1", "again-2"} <= names and "gone-0" not in names


def test_groups_and_records_are_administered(kafka: WholeKafka) -> None:
    partition = TopicPartition("t", 0)
    kafka.create("t")
    kafka.produce("t", values("v", 100))
    kafka.consume("t", "g", 100)
    reset = ConsumerGroupTopicPartitions("g", [TopicPartition("t", 0, 90)])
    kafka.admin.alter_consumer_group_offsets([reset])["g"].result(10)
    assert kafka.consume("t", "g", 10) == values("v", 100)[90:]
    kafka.admin.delete_consumer_groups(["g"])["g"].result(10)
    assert kafka.admin.list_consumer_groups().result(10).valid == []
    assert kafka.admin.delete_records([TopicPartition("t", 0, 40)])[partition].result(10).low_watermark == 40
    earliest = kafka.admin.list_offsets({partition: OffsetSpec.earliest()})[partition].result(10)
    assert earliest.offset == 40
    assert kafka.consume("t", "g", 60) == values("v", 100)[40:]


def test_kafka_python_and_aiokafka(kafka: WholeKafka) -> None:
    at = {"bootstrap_servers": kafka.bootstrap["bootstrap.servers"]}
    expected = values("python", 100)
    producer = KafkaProducer(**at, compression_type="gzip", enable_idempotence=True)
    sent = [producer.send("python", value) for value in expected]
    producer.flush(10)
    assert [one.get(10).offset for one in sent] == list(range(100))
    producer.close()
    group = {"group_id": "python", "auto_offset_reset": "earliest"}
    reader = KafkaConsumer("python", **at, **group, consumer_timeout_ms=10_000)
    read = [next(reader).value for _ in expected[:60]]
    reader.close()  # commits
    assert read == expected[:60]

    async def go_on() -> list[bytes]:
        consumer = AIOKafkaConsumer("python", **at, **group)
        await consumer.start()
        try:
            async with AIOKafkaProducer(**at, enable_idempotence=True) as producer:
                await asyncio.gather(*[producer.send_and_wait("python", b"%d" % at) for at in range(40)])
            return [(await asyncio.wait_for(consumer.getone(), 10)).value for _ in range(80)]
        finally:
            await consumer.stop()

    rest = asyncio.run(go_on())
    assert rest[:40] == expected[60:] and sorted(rest[40:]) == sorted(b"%d" % at for at in range(40))


def test_a_second_sigterm_lets_a_member_leave_its_group(kafka: WholeKafka) -> None:
    """`timeout` sends two: one to the command and one to its process group."""
    kafka.create("t")
    kafka.produce("t", [b"one"])
    boot = kafka.bootstrap["bootstrap.servers"]
    words = ("consume", "t", "--group", "g", "--from-beginning", "--bootstrap", boot)
    member = subprocess.Popen(
        [sys.executable, "-m", "kraftd", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    daemon = kafka.daemon.process
    assert member.stdout is not None and daemon is not None
    assert member.stdout.readline() == "one\n"
    daemon.send_signal(signal.SIGSTOP)  # the member cannot leave yet
    try:
        for _ in range(2):
            member.terminate()
            time.sleep(0.5)
    finally:
        daemon.send_signal(signal.SIGCONT)
    _, errors = member.communicate(timeout=30)
    assert (member.returncode, errors) == (0, "")
    assert "Empty, 0 members" in kafka.daemon.kraftd("groups", "describe", "g", "--bootstrap", boot).stdout
