"""Kept answers to equal requests: each equals a newly made one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kraftd.messages.list_config_resources_request import ListConfigResourcesRequest
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.requests import answer_memo
from kraftd.requests.answer_memo import CONNECTION_CLASSES
from kraftd.requests.events import FramesReceived
from kraftd.security.authorizer import StandardAuthorizer
from kraftd.security.authorizer_settings import AuthorizerSettings
from kraftd.types import METADATA_TOPIC
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import encode_request
from tests.client_node.clients import CLIENT, ClientHouse


@pytest.fixture
def house(tmp_path: Path) -> ClientHouse:
    """A leader with brokers 1 and 2 and the topic t."""
    leader = ClientHouse(tmp_path)
    leader.start()
    leader.unfenced(1)
    leader.unfenced(2)
    leader.create("t", partitions=2)
    return leader


def ask(house: ClientHouse, *names: str, version: int = 13, connection_id: int = 1000) -> bytes | None:
    """The answer's bytes; None if there is none yet."""
    topics = [MetadataRequestTopic(name=name) for name in names] if names else None
    place = house.client_send(ApiKey.METADATA, version, MetadataRequest(topics), connection_id)
    return house.answers.get(place)


def kept_count(house: ClientHouse) -> int:
    return len(house.clients.memo.answers)


def test_an_equal_request_gets_the_kept_answer_and_is_counted(house: ClientHouse) -> None:
    first = ask(house, "t")
    assert kept_count(house) == 1
    frame = b"".join(encode_request(ApiKey.METADATA, 13, 9, "another", MetadataRequest([t_named("t")])))[4:]
    callbacks = house.callbacks_run
    place = house.client_frame(frame, ApiKey.METADATA, 13)
    again = house.answers[place]
    assert first is not None and (again[:4], again[8:]) == (first[:4], first[8:])
    assert again[4:8] == (9).to_bytes(4, "big")
    assert (kept_count(house), house.callbacks_run) == (1, callbacks)


def t_named(name: str) -> MetadataRequestTopic:
    return MetadataRequestTopic(name=name)


def test_different_requests_get_different_answers(house: ClientHouse) -> None:
    for version in range(1, 14):
        ask(house, "t", version=version)
    ask(house)
    ask(house, "t", METADATA_TOPIC)
    ask(house, "t", connection_id=1001)
    assert kept_count(house) == 16
    assert house.node.image.brokers.keys() == {1, 2}
    # Connections are assigned different brokers, at most CONNECTION_CLASSES of them.
    assert ask(house, "t", connection_id=1000) != ask(house, "t", connection_id=1001)
    assert ask(house, "t", connection_id=1000) == ask(house, "t", connection_id=1000 + CONNECTION_CLASSES)


def test_every_random_change_is_in_the_next_answer(house: ClientHouse) -> None:
    dice = random.Random(5)
    names = ["t"]
    for step in range(150):
        match dice.randrange(5):
            case 0:
                names.append(f"new-{step}")
                house.create(names[-1], partitions=dice.randrange(1, 4))
            case 1:
                broker_id = dice.randrange(1, 5)
                epoch = house.register(broker_id).broker_epoch
                house.beat(broker_id, epoch, current_metadata_offset=epoch)
            case 2:
                house.advance(dice.choice((100, 700, 9_500)))  # idle records; brokers lose their sessions
            case 3:
                house.clients.memo.forget()
        topics = dice.choice(([], names[-1:], dice.sample(names, 1), [METADATA_TOPIC, "t"]))
        version = dice.randrange(1, 14)
        connection_id = 1000 + dice.randrange(3)
        before = ask(house, *topics, version=version, connection_id=connection_id)
        again = ask(house, *topics, version=version, connection_id=connection_id)
        house.clients.memo.forget()
        assert before == again == ask(house, *topics, version=version, connection_id=connection_id)


def test_an_answer_made_before_an_uncommitted_change_is_not_reused(house: ClientHouse) -> None:
    assert ask(house, "t") is not None
    house.sync_by_itself = False
    house.create("uncommitted")
    assert ask(house, "t") is None
    house.sync()
    assert kept_count(house) == 0
    assert ask(house, "t") is not None


def test_a_kept_answer_is_dropped_when_the_high_watermark_moves(house: ClientHouse) -> None:
    assert ask(house, METADATA_TOPIC) is not None
    place = (house.clients.memo.answers, next(iter(house.clients.memo.answers)))
    house.advance(600)  # a NoOpRecord: the high watermark moves
    assert kept_count(house) == 0
    assert house.clients.memo.answers is not place[0]


def test_answers_with_errors_are_made_and_counted_each_time(house: ClientHouse) -> None:
    for _ in range(3):
        assert ask(house, "t", "missing") is not None
    assert kept_count(house) == 0
    errors = house.clients.boundary.stats.by_key[ApiKey.METADATA].errors
    assert errors == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 3}


def test_requests_without_a_whole_header_are_refused_as_before(house: ClientHouse) -> None:
    frame = b"".join(encode_request(ApiKey.METADATA, 13, 9, "c", MetadataRequest([t_named("t")])))[4:]
    ask(house, "t")
    for end in range(2, len(frame) - 1):
        house.client_frame(frame[:end], ApiKey.METADATA, 13, 2000 + end)
        assert 2000 + end in house.closed
    assert kept_count(house) == 1


def test_an_answer_behind_a_refused_request_is_not_kept_in_its_place(house: ClientHouse) -> None:
    listed = b"".join(encode_request(ApiKey.LIST_CONFIG_RESOURCES, 1, 5, "c", ListConfigResourcesRequest()))
    frames = [
        memoryview(b"\x00\x03\x00\x63" + bytes(4) + b"\xff\xff" + bytes(2)),
        memoryview(listed)[4:],
    ]
    house.client_step(FramesReceived(1000, 0, frames, CLIENT, "127.0.0.1"))
    assert {(1000, 0), (1000, 1)} <= house.answers.keys()
    assert kept_count(house) == 0


def test_kept_answers_are_bounded_in_number_and_bytes(
    house: ClientHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    size_bytes = len(ask(house, "t") or b"")
    monkeypatch.setattr(answer_memo, "MAX_ANSWERS", 5)
    for version in range(1, 14):
        ask(house, "t", version=version)
        assert 0 < kept_count(house) <= 5
    house.clients.memo.forget()
    monkeypatch.setattr(answer_memo, "MAX_BYTES", 2 * size_bytes + 10)
    for connection_id in range(1000, 1000 + CONNECTION_CLASSES):
        ask(house, "t", connection_id=connection_id)
        assert 0 < kept_count(house) <= 2
    monkeypatch.setattr(answer_memo, "MAX_BYTES", size_bytes - 1)
    house.clients.memo.forget()
    ask(house, "t")
    assert kept_count(house) == 0
    ask(house, *["t"] * 1_100)
    assert kept_count(house) == 0


def test_nothing_is_kept_where_requests_are_authorized(tmp_path: Path) -> None:
    authorizer = StandardAuthorizer(AuthorizerSettings(super_users=frozenset({"User:ANONYMOUS"})))
    house = ClientHouse(tmp_path, authorizer)
    house.start()
    house.unfenced(1)
    house.create("t")
    for _ in range(2):
        assert ask(house, "t") is not None
    assert kept_count(house) == 0
