"""A group of very many members that join at once, until each has its part, by both protocols.

Each member has a connection. It does what clients do: it joins again when a rebalance is under way, and asks
every HEARTBEAT_S whether one is.
"""

from __future__ import annotations

import heapq
import selectors
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from bench.coordinator_client import (
    CONSUMER_HEARTBEAT_VERSION,
    HEARTBEAT_VERSION,
    JOIN_VERSION,
    RETRIED,
    RETRY_S,
    SYNC_VERSION,
    TIMEOUT_MS,
    Member,
    join_request,
    sync_request,
)
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest, TopicPartitions
from kraftd.messages.heartbeat_request import HeartbeatRequest
from kraftd.messages.join_group_request import JoinGroupRequest
from kraftd.messages.sync_group_request import SyncGroupRequest
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import parse_response
from kraftd.wire.message import Message
from kraftd.wire.table import api_key
from testkit.client import Client
from testkit.cluster import random_uuid
from testkit.node import CombinedNode
from testkit.process import HOST

HEARTBEAT_S = 0.5
LIMIT_S = 150
GROUP = "large"
VERSIONS: dict[type, int] = {
    JoinGroupRequest: JOIN_VERSION,
    SyncGroupRequest: SYNC_VERSION,
    HeartbeatRequest: HEARTBEAT_VERSION,
    ConsumerGroupHeartbeatRequest: CONSUMER_HEARTBEAT_VERSION,
}
REJOINS = (
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.MEMBER_ID_REQUIRED,
    ErrorCode.UNKNOWN_MEMBER_ID,
)


class ClassicMember:
    """A member of a classic group. `settled` is the generation in which it has its assignment, 0 before."""

    def __init__(self) -> None:
        self.member_id, self.generation, self.settled = "", 0, 0

    def first(self) -> Message:
        return join_request(GROUP, "")

    def next(self, sent: Message, answer: object) -> tuple[Message, float]:
        """The next request, and how long it waits. Raises RuntimeError for an unexpected error."""
        code = answer.error_code  # type: ignore[attr-defined]
        if isinstance(sent, JoinGroupRequest) and code in (0, ErrorCode.MEMBER_ID_REQUIRED):
            self.member_id = answer.member_id  # type: ignore[attr-defined]
        if code in REJOINS:
            self.settled = 0
            known = "" if code == ErrorCode.UNKNOWN_MEMBER_ID else self.member_id
            return join_request(GROUP, known), 0
        if code:
            raise RuntimeError(f"{sent!r} was answered with {answer!r}")
        if isinstance(sent, JoinGroupRequest):
            self.generation = answer.generation_id  # type: ignore[attr-defined]
            members = [one.member_id for one in answer.members]  # type: ignore[attr-defined]
            return sync_request(Member(GROUP, self.generation, self.member_id), members), 0
        self.settled = self.generation
        return HeartbeatRequest(GROUP, self.generation, self.member_id), HEARTBEAT_S


class ConsumerMember:
    """A member of a group of the consumer protocol. `partitions` are what it was given and has confirmed."""

    def __init__(self, topic: str, topic_id: bytes) -> None:
        self.member_id, self.partitions = random_uuid(), frozenset[int]()
        self._topic, self._topic_id = topic, topic_id

    def first(self) -> Message:
        return ConsumerGroupHeartbeatRequest(
            GROUP,
            self.member_id,
            0,
            rebalance_timeout_ms=TIMEOUT_MS,
            subscribed_topic_names=(self._topic,),
            topic_partitions=[],
        )

    def next(self, sent: Message, answer: object) -> tuple[Message, float]:
        """The next request, and how long it waits. Raises RuntimeError for an error."""
        if answer.error_code:  # type: ignore[attr-defined]
            raise RuntimeError(f"{sent!r} was answered with {answer!r}")
        request = ConsumerGroupHeartbeatRequest(GROUP, self.member_id, answer.member_epoch)  # type: ignore[attr-defined]
        given = answer.assignment  # type: ignore[attr-defined]
        if given is None:
            return request, HEARTBEAT_S
        self.partitions = frozenset(index for row in given.topic_partitions for index in row.partitions)
        request.topic_partitions = [TopicPartitions(self._topic_id, tuple(sorted(self.partitions)))]
        return request, 0


Members = list[ClassicMember] | list[ConsumerMember]


class Settled(NamedTuple):
    """How long a group took to settle, and the server's CPU seconds meanwhile."""

    wall_s: float
    cpu_s: float


def classic_group(node: CombinedNode, _topic: str, _topic_id: bytes, count: int) -> Settled:
    """From the first join until all members have an assignment of the same generation."""
    members = [ClassicMember() for _ in range(count)]

    def is_settled() -> bool:
        generation = members[0].settled
        return generation > 0 and all(one.settled == generation for one in members)

    return _settle(node, members, is_settled)


def consumer_group(node: CombinedNode, topic: str, topic_id: bytes, count: int) -> Settled:
    """From the first heartbeat until each of as many partitions has one member."""
    members = [ConsumerMember(topic, topic_id) for _ in range(count)]

    def is_settled() -> bool:
        if not all(len(one.partitions) == 1 for one in members):
            return False
        return len({index for one in members for index in one.partitions}) == count

    return _settle(node, members, is_settled)


@contextmanager
def _connected(node: CombinedNode, count: int) -> Iterator[list[Client]]:
    clients = [Client(HOST, node.client_port, client_id="bench", timeout_s=120) for _ in range(count)]
    try:
        yield clients
    finally:
        for client in clients:
            client.close()


def _settle(node: CombinedNode, members: Members, is_settled: Callable[[], bool]) -> Settled:
    with _connected(node, len(members)) as clients, selectors.DefaultSelector() as selector:
        sent: list[Message] = [member.first() for member in members]
        for at, client in enumerate(clients):
            selector.register(client.socket, selectors.EVENT_READ, at)
        began, before_s = time.perf_counter(), node.cpu_s()
        due: list[tuple[float, int, Message]] = []
        for at, client in enumerate(clients):
            client.socket.sendall(client.frame(sent[at], VERSIONS[type(sent[at])]))
        while not is_settled():
            now = time.perf_counter()
            if now - began > LIMIT_S:
                raise TimeoutError(f"the group did not settle within {LIMIT_S} s")
            while due and due[0][0] <= now:
                _, at, sent[at] = heapq.heappop(due)
                clients[at].socket.sendall(clients[at].frame(sent[at], VERSIONS[type(sent[at])]))
            for key, _ in selector.select(max(0.0, due[0][0] - now) if due else HEARTBEAT_S):
                at = key.data
                version = VERSIONS[type(sent[at])]
                _, answer = parse_response(api_key(sent[at]), version, clients[at].receive_frame())
                if answer.error_code in RETRIED:  # type: ignore[attr-defined]
                    request, wait_s = sent[at], RETRY_S
                else:
                    request, wait_s = members[at].next(sent[at], answer)
                if wait_s:
                    heapq.heappush(due, (now + wait_s, at, request))
                else:
                    sent[at] = request
                    clients[at].socket.sendall(clients[at].frame(request, VERSIONS[type(request)]))
        return Settled(time.perf_counter() - began, node.cpu_s() - before_s)
