"""A fetch session gives its client what full fetches would, whatever the node does with it (KIP-227)."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kraftd.client.fetch_session import FIRST_EPOCH, LAST_EPOCH, NO_SESSION, FetchSession, Key
from kraftd.messages.fetch_request import FetchPartition, ReplicaState
from kraftd.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kraftd.types import ZERO_UUID
from kraftd.wire.error_code import ErrorCode

ORDERS = Key("orders", b"o" * 16, 0)
AGAIN = Key("orders", b"n" * 16, 0)
PAYMENTS = Key("payments", b"p" * 16, 1)
NAMELESS = Key("orders", ZERO_UUID, 0)


def answer(session_id: int, *found: tuple[Key, PartitionData], error: int = 0) -> FetchResponse:
    topics = [FetchableTopicResponse(key.topic, key.topic_id, [data]) for key, data in found]
    return FetchResponse(error_code=error, session_id=session_id, responses=topics)


def wanted(*keys: Key, offset: int = 0) -> dict[Key, FetchPartition]:
    return {key: FetchPartition(key.partition, fetch_offset=offset) for key in keys}


def opened(*keys: Key) -> FetchSession:
    session = FetchSession()
    session.request(wanted(*keys), 500, 1 << 20)
    assert session.answered(
        answer(7, *((key, PartitionData(key.partition, high_watermark=3)) for key in keys))
    )
    return session


def test_only_changes_are_requested_and_what_is_left_out_has_no_news() -> None:
    session = opened(ORDERS, PAYMENTS)
    request = session.request(wanted(ORDERS, PAYMENTS), 500, 1 << 20)
    assert (request.session_id, request.session_epoch) == (7, 1)
    assert not request.topics and not request.forgotten_topics_data
    news = session.answered(answer(7))
    assert news is not None and news[ORDERS].high_watermark == 3 and news[ORDERS].records == b""
    request = session.request(wanted(ORDERS, offset=3), 500, 1 << 20)
    assert [one.topic for one in request.topics] == ["orders"]
    assert [(one.topic, one.partitions) for one in request.forgotten_topics_data] == [("payments", (1,))]


def test_a_recreated_topic_replaces_the_former_one() -> None:
    request = opened(ORDERS).request(wanted(AGAIN), 500, 1 << 20)
    assert [one.topic_id for one in request.topics] == [AGAIN.topic_id]
    assert [one.topic_id for one in request.forgotten_topics_data] == [ORDERS.topic_id]


@pytest.mark.parametrize(
    ("error", "session_id"),
    [
        (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, NO_SESSION),
        (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 7),
        (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, 7),
    ],
)
def test_after_an_error_of_the_session_another_one_is_opened(error: ErrorCode, session_id: int) -> None:
    session = opened(ORDERS)
    session.request(wanted(ORDERS), 500, 1 << 20)
    assert session.answered(answer(0, error=error)) is None
    request = session.request(wanted(ORDERS), 500, 1 << 20)
    assert (request.session_id, request.session_epoch) == (session_id, FIRST_EPOCH)
    assert [one.topic for one in request.topics] == ["orders"]


def test_a_node_without_sessions_gets_full_requests() -> None:
    session = FetchSession()
    for _ in range(3):
        request = session.request(wanted(ORDERS), 500, 1 << 20)
        assert (request.session_id, request.session_epoch, len(request.topics)) == (NO_SESSION, 0, 1)
        assert session.answered(answer(0, (ORDERS, PartitionData(0))))


def test_a_session_changes_between_ids_and_names_by_beginning_anew() -> None:
    request = opened(ORDERS).request(wanted(NAMELESS), 500, 1 << 20)
    assert (request.session_id, request.session_epoch, request.forgotten_topics_data) == (7, FIRST_EPOCH, [])


def test_an_answer_with_a_strange_partition_or_without_a_requested_one_is_not_used() -> None:
    session = FetchSession()
    session.request(wanted(ORDERS, PAYMENTS), 500, 1 << 20)
    assert session.answered(answer(7, (ORDERS, PartitionData(0)))) is None
    session = opened(ORDERS)
    session.request(wanted(ORDERS), 500, 1 << 20)
    assert session.answered(answer(7, (PAYMENTS, PartitionData(1)))) is None
    assert session.request(wanted(ORDERS), 500, 1 << 20).session_epoch == FIRST_EPOCH


def test_a_consumer_names_no_replica__kip903() -> None:
    request = FetchSession().request(wanted(ORDERS), 500, 1 << 20)
    assert (request.replica_id, request.replica_state) == (-1, ReplicaState(-1, -1))


def test_the_epoch_after_the_largest_one_is_1() -> None:
    session = opened(ORDERS)
    session.epoch = LAST_EPOCH
    session.request(wanted(ORDERS), 500, 1 << 20)
    session.answered(answer(7))
    assert session.epoch == 1


class Node(RuleBasedStateMachine):
    """A node that keeps, evicts and refuses sessions by KIP-227's rules, and a client that fetches from it.

    Each answer gives the client what a full fetch of the same partitions would have given.
    """

    def __init__(self) -> None:
        super().__init__()
        self.client = FetchSession()
        self.marks = dict.fromkeys((ORDERS, AGAIN, PAYMENTS), 0)
        self.offsets = dict.fromkeys(self.marks, 0)
        self.subscribed: tuple[Key, ...] = (ORDERS,)
        self.sessions: dict[int, tuple[int, dict[Key, int], dict[Key, int]]] = {}
        self.next_id = 1
        self.has_room = True
        self.misses = 0

    def _serve(self) -> FetchResponse:
        """The node's answer to the client's next request."""
        parts = {
            key: FetchPartition(key.partition, fetch_offset=self.offsets[key]) for key in self.subscribed
        }
        request = self.client.request(parts, 500, 1 << 20)
        named = {
            Key(topic.topic, topic.topic_id, one.partition): one.fetch_offset
            for topic in request.topics
            for one in topic.partitions
        }
        if request.session_epoch == FIRST_EPOCH:
            self.sessions.pop(request.session_id, None)
            found = [(key, PartitionData(key.partition, high_watermark=self.marks[key])) for key in named]
            if not self.has_room:
                return answer(NO_SESSION, *found)
            self.next_id += 1
            self.sessions[self.next_id] = (1, named, {key: self.marks[key] for key in named})
            return answer(self.next_id, *found)
        held = self.sessions.get(request.session_id)
        if held is None:
            return answer(0, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        epoch, offsets, told = held
        if epoch != request.session_epoch:
            return answer(0, error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                gone = Key(topic.topic, topic.topic_id, index)
                assert offsets.pop(gone, None) is not None
                told.pop(gone)
        for key, offset in named.items():
            offsets[key] = offset
        assert offsets == {key: self.offsets[key] for key in self.subscribed}, "the node would read elsewhere"
        news = [key for key in offsets if told.get(key) != self.marks[key]]
        told.update({key: self.marks[key] for key in news})
        self.sessions[request.session_id] = (epoch + 1, offsets, told)
        found = [(key, PartitionData(key.partition, high_watermark=self.marks[key])) for key in news]
        return answer(request.session_id, *found)

    @rule(key=st.sampled_from((ORDERS, AGAIN, PAYMENTS)))
    def records_are_committed(self, key: Key) -> None:
        self.marks[key] += 1

    @rule(key=st.sampled_from((ORDERS, AGAIN, PAYMENTS)))
    def the_client_reads_on(self, key: Key) -> None:
        self.offsets[key] = self.marks[key]

    @rule(keys=st.sampled_from(((ORDERS,), (AGAIN,), (ORDERS, PAYMENTS), (AGAIN, PAYMENTS))))
    def the_client_subscribes(self, keys: tuple[Key, ...]) -> None:
        self.subscribed = keys

    @rule()
    def the_node_forgets_all_sessions(self) -> None:
        self.sessions.clear()

    @rule(room=st.booleans())
    def the_cache_has_room(self, room: bool) -> None:
        self.has_room = room

    @rule()
    def an_answer_is_lost(self) -> None:
        self._serve()
        self.client.failed()

    @rule()
    def the_client_fetches(self) -> None:
        news = self.client.answered(self._serve())
        self.misses = self.misses + 1 if news is None else 0
        if news is not None:
            assert {key: news[key].high_watermark for key in self.subscribed} == {
                key: self.marks[key] for key in self.subscribed
            }

    @invariant()
    def one_more_fetch_succeeds_after_a_refusal(self) -> None:
        assert self.misses <= 1


TestNode = Node.TestCase
TestNode.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
