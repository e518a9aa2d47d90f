"""Fetches of very many partitions: work is spread over event loop callbacks, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftd.answers.effects import MetadataMoved
from kraftd.answers.log_source import LogSource
from kraftd.ground.event import DeadlineReached
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from kraftd.messages.fetch_response import FetchResponse, PartitionData
from kraftd.metadata_topic_node.large_fetches import MAX_PARTITIONS
from kraftd.types import METADATA_TOPIC_ID
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.metadata_topic_node.clients import ClientHarness, consuming

PARTITIONS = 3_000
UNKNOWN = bytes(15) + b"x"


class Counted(LogSource):
    """Counts the most partitions that were answered in one step."""

    in_step = most = 0

    def read(self, *arguments: object) -> tuple[PartitionData, int]:  # type: ignore[override]
        self.in_step += 1
        self.most = max(self.most, self.in_step)
        return super().read(*arguments)  # type: ignore[arg-type]


class Loop(ClientHarness):
    """A leader with broker 1 and the topic t of two partitions."""

    def __init__(self, tmp_path: Path) -> None:
        super().__init__(tmp_path)
        self.source = Counted(self.view, self.clients.boundary)
        self.clients.source = self.clients.fetches.sessions.source = self.source
        self.start()
        self.unfenced(1)
        self.create("t", partitions=2)

    def client_step(self, event: object) -> None:
        self.source.in_step = 0
        super().client_step(event)

    def fetch(self, request: FetchRequest, version: int = 17) -> FetchResponse:
        answer: FetchResponse = self.client_ask(ApiKey.FETCH, version, request)
        return answer

    def topic_id(self, name: str) -> bytes:
        return bytes(self.view.image.topic_names()[name])


@pytest.fixture
def harness(tmp_path: Path) -> Loop:
    return Loop(tmp_path)


def at(index: int) -> FetchPartition:
    return FetchPartition(index, partition_max_bytes=1 << 20)


def asking(*topics: FetchTopic, session_id: int = 0, epoch: int = 0, max_wait_ms: int = 500) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=max_wait_ms, min_bytes=1, session_id=session_id, session_epoch=epoch, topics=list(topics)
    )


def errors(answer: FetchResponse) -> list[tuple[str, bytes, int, int]]:
    return [
        (topic.topic, bytes(topic.topic_id), one.partition_index, one.error_code)
        for topic in answer.responses
        for one in topic.partitions
    ]


@pytest.mark.parametrize("epoch", [0, -1])
@pytest.mark.parametrize("version", [7, 12, 13, 15, 17, 18])
def test_large_fetch_is_refused_in_several_callbacks_and_keeps_no_session(
    harness: Loop, version: int, epoch: int
) -> None:
    own = harness.topic_id("t")
    expected = [(one, ErrorCode.NOT_LEADER_OR_FOLLOWER if one < 2 else 3) for one in range(PARTITIONS)]
    if version >= 13:
        unknown = [
            FetchTopic(topic_id=number.to_bytes(16), partitions=[at(0)]) for number in range(9, PARTITIONS)
        ]
        of_own = FetchTopic(topic_id=own, partitions=[*map(at, range(PARTITIONS))])
        answer = harness.fetch(asking(of_own, *unknown, epoch=epoch), version)
        code = ErrorCode.UNKNOWN_TOPIC_ID
        rest = [("", number.to_bytes(16), 0, code) for number in range(9, PARTITIONS)]
        assert errors(answer) == [("", own, one, error) for one, error in expected] + rest
    else:
        answer = harness.fetch(
            asking(FetchTopic("t", partitions=[*map(at, range(PARTITIONS))]), epoch=epoch), version
        )
        assert errors(answer) == [("t", bytes(16), one, error) for one, error in expected]
    assert answer.session_id == 0 and not len(harness.clients.fetches.sessions.cache)
    assert not harness.clients.fetches.sessions.watchers._first
    assert harness.callbacks_run > PARTITIONS // 200 and harness.source.most <= 200


def test_large_fetch_has_the_high_watermark_of_the_log_and_no_records(harness: Loop) -> None:
    unknown = FetchTopic(topic_id=UNKNOWN, partitions=[*map(at, range(PARTITIONS))])
    answer = harness.fetch(asking(unknown, FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[at(0)])))
    log = answer.responses[-1].partitions[0]
    assert (log.error_code, log.high_watermark) == (0, harness.view.high_watermark)
    assert not log.records and not harness.source._noted


def test_large_fetch_closes_the_session_that_it_names_and_answers_its_parked_fetch(harness: Loop) -> None:
    session_id = harness.fetch(consuming(0, session_epoch=0)).session_id
    end = consuming(harness.view.high_watermark, session_id=session_id, session_epoch=1, max_wait_ms=10_000)
    parked = harness.client_send(ApiKey.FETCH, 17, end, connection_id=1001)
    assert parked not in harness.answers
    many = FetchTopic(topic_id=UNKNOWN, partitions=[*map(at, range(PARTITIONS))])
    harness.fetch(asking(many, session_id=session_id))
    assert parked in harness.answers
    again = asking(session_id=session_id, epoch=2)
    assert harness.fetch(again).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("forgets", [False, True])
def test_session_that_would_become_large_is_closed(harness: Loop, forgets: bool) -> None:
    full = FetchTopic(topic_id=UNKNOWN, partitions=[*map(at, range(MAX_PARTITIONS))])
    first = harness.fetch(asking(full))
    assert first.session_id and len(errors(first)) == MAX_PARTITIONS
    assert len(errors(harness.fetch(asking(session_id=first.session_id, epoch=1)))) == MAX_PARTITIONS
    more = asking(session_id=first.session_id, epoch=2)
    if forgets:
        more.forgotten_topics_data = [ForgottenTopic("", UNKNOWN, tuple(range(MAX_PARTITIONS + 1)))]
    else:
        more.topics = [FetchTopic(topic_id=UNKNOWN, partitions=[at(MAX_PARTITIONS)])]
    assert harness.fetch(more).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert not len(harness.clients.fetches.sessions.cache)
    assert not harness.clients.fetches.sessions.watchers._first


@pytest.mark.parametrize("by", [MetadataMoved, DeadlineReached])
def test_parked_fetches_of_many_partitions_are_answered_in_several_callbacks(harness: Loop, by: type) -> None:
    missing = FetchTopic(topic_id=harness.topic_id("t"), partitions=[*map(at, range(2, 402))])
    log = FetchPartition(0, fetch_offset=harness.view.high_watermark, partition_max_bytes=1 << 20)
    request = asking(
        missing, FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[log]), epoch=-1, max_wait_ms=20
    )
    parked = [harness.client_send(ApiKey.FETCH, 17, request, connection_id=1000 + one) for one in range(10)]
    assert not set(parked) & set(harness.answers)
    if by is MetadataMoved:
        harness.create("woken")
    else:
        harness.advance(20)
        for _ in parked:
            harness.client_step(DeadlineReached())
    assert set(parked) <= set(harness.answers) and not len(harness.clients.fetches)
    assert harness.source.most <= 2 * MAX_PARTITIONS
