"""A request that equals the last one of its connection is answered again, if its effect can be repeated."""

from __future__ import annotations

from collections.abc import Sequence

from kraftd.messages.heartbeat_request import HeartbeatRequest
from kraftd.messages.heartbeat_response import HeartbeatResponse
from kraftd.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftd.messages.offset_commit_response import OffsetCommitResponse
from kraftd.requests.answer_memo import AnswerMemo
from kraftd.requests.boundary import Boundary
from kraftd.requests.call import Call
from kraftd.requests.effects import Answer
from kraftd.requests.events import FramesReceived
from kraftd.requests.outbox import Outbox
from kraftd.requests.registry import Registry, Route
from kraftd.requests.repeated_requests import Varied
from kraftd.wire.api import ApiKey
from kraftd.wire.frames import encode_request, parse_response


class Server:
    """Answers heartbeats, and counts those that were handled; `is_same` says whether one can be repeated."""

    def __init__(self) -> None:
        self.outbox = Outbox()
        self.handled = self.repeated = 0
        self.is_same = True
        self.memo = AnswerMemo((), repeated=(ApiKey.HEARTBEAT,))
        registry = Registry([Route(ApiKey.HEARTBEAT, None, None, lambda: self.handle)])
        self.boundary = Boundary(registry, self.outbox, memo=self.memo)

    def handle(self, call: Call) -> None:
        self.handled += 1
        call.again = self.again
        self.boundary.answer(call, HeartbeatResponse(throttle_time_ms=self.handled))

    def again(self) -> bool:
        self.repeated += self.is_same
        return self.is_same

    def ask(
        self, connection_id: int, correlation_id: int, member: str = "m", client: str = "c", version: int = 4
    ) -> int:
        """Send a heartbeat; return which one that was handled its answer is of."""
        request = HeartbeatRequest("g", 1, member)
        frame = b"".join(encode_request(ApiKey.HEARTBEAT, version, correlation_id, client, request))[4:]
        views = [memoryview(frame)]
        self.boundary.take_in(FramesReceived(connection_id, 3, views, "PLAINTEXT", "10.0.0.1"))
        (answer,) = self.outbox.take()
        assert isinstance(answer, Answer)
        assert (answer.connection_id, answer.slot) == (connection_id, 3)
        header, response = parse_response(ApiKey.HEARTBEAT, version, b"".join(answer.parts)[4:])
        assert header.correlation_id == correlation_id
        number: int = response.throttle_time_ms  # type: ignore[attr-defined]
        return number


def test_an_equal_request_of_a_connection_is_answered_again() -> None:
    server = Server()
    assert [server.ask(1, number) for number in (7, 8, 9)] == [1, 1, 1]
    assert (server.handled, server.repeated) == (1, 2)
    assert server.ask(1, 10, member="other") == 2
    assert server.ask(1, 11) == 3  # only the last one is remembered
    assert server.ask(1, 12, client="d") == 4
    assert server.ask(1, 13, client="d", version=3) == 5
    assert server.ask(2, 14, client="d", version=3) == 6


def test_a_request_whose_effect_cannot_be_repeated_is_handled() -> None:
    server = Server()
    server.ask(1, 1)
    server.is_same = False
    assert server.ask(1, 2) == 2
    server.is_same = True
    assert server.ask(1, 3) == 2


def test_long_requests_and_closed_connections_are_not_remembered() -> None:
    server = Server()
    for _ in range(2):
        server.ask(1, 1, member="m" * 600)
    assert server.handled == 2
    server.ask(1, 2)
    server.memo.repeated.closed(1)
    server.memo.repeated.closed(9)
    assert server.ask(1, 3) == 4


class Numbered:
    """Answers commits, of which the second takes the numbers at places that the first has named."""

    def __init__(self) -> None:
        self.outbox = Outbox()
        self.handled = 0
        self.taken: list[tuple[Call, list[int], list[int]]] = []
        self.takes = True
        self.places: list[int] = [NUMBERS_FROM_END]
        self.memo = AnswerMemo((), repeated=(ApiKey.OFFSET_COMMIT,))
        registry = Registry([Route(ApiKey.OFFSET_COMMIT, None, None, lambda: self.handle)])
        self.boundary = Boundary(registry, self.outbox, memo=self.memo)

    def handle(self, call: Call) -> None:
        self.handled += 1
        call.varied = Varied(lambda frame: self.places, self.take)
        self.boundary.answer(call, OffsetCommitResponse(throttle_time_ms=self.handled))

    def take(self, call: Call, longs: Sequence[int], integers: Sequence[int]) -> bool:
        if self.takes:
            self.taken.append((call, list(longs), list(integers)))
        return self.takes

    def ask(self, offset: int, correlation_id: int = 1, group: str = "g", version: int = 9) -> None:
        row = OffsetCommitRequestPartition(0, offset, offset % 7)
        request = OffsetCommitRequest(group, 1, "m", topics=[OffsetCommitRequestTopic("t", partitions=[row])])
        frame = b"".join(encode_request(ApiKey.OFFSET_COMMIT, version, correlation_id, "c", request))[4:]
        self.boundary.take_in(FramesReceived(1, 3, [memoryview(frame)], "PLAINTEXT", "10.0.0.1"))


NUMBERS_FROM_END = 12 + 1 + 3  # the metadata's length, and three counts of tagged fields


def test_a_request_with_other_numbers_is_taken_and_answered_as_before() -> None:
    server = Numbered()
    server.ask(5)
    server.ask(1 << 40, 77)
    ((call, longs, integers),) = server.taken
    assert (longs, integers, server.handled) == ([1 << 40], [(1 << 40) % 7], 1)
    assert (call.key, call.version, call.slot, call.client_id) == (ApiKey.OFFSET_COMMIT, 9, 3, "c")
    server.outbox.take()
    server.boundary.answer_as_before(call)
    (answer,) = server.outbox.take()
    header, response = parse_response(ApiKey.OFFSET_COMMIT, 9, b"".join(answer.parts)[4:])  # type: ignore[attr-defined]
    assert (header.correlation_id, response.throttle_time_ms) == (77, 1)  # type: ignore[attr-defined]


def test_a_request_with_other_bytes_between_the_numbers_is_handled() -> None:
    server = Numbered()
    server.ask(5)
    server.ask(6, group="h")  # of equal length
    server.ask(7, version=8)
    assert server.handled == 3 and not server.taken
    server.ask(8, version=8)
    assert len(server.taken) == server.handled - 2 == 1


def test_a_request_that_is_not_taken_or_has_no_places_is_handled() -> None:
    server = Numbered()
    server.ask(5)
    server.takes = False
    server.ask(6)
    assert server.handled == 2
    server.takes, server.places = True, []
    server.ask(7)
    assert server.handled == 3 and not server.taken
    server.memo.repeated.closed(1)
    server.places = [NUMBERS_FROM_END]
    server.ask(8)
    assert server.handled == 4
