"""A fault in any kind of work for a client costs its call alone, even after the handler has returned."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.answers import to_controller
from kraftd.answers.forwarding import RETRY_MS
from kraftd.answers.log_source import LogSource
from kraftd.fetch.subscription import Subscription
from kraftd.ground.destination import Destination
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kraftd.metadata_topic_node.node import MetadataTopicNode
from kraftd.requests.call import Call
from kraftd.types import METADATA_TOPIC
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.metadata_topic_node.clients import ClientHarness, consuming

UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR
ABOUT_T = MetadataRequest([MetadataRequestTopic(name="t")])


def planted(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("planted")


@pytest.fixture(autouse=True)
def faults_are_planted(controller: ClientHarness) -> None:
    controller.may_fail = True


def check_alive(controller: ClientHarness) -> None:
    assert not controller.closed and "a request failed" in controller.logged_texts
    assert controller.clients.boundary.failures == 1
    assert controller.client_ask(ApiKey.METADATA, 13, ABOUT_T).topics[0].error_code == 0


@pytest.mark.parametrize("key", sorted(ApiKey))
def test_fault_in_every_handler_is_answered(controller: ClientHarness, key: ApiKey) -> None:
    route = controller.clients.boundary.registry.routes.get(key)
    if route is None:
        return
    route.handle = planted
    message = route.request()
    if key == ApiKey.PRODUCE:
        message.acks = 1
    call = Call(1000, 0, "CLIENT", "127.0.0.1", key, route.last, 77, "test", message)
    controller.clients.boundary.handle(call)
    line, answer = controller.clients.outbox.take()
    assert isinstance(line.fields["exc_info"], ZeroDivisionError)
    assert answer.call is call and call.settled


def test_fault_in_an_answer_that_waits_for_a_commit(controller: ClientHarness, monkeypatch: Any) -> None:
    controller.sync_by_itself = False
    controller.create("uncommitted")
    place = controller.client_send(ApiKey.METADATA, 13, ABOUT_T)
    behind = controller.client_send(ApiKey.DESCRIBE_CLUSTER, 0, DescribeClusterRequest(), connection_id=1001)
    with monkeypatch.context() as fault:
        fault.setattr(MetadataTopicNode, "_send_made", planted)
        controller.sync()
    assert controller.answer(place).topics[0].error_code == UNKNOWN
    assert controller.answer(behind).error_code == 0
    check_alive(controller)


@pytest.mark.parametrize(
    ("owner", "name"), [(LogSource, "availability"), (LogSource, "read"), (Subscription, "partition_changed")]
)
@pytest.mark.parametrize("session_epoch", [-1, 0])
def test_fault_in_the_completion_of_a_parked_fetch(
    controller: ClientHarness, monkeypatch: Any, owner: type, name: str, session_epoch: int
) -> None:
    fetch = consuming(controller.view.high_watermark, max_wait_ms=500, session_epoch=session_epoch)
    place = controller.client_send(ApiKey.FETCH, 17, fetch)
    with monkeypatch.context() as fault:
        fault.setattr(owner, name, planted)
        controller.create("news")
    assert controller.answer(place).error_code == UNKNOWN
    assert not controller.clients.client_fetches.calls and not len(controller.clients.fetches)
    controller.create("more news")
    check_alive(controller)


def test_fault_in_the_end_of_a_fetchs_wait(controller: ClientHarness, monkeypatch: Any) -> None:
    place = controller.client_send(
        ApiKey.FETCH, 17, consuming(controller.view.high_watermark, max_wait_ms=100)
    )
    with monkeypatch.context() as fault:
        fault.setattr(LogSource, "read", planted)
        controller.client_advance(100)
    assert controller.answer(place).error_code == UNKNOWN
    check_alive(controller)


def open_session(controller: ClientHarness) -> int:
    """A session of a consumer at the log's end; returns its id."""
    request = consuming(controller.view.high_watermark, session_epoch=0)
    opened = controller.client_ask(ApiKey.FETCH, 17, request)
    assert opened.error_code == ErrorCode.NONE and opened.session_id
    return int(opened.session_id)


def test_fault_in_noting_a_change_for_a_session_closes_that_session(
    controller: ClientHarness, monkeypatch: Any
) -> None:
    session_id, end_offset = open_session(controller), controller.view.high_watermark
    with monkeypatch.context() as fault:
        fault.setattr(Subscription, "partition_changed", planted)
        controller.create("news")
    assert "a fetch session failed and was closed" in controller.logged_texts
    assert controller.clients.boundary.failures == 1 and not controller.closed
    again = consuming(end_offset, session_id=session_id, session_epoch=1)
    assert controller.client_ask(ApiKey.FETCH, 17, again).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_fault_in_a_fetch_leaves_the_one_that_it_displaces_its_answer(
    controller: ClientHarness, monkeypatch: Any
) -> None:
    session_id, end_offset = open_session(controller), controller.view.high_watermark
    waiting = consuming(end_offset, session_id=session_id, session_epoch=1, max_wait_ms=500)
    displaced = controller.client_send(ApiKey.FETCH, 17, waiting)
    with monkeypatch.context() as fault:
        fault.setattr(LogSource, "read", planted)
        request = consuming(end_offset, session_id=session_id, session_epoch=2)
        place = controller.client_send(ApiKey.FETCH, 17, request, connection_id=1001)
    assert controller.answer(place).error_code == UNKNOWN
    assert controller.answer(displaced).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    check_alive(controller)


@pytest.mark.parametrize("attempt", ["first", "second"])
def test_fault_in_asking_another_node(controller: ClientHarness, monkeypatch: Any, attempt: str) -> None:
    view = type(controller.view)
    monkeypatch.setattr(view, "is_active", False)
    monkeypatch.setattr(view, "leader_id", 7)
    destination = None if attempt == "second" else Destination(7, "127.0.0.1", 9093)
    monkeypatch.setattr(view, "controller_destination", lambda _: destination)
    monkeypatch.setattr(to_controller, "envelope_of", planted)
    request = CreateTopicsRequest([CreatableTopic("by-client", 1, 1)], 1000)
    place = controller.client_send(ApiKey.CREATE_TOPICS, 7, request)
    if attempt == "second":
        assert controller.answer(place) is None
        monkeypatch.setattr(view, "controller_destination", lambda _: Destination(7, "127.0.0.1", 9093))
        controller.client_advance(RETRY_MS)
    assert controller.answer(place).topics[0].error_code == UNKNOWN
    assert not len(controller.clients.passing_on)
    check_alive(controller)


def produce(acks: int) -> ProduceRequest:
    return ProduceRequest(
        acks=acks,
        topic_data=[TopicProduceData(METADATA_TOPIC, partition_data=[PartitionProduceData(0, b"")])],
    )


@pytest.mark.parametrize("fault", [False, True])
def test_a_produce_without_an_answer_is_refused_by_closing_its_connection(
    controller: ClientHarness, fault: bool
) -> None:
    if fault:
        controller.clients.boundary.registry.routes[ApiKey.PRODUCE].handle = planted
    place = controller.client_send(ApiKey.PRODUCE, 9, produce(0))
    assert controller.answer(place) is None
    assert controller.closed[1000] == (
        "a request without an answer was refused: UNKNOWN_SERVER_ERROR"
        if fault
        else "this node takes no records"
    )
    code = UNKNOWN if fault else ErrorCode.POLICY_VIOLATION
    assert controller.clients.boundary.stats.by_key[ApiKey.PRODUCE].errors == {code: 1}


def test_a_produce_with_an_answer_is_refused_in_it(controller: ClientHarness) -> None:
    place = controller.client_send(ApiKey.PRODUCE, 9, produce(1))
    (topic,) = controller.answer(place).responses
    assert topic.partition_responses[0].error_code == ErrorCode.POLICY_VIOLATION
    assert not controller.closed
