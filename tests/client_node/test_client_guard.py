"""A fault in any kind of work for a client costs its call alone, also where it goes on after the handler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.client_node import to_controller
from kraftd.client_node.log_source import LogSource
from kraftd.client_node.node import ClientNode
from kraftd.client_node.passing_on import RETRY_MS
from kraftd.fetch.subscription import Subscription
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kraftd.raft.effects import Destination
from kraftd.requests.call import Call
from kraftd.types import METADATA_TOPIC
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.client_node.clients import ClientHouse, consuming

UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR
ABOUT_T = MetadataRequest([MetadataRequestTopic(name="t")])


def planted(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("planted")


@pytest.fixture
def house(tmp_path: Path) -> ClientHouse:
    """A leader with broker 1 and the topic t."""
    made = ClientHouse(tmp_path)
    made.start()
    made.unfenced(1)
    made.create("t")
    made.may_fail = True
    return made


def check_alive(house: ClientHouse) -> None:
    assert not house.closed and "a request failed" in house.logged_texts
    assert house.clients.boundary.failures == 1
    assert house.client_ask(ApiKey.METADATA, 13, ABOUT_T).topics[0].error_code == 0


@pytest.mark.parametrize("key", sorted(ApiKey))
def test_fault_in_every_handler_is_answered(house: ClientHouse, key: ApiKey) -> None:
    route = house.clients.boundary.registry.routes.get(key)
    if route is None:
        return
    route.handle = planted
    message = route.request()
    if key == ApiKey.PRODUCE:
        message.acks = 1
    call = Call(1000, 0, "CLIENT", "127.0.0.1", key, route.last, 77, "test", message)
    house.clients.boundary.handle(call)
    said, answer = house.clients.outbox.take()
    assert isinstance(said.fields["exc_info"], ZeroDivisionError)
    assert answer.call is call and call.settled


def test_fault_in_an_answer_that_waits_for_a_commit(house: ClientHouse, monkeypatch: Any) -> None:
    house.sync_by_itself = False
    house.create("uncommitted")
    place = house.client_send(ApiKey.METADATA, 13, ABOUT_T)
    behind = house.client_send(ApiKey.DESCRIBE_CLUSTER, 0, DescribeClusterRequest(), connection_id=1001)
    with monkeypatch.context() as fault:
        fault.setattr(ClientNode, "_send_made", planted)
        house.sync()
    assert house.answer(place).topics[0].error_code == UNKNOWN
    assert house.answer(behind).error_code == 0
    check_alive(house)


@pytest.mark.parametrize(
    ("owner", "name"), [(LogSource, "availability"), (LogSource, "read"), (Subscription, "partition_changed")]
)
@pytest.mark.parametrize("session_epoch", [-1, 0])
def test_fault_in_the_completion_of_a_parked_fetch(
    house: ClientHouse, monkeypatch: Any, owner: type, name: str, session_epoch: int
) -> None:
    fetch = consuming(house.view.high_watermark, max_wait_ms=500, session_epoch=session_epoch)
    place = house.client_send(ApiKey.FETCH, 17, fetch)
    with monkeypatch.context() as fault:
        fault.setattr(owner, name, planted)
        house.create("news")
    assert house.answer(place).error_code == UNKNOWN
    assert not house.clients._fetch_calls and not len(house.clients.fetches)
    house.create("more news")
    check_alive(house)


def test_fault_in_the_end_of_a_fetchs_wait(house: ClientHouse, monkeypatch: Any) -> None:
    place = house.client_send(ApiKey.FETCH, 17, consuming(house.view.high_watermark, max_wait_ms=100))
    with monkeypatch.context() as fault:
        fault.setattr(LogSource, "read", planted)
        house.client_advance(100)
    assert house.answer(place).error_code == UNKNOWN
    check_alive(house)


@pytest.mark.parametrize("attempt", ["first", "second"])
def test_fault_in_asking_another_node(house: ClientHouse, monkeypatch: Any, attempt: str) -> None:
    view = type(house.view)
    monkeypatch.setattr(view, "is_active", False)
    monkeypatch.setattr(view, "leader_id", 7)
    there = None if attempt == "second" else Destination(7, "127.0.0.1", 9093)
    monkeypatch.setattr(view, "controller_destination", lambda _: there)
    monkeypatch.setattr(to_controller, "envelope_of", planted)
    request = CreateTopicsRequest([CreatableTopic("by-client", 1, 1)], 1000)
    place = house.client_send(ApiKey.CREATE_TOPICS, 7, request)
    if attempt == "second":
        assert house.answer(place) is None
        monkeypatch.setattr(view, "controller_destination", lambda _: Destination(7, "127.0.0.1", 9093))
        house.client_advance(RETRY_MS)
    assert house.answer(place).topics[0].error_code == UNKNOWN
    assert not len(house.clients.passing_on)
    check_alive(house)


def produce(acks: int) -> ProduceRequest:
    return ProduceRequest(
        acks=acks,
        topic_data=[TopicProduceData(METADATA_TOPIC, partition_data=[PartitionProduceData(0, b"")])],
    )


@pytest.mark.parametrize("fault", [False, True])
def test_a_produce_without_an_answer_is_refused_by_closing_its_connection(
    house: ClientHouse, fault: bool
) -> None:
    if fault:
        house.clients.boundary.registry.routes[ApiKey.PRODUCE].handle = planted
    place = house.client_send(ApiKey.PRODUCE, 9, produce(0))
    assert house.answer(place) is None
    assert house.closed[1000] == (
        "a request without an answer was refused: UNKNOWN_SERVER_ERROR"
        if fault
        else "this node takes no records"
    )
    code = UNKNOWN if fault else ErrorCode.POLICY_VIOLATION
    assert house.clients.boundary.stats.by_key[ApiKey.PRODUCE].errors == {code: 1}


def test_a_produce_with_an_answer_is_refused_in_it(house: ClientHouse) -> None:
    place = house.client_send(ApiKey.PRODUCE, 9, produce(1))
    (topic,) = house.answer(place).responses
    assert topic.partition_responses[0].error_code == ErrorCode.POLICY_VIOLATION
    assert not house.closed
