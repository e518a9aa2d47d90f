"""A kraftd follower whose leader's answers are cut, damaged, of something else, or impossible.

Its log takes no harm, its other partitions go on, the error is named, and it catches up once the answers are
right again. Brokers of Apache Kafka give a partition up after some of these. `make replication` plays it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from struct import Struct

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from kraftd.messages.fetch_response import EpochEndOffset
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.wire.error_code import ErrorCode
from testkit.client import Client
from testkit.node import Kind
from testkit.process import HOST, wait_until
from tests.kafka.replication.lying_link import Answer, Lie, LyingLink
from tests.kafka.replication.mixed import MixedCluster

pytestmark = [pytest.mark.kafka, pytest.mark.thorough]

LEADER, FOLLOWER = 1, 2
LIE_S = 1.0
_INT64, _INT32 = Struct(">q"), Struct(">i")
_BASE_OFFSET, _LENGTH, _LEADER_EPOCH = 0, 8, 12  # in a batch; no checksum covers them
NOT_VALID, NOT_FETCHED = "fetched records are not valid", "a partition could not be fetched"
NO_ANSWER, UNREADABLE = "a leader could not be fetched from", "its answer cannot be read"
UNASKED, TRUNCATED = "were not requested", "the log is truncated to its leader's"


def edit(layout: Struct, at: int, change: Callable[[int], int]) -> Lie:
    """Change a number in the first batch."""

    def lie(answer: Answer) -> bytes:
        data = bytearray(answer.partition.records or b"")
        if data:
            (value,) = layout.unpack_from(data, at)
            layout.pack_into(data, at, change(value))
            answer.partition.records = bytes(data)
        return answer.encoded()

    return lie


def put(**fields: object) -> Lie:
    """Set fields of the partition."""

    def lie(answer: Answer) -> bytes:
        for name, value in fields.items():
            setattr(answer.partition, name, value)
        return answer.encoded()

    return lie


def flipped(answer: Answer) -> bytes:
    data = bytearray(answer.partition.records or b"")
    if data:
        data[-3] ^= 1
        answer.partition.records = bytes(data)
    return answer.encoded()


def repeated(answer: Answer) -> bytes:
    answer.partition.records = bytes(answer.partition.records or b"") * 2
    return answer.encoded()


def torn(answer: Answer) -> bytes:
    answer.partition.records = bytes(answer.partition.records or b"")[:40]
    return answer.encoded()


def of_another_topic(answer: Answer) -> bytes:
    answer.topic.topic_id = b"\7" * 16
    return answer.encoded()


def twice(answer: Answer) -> bytes:
    answer.topic.partitions = [*answer.topic.partitions, answer.partition]
    return answer.encoded()


def refused(answer: Answer) -> bytes:
    answer.message.error_code, answer.message.responses = ErrorCode.UNKNOWN_SERVER_ERROR, []
    return answer.encoded()


def of_another_request(answer: Answer) -> bytes:
    answer.correlation_id += 1
    return answer.encoded()


def sized(size: int) -> Lie:
    return lambda answer: _INT32.pack(size) + answer.bytes[4:]


# By name: the lie, and what the log says then.
OF_PARTITION: dict[str, tuple[Lie, str]] = {
    "flipped-bit": (flipped, NOT_VALID),
    "torn-batch": (torn, NOT_VALID),
    "batch-twice": (repeated, NOT_VALID),
    "offset-too-low": (edit(_INT64, _BASE_OFFSET, lambda offset: offset - 3), NOT_VALID),
    "offset-too-high": (edit(_INT64, _BASE_OFFSET, lambda offset: offset + 3), NOT_VALID),
    "highest-offset": (edit(_INT64, _BASE_OFFSET, lambda _: (1 << 63) - 1), NOT_VALID),
    "negative-length": (edit(_INT32, _LENGTH, lambda length: -length), NOT_VALID),
    "former-epoch": (edit(_INT32, _LEADER_EPOCH, lambda epoch: epoch - 1), NOT_VALID),
    "partition-twice": (twice, ""),
    "high-watermark": (put(high_watermark=(1 << 63) - 1), ""),
    "log-start": (put(log_start_offset=1 << 40), ""),
    "divergence": (put(diverging_epoch=EpochEndOffset(0, -5), records=b""), TRUNCATED),
    "fenced": (put(error_code=ErrorCode.FENCED_LEADER_EPOCH, records=b""), "the leader has a newer epoch"),
    "unknown-error": (put(error_code=999, records=b""), NOT_FETCHED),
}
OF_ANSWER: dict[str, tuple[Lie, str]] = {
    "another-topic": (of_another_topic, UNASKED),
    "error-of-all": (refused, NO_ANSWER),
    "closed": (lambda _: None, NO_ANSWER),
    "another-request": (of_another_request, UNREADABLE),
    "former-version": (lambda answer: answer.encoded(12), NO_ANSWER),  # why was named just now
    "negative-size": (sized(-5), NO_ANSWER),
    "huge-size": (sized((1 << 31) - 1), NO_ANSWER),
    "cut": (lambda answer: answer.bytes[:30], NO_ANSWER),
}


@pytest.mark.parametrize("leader", ["apache", "kraftd"])
def test_a_follower_outlasts_whatever_its_leader_answers(tmp_path: Path, leader: Kind) -> None:
    link = LyingLink()
    kinds: dict[int, Kind] = {LEADER: leader, FOLLOWER: "kraftd"}
    settings = {"num.replica.fetchers": 1, "replica.socket.timeout.ms": 3_000}
    with MixedCluster(tmp_path, kinds, links=link, settings=settings) as cluster:  # type: ignore[arg-type]
        for name, (lie, line) in (OF_PARTITION | OF_ANSWER).items():
            play(cluster, link, name, lie, line)
        assert "unexpected error" not in cluster.broker(FOLLOWER).log_text()


def play(cluster: MixedCluster, link: LyingLink, name: str, lie: Lie, line: str) -> None:
    topic = NewTopic(name, 2, replica_assignment=[[LEADER, FOLLOWER]] * 2)
    cluster.admin.create_topics([topic])[name].result(30)
    producer = Producer({"bootstrap.servers": cluster.broker(LEADER).address, "acks": 1, "log_level": 0})

    def write(count: int) -> None:
        for number in range(2 * count):
            producer.produce(name, b"%s %d" % (name.encode(), number), partition=number % 2)
        assert producer.flush(30) == 0

    def is_equal(partition: int) -> bool:
        return cluster.log(FOLLOWER, partition, name) == cluster.log(LEADER, partition, name)

    for _ in range(4):
        write(3)
    wait_until(lambda: is_equal(0) and is_equal(1), f"{name}: the follower has all", 30)
    link.topic_id, link.count = topic_id(cluster, name), 0
    before = len(cluster.broker(FOLLOWER).log_text())
    link.lie = lie
    until_s = time.monotonic() + LIE_S
    while time.monotonic() < until_s or not link.count:
        assert time.monotonic() < until_s + 30, f"{name}: nothing is fetched"
        write(1)
        time.sleep(0.05)
    if name in OF_PARTITION:
        wait_until(lambda: is_equal(1), f"{name}: the other partition goes on", 30)
    link.lie = None
    write(1)
    wait_until(lambda: is_equal(0) and is_equal(1), f"{name}: the follower has all again", 30)
    wait_until(
        lambda: all(sorted(one.isrs) == [LEADER, FOLLOWER] for one in cluster.partitions(name).values()),
        f"{name}: both are in sync",
        30,
    )
    assert line in cluster.broker(FOLLOWER).log_text()[before:], f"{name} is not named"


def topic_id(cluster: MixedCluster, name: str) -> bytes:
    with Client(HOST, cluster.broker(LEADER).port) as client:
        answer = client.call(MetadataRequest([MetadataRequestTopic(name=name)]), 12)
    return bytes(answer.topics[0].topic_id)
