"""A client over its quota is throttled as by a stock node, and its connection is muted (KIP-219)."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kraftd.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kraftd.wire.message import Message
from kraftd.wire.records import build_records_batch
from testkit.client import Client
from testkit.process import HOST, wait_until
from tests.kafka.broker.pair import BrokerPair, Side

pytestmark = pytest.mark.kafka

TOPIC, CONSUMED = "throttled", "consumed"
# A rate counts whole windows of a second, so that the time between two requests changes a wait by less.
WINDOW_MS = 1_000


def set_quota(pair: BrokerPair, key: str, value: float | None) -> None:
    """Give all clients a quota, and wait until both nodes have applied it."""
    entry = EntryData([EntityData("client-id", None)], [OpData(key, value or 0.0, value is None)])
    for answer in pair.ask(AlterClientQuotasRequest([entry], False), 1):
        assert not answer.entries[0].error_code, answer  # type: ignore[union-attr]
    time.sleep(0.3)


def ask_anew(side: Side, request: Message, version: int, client: Client | None = None) -> Any:
    """The answer on a connection of its own, which nothing mutes yet."""
    with client or Client(HOST, side.clients_port) as own:
        return own.call(request, version)


def produce(size_bytes: int, topic: str = TOPIC) -> ProduceRequest:
    batch = build_records_batch([(int(time.time() * 1000), None, b"x" * size_bytes, ())])
    return ProduceRequest(
        None, 1, 10_000, [TopicProduceData(topic, partition_data=[PartitionProduceData(0, batch)])]
    )


def fetch() -> FetchRequest:
    part = FetchPartition(0, -1, 0, partition_max_bytes=250_000)
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[FetchTopic(CONSUMED, partitions=[part])],
    )


@pytest.fixture(scope="module", autouse=True)
def _topic(pair: BrokerPair) -> None:
    pair.ask(CreateTopicsRequest([CreatableTopic(one, 1, 1) for one in (TOPIC, CONSUMED)], 10_000), 7)
    pair.settle()


def test_a_producer_waits_as_long_as_at_a_stock_node(pair: BrokerPair) -> None:
    set_quota(pair, "producer_byte_rate", 10_000)
    waits = []
    for side in pair.sides:
        assert ask_anew(side, produce(50_000), 12).throttle_time_ms == 0
        waits.append([ask_anew(side, produce(50_000 + 1_000 * n), 12).throttle_time_ms for n in range(8)])
    kafka, kraftd = waits
    assert kafka[-1] > 30_000
    assert all(abs(one - other) <= WINDOW_MS for one, other in zip(kafka, kraftd, strict=True)), waits
    set_quota(pair, "producer_byte_rate", None)
    assert all(ask_anew(side, produce(50_000), 12).throttle_time_ms == 0 for side in pair.sides)


def test_a_consumer_over_its_quota_gets_an_empty_answer(pair: BrokerPair) -> None:
    for side in pair.sides:
        for _ in range(20):
            ask_anew(side, produce(20_000, CONSUMED), 12)
    set_quota(pair, "consumer_byte_rate", 30_000)
    answers = [[ask_anew(side, fetch(), 12) for _ in range(3)] for side in pair.sides]
    for first, second, third in answers:
        assert first.throttle_time_ms == 0 and len(first.responses[0].partitions[0].records) > 200_000
        for later in (second, third):
            assert later.throttle_time_ms > 4_000
            assert not any(part.records for topic in later.responses for part in topic.partitions)
    kafka, kraftd = ([one.throttle_time_ms for one in side] for side in answers)
    # Kafka sends a part of the last batch, too.
    assert all(abs(one - other) <= 2 * WINDOW_MS for one, other in zip(kafka, kraftd, strict=True)), answers
    set_quota(pair, "consumer_byte_rate", None)


def test_a_throttled_connection_is_not_read_until_the_wait_is_over(pair: BrokerPair) -> None:
    set_quota(pair, "producer_byte_rate", 100_000)
    for side in pair.sides:
        with Client(HOST, side.clients_port) as client:
            waits = [0]
            while not waits[-1]:
                waits.append(client.call(produce(400_000), 12).throttle_time_ms)
            answered_s = time.monotonic()
            client.call(ApiVersionsRequest(), 0)
            assert time.monotonic() - answered_s > waits[-1] / 1000 - 0.05, (side, waits)
    set_quota(pair, "producer_byte_rate", None)


def test_time_has_a_quota_too__kip124(pair: BrokerPair) -> None:
    set_quota(pair, "request_percentage", 0.001)
    for side in pair.sides:
        wait_until(
            lambda side=side: 0 < ask_anew(side, fetch(), 12).throttle_time_ms <= WINDOW_MS, "a wait", 20
        )  # type: ignore[misc]
    set_quota(pair, "request_percentage", None)
