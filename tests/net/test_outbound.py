"""Requests to other nodes: versions, pipelining, losses, times.

There is no socket; the test runs each callback.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from kraftd.ground.destination import Destination
from kraftd.messages import alter_partition_request as alter_partition
from kraftd.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kraftd.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraftd.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraftd.messages.vote_request import PartitionData, TopicData, VoteRequest
from kraftd.messages.vote_response import VoteResponse
from kraftd.net.link import Link
from kraftd.net.outbound import Failure, Outbound, Times
from kraftd.net.splitter import FrameSplitter
from kraftd.wire.api import ApiKey
from kraftd.wire.codec import decode
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import encode_response, parse_request_header
from kraftd.wire.message import Message
from testkit.memory_transport import MemoryTransport

TIMES = Times(2000, 50, 500)
PEER = Destination(2, "127.0.0.1", 9093)
PRE_VOTE = VoteRequest(
    "cluster", 2, [TopicData("__cluster_metadata", [PartitionData(0, 3, 1, pre_vote=True)])]
)


def receive(link: Link, data: bytes) -> None:
    """Let the loop read what the peer has sent."""
    link.get_buffer(-1)[: len(data)] = data
    link.buffer_updated(len(data))


class Timer:
    def __init__(self, at_ms: int, function: Callable[[], object]) -> None:
        self.at_ms, self.function, self.is_cancelled = at_ms, function, False

    def cancel(self) -> None:
        self.function, self.is_cancelled = lambda: None, True


class World:
    """Plays the peer, the loop and the caller; `notified` has all notifications in order."""

    def __init__(self, times: Times = TIMES) -> None:
        self.ms = 1000
        self.notified: list[tuple[Any, ...]] = []
        self.silences: list[str] = []
        self.opened: list[Link] = []
        self.transport = MemoryTransport()
        self._soon: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self._timers: list[Timer] = []
        self._splitter = FrameSplitter(1 << 20)
        self.outbound = Outbound("raft-client-1", ("kraftd", "1"), self, self, times)

    # what Outbound needs of its loop

    def now_ms(self) -> int:
        return self.ms

    def call_soon(self, function: Callable[..., object], *arguments: Any) -> None:
        self._soon.append((function, arguments))

    def call_later_ms(self, delay_ms: int, function: Callable[[], object]) -> Timer:
        self._timers.append(Timer(self.ms + delay_ms, function))
        return self._timers[-1]

    def open(self, address: Destination, link: Link) -> None:
        assert address == PEER
        self.opened.append(link)

    # notifications

    def answered(self, tag: Hashable, message: Message) -> None:
        self.notified.append(("answered", tag, type(message)))

    def failed(self, tag: Hashable, failure: Failure) -> None:
        self.notified.append(("failed", tag, failure))

    def lost(self, address: Destination, reason: str) -> None:
        self.notified.append(("lost", address.node_id))

    def silent(self, address: Destination, reason: str) -> None:
        self.silences.append(reason)

    @property
    def timers(self) -> int:
        """How many timers are running."""
        return sum(not one.is_cancelled for one in self._timers)

    # actions of the test

    def send(self, tag: Hashable, message: Message = PRE_VOTE) -> None:
        self.outbound.send(tag, PEER, message)

    def wait(self, ms: int) -> None:
        for _ in range(ms):
            self.ms += 1
            due = [one for one in self._timers if one.at_ms <= self.ms]
            self._timers = [one for one in self._timers if one.at_ms > self.ms]
            for one in due:
                one.function()
        self.run_callbacks()

    def run_callbacks(self) -> None:
        soon, self._soon = self._soon, []
        for function, arguments in soon:
            function(*arguments)

    @property
    def link(self) -> Link:
        return self.opened[-1]

    def connect(self) -> None:
        self.transport = MemoryTransport()
        self.link.connection_made(self.transport)

    def sent(self) -> list[tuple[int, int, int, str | None]]:
        """Key, version, correlation id and client id of each sent request."""
        found = []
        for frame in self._splitter.feed(self.transport.take()):
            header, key, version, _ = parse_request_header(bytes(frame))
            found.append((key, version, header.correlation_id, header.client_id))
        return found

    def reply(self, key: int, version: int, correlation_id: int, message: Message) -> None:
        receive(self.link, b"".join(encode_response(key, version, correlation_id, message)))

    def offer(self, **versions: tuple[int, int]) -> None:
        """Answer the ApiVersions that was just sent."""
        [(key, version, correlation_id, _)] = self.sent()
        assert key == ApiKey.API_VERSIONS
        offered = [ApiVersion(ApiKey[name], *both) for name, both in versions.items()]
        self.reply(key, version, correlation_id, ApiVersionsResponse(api_keys=offered))


def ready(**versions: tuple[int, int]) -> World:
    """Connect, learn the versions of the other side, and send one request."""
    world = World()
    world.send("first")
    world.connect()
    world.offer(**(versions or {"VOTE": (0, 2), "BEGIN_QUORUM_EPOCH": (0, 1)}))
    return world


def test_a_connection_opens_with_api_versions_then_asks_in_the_highest_common_one() -> None:
    world = World()
    world.send("vote")
    assert len(world.opened) == 1
    world.connect()
    world.offer(VOTE=(0, 7))
    assert world.sent() == [(ApiKey.VOTE, 2, 2, "raft-client-1")]
    world.reply(ApiKey.VOTE, 2, 2, VoteResponse())
    assert world.notified == [("answered", "vote", VoteResponse)]


def test_an_answer_that_is_taken_as_it_came_may_lead_to_the_next_request_at_once() -> None:
    world = ready()
    followings: list[Message | bool] = [PRE_VOTE, False, True]
    taken: list[tuple[Any, ...]] = []

    def follow(tag: Hashable, version: int, frame: memoryview) -> Message | bool:
        taken.append((tag, version, int.from_bytes(frame[:4], "big")))
        return followings.pop(0)

    world.outbound.follow = follow
    world.sent()
    world.reply(ApiKey.VOTE, 2, 2, VoteResponse())
    assert world.sent() == [(ApiKey.VOTE, 2, 3, "raft-client-1")] and not world.notified
    assert world.timers == 1
    world.reply(ApiKey.VOTE, 2, 3, VoteResponse())
    assert world.notified == [("answered", "first", VoteResponse)] and world.timers == 0
    world.send("second")
    world.sent()
    world.reply(ApiKey.VOTE, 2, 4, VoteResponse())
    assert taken == [("first", 2, 2), ("first", 2, 3), ("second", 2, 4)]
    assert len(world.notified) == 1 and world.timers == 0
    followings.append(PRE_VOTE)
    world.send("third")
    world.sent()
    world.reply(ApiKey.VOTE, 2, 5, VoteResponse())
    world.wait(2_001)
    assert world.notified[-1] == ("failed", "third", Failure.TIMED_OUT)


def test_no_timer_runs_while_nothing_is_unanswered() -> None:
    world = ready()
    [(key, version, correlation_id, _)] = world.sent()
    assert world.timers == 1
    world.reply(key, version, correlation_id, VoteResponse())
    assert world.timers == 0
    world.send("second")
    world.wait(2_001)
    assert world.notified[-1] == ("failed", "second", Failure.TIMED_OUT)


def test_an_older_peer_is_asked_for_its_versions_again_in_a_known_version() -> None:
    world = World()
    world.send("vote")
    world.connect()
    [(key, version, correlation_id, _)] = world.sent()
    assert version == 4
    refused = ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, [ApiVersion(ApiKey.API_VERSIONS, 0, 3)])
    world.reply(key, 0, correlation_id, refused)
    [(key, version, correlation_id, _)] = world.sent()
    assert (key, version) == (ApiKey.API_VERSIONS, 3)
    world.reply(key, version, correlation_id, ApiVersionsResponse(api_keys=[ApiVersion(ApiKey.VOTE, 0, 2)]))
    assert [one[:2] for one in world.sent()] == [(ApiKey.VOTE, 2)]


def test_an_isr_goes_without_epochs_to_an_old_controller__kip903() -> None:
    isr = [alter_partition.BrokerState(1, 71), alter_partition.BrokerState(2, 82)]
    proposal = alter_partition.PartitionData(0, 3, new_isr_with_epochs=isr, partition_epoch=9)
    topics = [alter_partition.TopicData(bytes(15) + b"a", [proposal])]
    request = alter_partition.AlterPartitionRequest(1, 71, topics)
    for last, ids, members in ((2, (1, 2), []), (3, (), isr)):
        world = World()
        world.send("isr", request)
        world.connect()
        world.offer(ALTER_PARTITION=(2, last))
        (frame,) = FrameSplitter(1 << 20).feed(world.transport.take())
        _, _, version, at = parse_request_header(bytes(frame))
        sent = decode(alter_partition.AlterPartitionRequest, version, bytes(frame), at)
        (part,) = sent.topics[0].partitions
        assert (version, sent.broker_epoch, part.partition_epoch) == (last, 71, 9)
        assert (tuple(part.new_isr), part.new_isr_with_epochs) == (ids, members)


def test_a_message_that_no_common_version_carries_fails_alone__kip996() -> None:
    world = World()
    world.send("pre-vote")
    world.connect()
    world.offer(VOTE=(0, 1), BEGIN_QUORUM_EPOCH=(0, 1))
    world.run_callbacks()
    assert world.notified == [("failed", "pre-vote", Failure.UNSUPPORTED)]
    world.send("begin", BeginQuorumEpochRequest())
    assert [one[0] for one in world.sent()] == [ApiKey.BEGIN_QUORUM_EPOCH]


def test_a_request_that_the_peer_does_not_serve_fails_unsent() -> None:
    world = ready(FETCH=(4, 18))
    world.run_callbacks()
    assert world.notified == [("failed", "first", Failure.UNSUPPORTED)]


def test_requests_share_the_connection_and_are_answered_in_their_order() -> None:
    world = ready()
    world.send("second", BeginQuorumEpochRequest())
    assert len(world.opened) == 1
    (_, _, vote, _), (_, _, begin, _) = world.sent()
    world.reply(ApiKey.VOTE, 2, vote, VoteResponse())
    world.reply(ApiKey.BEGIN_QUORUM_EPOCH, 1, begin, BeginQuorumEpochResponse())
    assert [one[1] for one in world.notified] == ["first", "second"]


def test_an_answer_with_a_wrong_correlation_id_ends_the_connection() -> None:
    world = ready()
    world.reply(ApiKey.VOTE, 2, 77, VoteResponse())
    assert world.notified == [("lost", 2), ("failed", "first", Failure.UNREACHABLE)]
    assert world.transport.closed


def test_an_answer_that_cannot_be_read_ends_the_connection_and_fails_its_request() -> None:
    world = ready()
    receive(world.link, b"\x00\x00\x00\x06\x00\x00\x00\x02\x00\x99")
    assert world.notified == [("lost", 2), ("failed", "first", Failure.UNREACHABLE)]


def test_a_lost_connection_is_notified_before_its_failed_requests() -> None:
    world = ready()
    world.link.connection_lost(ConnectionResetError("reset"))
    assert world.notified == [("lost", 2), ("failed", "first", Failure.UNREACHABLE)]


def test_a_lost_connection_is_notified_without_requests_too() -> None:
    world = ready()
    [(_, _, correlation_id, _)] = world.sent()
    world.reply(ApiKey.VOTE, 2, correlation_id, VoteResponse())
    world.notified.clear()
    world.link.connection_lost(None)
    assert world.notified == [("lost", 2)]


def test_a_lost_connection_that_had_worked_is_reopened_at_once() -> None:
    world = ready()
    world.link.connection_lost(None)
    world.send("again")
    assert len(world.opened) == 2


def test_a_refused_connection_is_retried_after_an_increasing_bounded_backoff() -> None:
    world = World()
    pauses_ms = []
    last_ms = world.ms
    for _ in range(3000):
        attempts = len(world.opened)
        world.send("vote")
        world.run_callbacks()
        if len(world.opened) > attempts:
            pauses_ms.append(world.ms - last_ms)
            last_ms = world.ms
            world.link.not_opened("refused")
        world.wait(1)
    assert pauses_ms[:7] == [0, 50, 100, 200, 400, 500, 500]
    assert world.notified.count(("lost", 2)) == len(pauses_ms)
    assert world.notified.count(("failed", "vote", Failure.UNREACHABLE)) == 3000


def test_a_silent_peers_requests_time_out_without_a_notified_loss() -> None:
    world = ready()
    world.wait(2000)
    assert world.notified == []
    world.wait(1)
    assert world.notified == [("failed", "first", Failure.TIMED_OUT)]
    assert world.silences == ["no answer in time"]
    assert world.transport.closed
    world.send("again")
    assert len(world.opened) == 2


def test_an_answer_that_came_in_time_to_a_starved_process_is_read() -> None:
    world = ready()
    [(key, version, correlation_id, _)] = world.sent()
    world.ms += 5_000  # its timer rings only now, before it reads
    world.wait(1)
    world.reply(key, version, correlation_id, VoteResponse())
    world.wait(5)
    assert world.notified == [("answered", "first", VoteResponse)]


def test_requests_in_a_row_that_time_out_have_longer_each() -> None:
    """On a starved machine no answer might ever come within the first time."""
    world = World(Times(2_000, 0, 0, longest_timeout_ms=9_000))
    waits_ms = []
    for _ in range(4):
        began_ms, count = world.ms, len(world.notified)
        world.send("again")
        while len(world.notified) == count:
            world.wait(1)
        waits_ms.append(world.ms - began_ms)
    assert waits_ms == [2_001, 4_001, 8_001, 9_001]
    world.send("last")
    world.connect()
    world.offer(VOTE=(0, 2))
    [(key, version, correlation_id, _)] = world.sent()
    world.reply(key, version, correlation_id, VoteResponse())
    began_ms = world.ms
    world.send("after an answer")
    world.wait(2_001)
    assert world.notified[-1] == ("failed", "after an answer", Failure.TIMED_OUT)


def test_requests_to_an_unreachable_peer_time_out_too() -> None:
    world = World()
    world.send("vote")
    world.wait(2001)
    assert world.notified == [("failed", "vote", Failure.TIMED_OUT)]
    assert world.silences == ["no connection in time"]
    world.connect()
    assert world.transport.closed  # it came too late


def test_late_data_of_a_closed_connection_is_ignored() -> None:
    world = ready()
    world.wait(2001)
    world.notified.clear()
    old = world.link
    world.send("again")
    world.connect()
    old.connection_lost(None)
    receive(old, b"\x00\x00\x00\x04\x00\x00\x00\x01")
    assert world.notified == []
    assert not world.transport.closed


def test_after_close_no_notification_is_sent() -> None:
    world = ready()
    world.outbound.close()
    assert world.transport.closed
    world.link.connection_lost(None)
    world.wait(3000)
    assert world.notified == []


def test_bytes_and_requests_of_its_connections_are_counted() -> None:
    world = ready()
    traffic = world.outbound.traffic
    assert (traffic.opened, traffic.closed, traffic.requests, traffic.responses) == (1, 0, 2, 1)
    assert traffic.out_bytes > traffic.in_bytes > 0
    world.link.connection_lost(None)
    world.send("again")
    world.connect()
    assert (traffic.opened, traffic.closed, traffic.requests) == (2, 1, 3)
