"""Produce requests of the usual kind take a short way, to the same answers as any other."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kraftd.broker_node.events import AppendsEnded
from kraftd.broker_node.partitions.produce_answers import _NUMBERS, ProduceAnswers
from kraftd.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kraftd.messages.produce_response import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from kraftd.requests.call import Call
from kraftd.requests.events import FramesReceived
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import encode_request, encode_response
from kraftd.wire.message import Message
from kraftd.wire.records import build_records_batch
from testkit.random_batches import NOW_MS
from tests.broker_node.harness import AT, BrokerHarness

ROW = (NOW_MS, None, b"value", [])
BATCH = bytes(build_records_batch([ROW]))
DAMAGED = BATCH[:-1] + b"x"


@pytest.fixture
def harness(tmp_path: Path) -> BrokerHarness:
    found = BrokerHarness(tmp_path).run()
    found.create_topic("t", 2)
    found.pass_time(100)
    return found


def send(harness: BrokerHarness, requests: Iterable[tuple[ApiKey, int, Message]]) -> list[Any]:
    """Requests that arrive together; returns their answers."""
    first, frames = len(harness.asked), []
    for slot, (key, version, request) in enumerate(requests, first):
        frames.append(memoryview(b"".join(encode_request(key, version, slot, "test", request))[4:]))
        harness.asked[slot] = (key, version)
    harness.executor.step(FramesReceived(1, first, frames, AT.listener, "127.0.0.1"))
    return [harness.response(slot) for slot in range(first, first + len(frames))]


def produce(harness: BrokerHarness, index: int, batch: bytes = BATCH, acks: int = 1) -> Any:
    return ApiKey.PRODUCE, 10, harness.produce_request("t", {index: batch}, acks)


def outcomes(answers: Iterable[Any]) -> list[tuple[int, int, int]]:
    """Index, error and base offset of each answer's only partition."""
    rows = [answer.responses[0].partition_responses[0] for answer in answers]
    return [(row.index, row.error_code, row.base_offset) for row in rows]


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize(
    "name", ["t", "long" * 40, b"".join(n.to_bytes(8, "big") for n in _NUMBERS).decode()]
)
def test_answers_are_encoded_as_any_others(version: int, name: str) -> None:
    topic_id = bytes(range(16))
    topic = TopicProduceData(name, topic_id, [PartitionProduceData(7, b"")])
    call = Call(1, 0, "", "", ApiKey.PRODUCE, version, 0, "", ProduceRequest(None, 1, 0, [topic]))
    answers = ProduceAnswers(call)
    for numbers in ((0, -1, 0), (1 << 40, NOW_MS, 12), _NUMBERS[::-1]):
        row = PartitionProduceResponse(7, 0, *numbers)
        response = ProduceResponse([TopicProduceResponse(name, topic_id, [row])])
        expected = b"".join(encode_response(ApiKey.PRODUCE, version, 5, response))
        assert b"".join(answers.encoded(5, *numbers)) == expected


@pytest.mark.parametrize("acks", [1, -1])
def test_requests_that_arrive_together_are_one_write_for_each_partition(
    harness: BrokerHarness, monkeypatch: pytest.MonkeyPatch, acks: int
) -> None:
    written: list[tuple[int, int]] = []  # index of a partition, and how many appends

    handle = harness.broker.handlers[AppendsEnded]

    def noted(event: AppendsEnded) -> None:
        written.extend((one.partition, len(one.appends)) for one in event.writes)
        handle(event)

    monkeypatch.setitem(harness.broker.handlers, AppendsEnded, noted)
    for index in (0, 1):
        harness.produce("t", BATCH, index)
    written.clear()
    answers = send(harness, [produce(harness, index, acks=acks) for index in (0, 1, 0, 1, 0)])
    assert outcomes(answers) == [(0, 0, 1), (1, 0, 1), (0, 0, 2), (1, 0, 2), (0, 0, 3)]
    assert written == [(0, 3), (1, 2)]
    order = [(0, BATCH), (1, BATCH), (0, DAMAGED), (0, BATCH), (1, BATCH)]
    answers = send(harness, [produce(harness, index, batch, acks) for index, batch in order])
    damaged = int(ErrorCode.CORRUPT_MESSAGE)
    assert outcomes(answers) == [(0, 0, 4), (1, 0, 3), (0, damaged, -1), (0, 0, 5), (1, 0, 4)]
    assert bytes(harness.read("t").records).count(b"value") == 6


def test_a_duplicate_has_the_answer_of_the_first(harness: BrokerHarness) -> None:
    batch = bytes(build_records_batch([ROW], producer_id=4, producer_epoch=0, base_sequence=0))
    answers = send(harness, [produce(harness, 0), produce(harness, 0, batch), produce(harness, 0, batch)])
    assert outcomes(answers) == [(0, 0, 0), (0, 0, 1), (0, 0, 1)]
    assert harness.produce("t", BATCH).base_offset == 2


def test_no_part_of_the_node_is_asked_for_its_deadline_if_no_request_waits(
    harness: BrokerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    monkeypatch.setattr(harness.executor, "look", lambda: looks.append(1))
    send(harness, [produce(harness, 0), produce(harness, 1)])
    harness.pass_time(2)
    assert not looks
    send(harness, [produce(harness, 0), (ApiKey.FETCH, 12, harness.fetch_request("t", {0: 0, 1: 0}))])
    harness.pass_time(2)
    assert not looks, "there are records, which the fetch gets at once"
    send(harness, [(ApiKey.FETCH, 12, harness.fetch_request("t", {0: 1 << 20}, max_wait_ms=0))])
    harness.pass_time(2)
    assert not looks
    send(harness, [produce(harness, 0), (ApiKey.FETCH, 12, harness.fetch_request("t", {0: 2}))])
    harness.pass_time(2)
    assert looks, "it waits for records"
