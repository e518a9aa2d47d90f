"""Kept answers to equal requests: each equals a newly made one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kraftd.messages.list_config_resources_request import ListConfigResourcesRequest
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.vote_request import VoteRequest
from kraftd.requests import answer_memo
from kraftd.requests.answer_memo import CONNECTION_CLASSES
from kraftd.requests.events import FramesReceived
from kraftd.security.authorizer import StandardAuthorizer
from kraftd.security.authorizer_settings import AuthorizerSettings
from kraftd.types import METADATA_TOPIC
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import encode_request
from tests.metadata_topic_node.clients import CLIENT, ClientHarness


@pytest.fixture
def harness(tmp_path: Path) -> ClientHarness:
    """A leader with brokers 1 and 2 and the topic t."""
    leader = ClientHarness(tmp_path)
    leader.start()
    leader.unfenced(1)
    leader.unfenced(2)
    leader.create("t", partitions=2)
    return leader


def ask(harness: ClientHarness, *names: str, version: int = 13, connection_id: int = 1000) -> bytes | None:
    """The answer's bytes; None if there is none yet."""
    topics = [MetadataRequestTopic(name=name) for name in names] if names else None
    place = harness.client_send(ApiKey.METADATA, version, MetadataRequest(topics), connection_id)
    return harness.answers.get(place)


def kept_count(harness: ClientHarness) -> int:
    return len(harness.clients.memo.answers)


def test_an_equal_request_gets_the_kept_answer_and_is_counted(harness: ClientHarness) -> None:
    first = ask(harness, "t")
    assert kept_count(harness) == 1
    frame = b"".join(encode_request(ApiKey.METADATA, 13, 9, "another", MetadataRequest([t_named("t")])))[4:]
    callbacks = harness.callbacks_run
    place = harness.client_frame(frame, ApiKey.METADATA, 13)
    again = harness.answers[place]
    assert first is not None and (again[:4], again[8:]) == (first[:4], first[8:])
    assert again[4:8] == (9).to_bytes(4, "big")
    assert (kept_count(harness), harness.callbacks_run) == (1, callbacks)


def t_named(name: str) -> MetadataRequestTopic:
    return MetadataRequestTopic(name=name)


def test_different_requests_get_different_answers(harness: ClientHarness) -> None:
    for version in range(1, 14):
        ask(harness, "t", version=version)
    ask(harness)
    ask(harness, "t", METADATA_TOPIC)
    ask(harness, "t", connection_id=1001)
    assert kept_count(harness) == 16
    assert harness.node.image.brokers.keys() == {1, 2}
    # Connections are assigned different brokers, at most CONNECTION_CLASSES of them.
    assert ask(harness, "t", connection_id=1000) != ask(harness, "t", connection_id=1001)
    assert ask(harness, "t", connection_id=1000) == ask(harness, "t", connection_id=1000 + CONNECTION_CLASSES)


def test_every_random_change_is_in_the_next_answer(harness: ClientHarness) -> None:
    rng = random.Random(5)
    names = ["t"]
    for step in range(150):
        match rng.randrange(5):
            case 0:
                names.append(f"new-{step}")
                harness.create(names[-1], partitions=rng.randrange(1, 4))
            case 1:
                broker_id = rng.randrange(1, 5)
                epoch = harness.register(broker_id).broker_epoch
                harness.beat(broker_id, epoch, current_metadata_offset=epoch)
            case 2:
                harness.advance(rng.choice((100, 700, 9_500)))  # idle records; brokers lose their sessions
            case 3:
                harness.clients.memo.forget()
        topics = rng.choice(([], names[-1:], rng.sample(names, 1), [METADATA_TOPIC, "t"]))
        version = rng.randrange(1, 14)
        connection_id = 1000 + rng.randrange(3)
        before = ask(harness, *topics, version=version, connection_id=connection_id)
        again = ask(harness, *topics, version=version, connection_id=connection_id)
        harness.clients.memo.forget()
        assert before == again == ask(harness, *topics, version=version, connection_id=connection_id)


def test_an_answer_made_before_an_uncommitted_change_is_not_reused(harness: ClientHarness) -> None:
    assert ask(harness, "t") is not None
    harness.sync_by_itself = False
    harness.create("uncommitted")
    assert ask(harness, "t") is None
    harness.sync()
    assert kept_count(harness) == 0
    assert ask(harness, "t") is not None


def test_a_kept_answer_is_dropped_when_the_high_watermark_moves(harness: ClientHarness) -> None:
    assert ask(harness, "t", METADATA_TOPIC) is not None
    place = (harness.clients.memo.answers, next(iter(harness.clients.memo.answers)))
    harness.advance(600)  # a NoOpRecord: the high watermark moves
    assert kept_count(harness) == 0
    assert harness.clients.memo.answers is not place[0]


def test_answers_with_errors_are_made_and_counted_each_time(harness: ClientHarness) -> None:
    for _ in range(3):
        assert ask(harness, "t", "missing") is not None
    assert kept_count(harness) == 0
    errors = harness.clients.boundary.stats.by_key[ApiKey.METADATA].errors
    assert errors == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 3}


def test_requests_without_a_whole_header_are_refused_as_before(harness: ClientHarness) -> None:
    frame = b"".join(encode_request(ApiKey.METADATA, 13, 9, "c", MetadataRequest([t_named("t")])))[4:]
    ask(harness, "t")
    for end in range(2, len(frame) - 1):
        harness.client_frame(frame[:end], ApiKey.METADATA, 13, 2000 + end)
        assert 2000 + end in harness.closed
    assert kept_count(harness) == 1


def test_an_answer_behind_a_refused_request_is_not_kept_in_its_place(harness: ClientHarness) -> None:
    listed = b"".join(encode_request(ApiKey.LIST_CONFIG_RESOURCES, 1, 5, "c", ListConfigResourcesRequest()))
    frames = [
        memoryview(b"".join(encode_request(ApiKey.VOTE, 0, 4, "c", VoteRequest()))[4:]),  # not for clients
        memoryview(listed)[4:],
    ]
    harness.client_step(FramesReceived(1000, 0, frames, CLIENT, "127.0.0.1"))
    assert {(1000, 0), (1000, 1)} <= harness.answers.keys()
    assert kept_count(harness) == 0


def test_kept_answers_are_bounded_in_number_and_bytes(
    harness: ClientHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    size_bytes = len(ask(harness, "t") or b"")
    monkeypatch.setattr(answer_memo, "MAX_ANSWERS", 5)
    for version in range(1, 14):
        ask(harness, "t", version=version)
        assert 0 < kept_count(harness) <= 5
    harness.clients.memo.forget()
    monkeypatch.setattr(answer_memo, "MAX_BYTES", 2 * size_bytes + 10)
    for connection_id in range(1000, 1000 + CONNECTION_CLASSES):
        ask(harness, "t", connection_id=connection_id)
        assert 0 < kept_count(harness) <= 2
    monkeypatch.setattr(answer_memo, "MAX_BYTES", size_bytes - 1)
    harness.clients.memo.forget()
    ask(harness, "t")
    assert kept_count(harness) == 0
    ask(harness, *["t"] * 1_100)
    assert kept_count(harness) == 0


def test_nothing_is_kept_where_requests_are_authorized(tmp_path: Path) -> None:
    authorizer = StandardAuthorizer(AuthorizerSettings(super_users=frozenset({"User:ANONYMOUS"})))
    harness = ClientHarness(tmp_path, authorizer)
    harness.start()
    harness.unfenced(1)
    harness.create("t")
    for _ in range(2):
        assert ask(harness, "t") is not None
    assert kept_count(harness) == 0
