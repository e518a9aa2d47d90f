"""A cluster's brokers: found by bootstrap servers, known by their metadata, one connection each.

It asks one node after the other for metadata, with growing pauses, until no needed topic is refused as stale
(KIP-232).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from kraftd.client.connection import Connection, Setup
from kraftd.client.failures import ClientFailure, NoLeader, Refused, Unreachable
from kraftd.client.metadata_cache import UNKNOWN_EPOCH, Address, Leader, MetadataCache, Partition
from kraftd.client.waits import Wait
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.metadata_response import MetadataResponse
from kraftd.wire.error_code import ErrorCode, error_name

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0
MAX_REFUSED = 100
_FOR_GOOD = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION)  # not stale metadata


class Pause:
    """Growing pauses between tries, each shortened at random by up to a fifth, until a deadline."""

    def __init__(self, deadline_s: float) -> None:
        self._deadline_s = deadline_s
        self._next_s = FIRST_PAUSE_S

    async def wait(self) -> bool:
        """Pause; return whether there is time for another try."""
        pause_s = self._next_s * (1 - random.random() / 5)
        self._next_s = min(2 * self._next_s, LONGEST_PAUSE_S)
        if time.monotonic() + pause_s >= self._deadline_s:
            return False
        await asyncio.sleep(pause_s)
        return True


class Cluster:
    """The brokers of a cluster. Raises Unreachable where none answers, and what Connection raises."""

    def __init__(
        self, bootstrap: Sequence[Address], timeout_s: float = 15.0, setup: Setup | None = None
    ) -> None:
        self.cache = MetadataCache()
        self.timeout_s = timeout_s
        self._bootstrap = list(bootstrap)
        self._setup = setup
        self._connections: dict[Address, Connection] = {}
        self._rotation = 0
        self.refused: deque[str] = deque(maxlen=MAX_REFUSED)  # the last stale answers, and why
        self.tell: Callable[[ClientFailure], None] | None = None  # gets what a call waits for, if it lasts

    def __repr__(self) -> str:
        return f"<Cluster of {self.cache!r}, {len(self._connections)} connections>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        for connection in self._connections.values():
            await connection.close()
        self._connections.clear()

    async def connection(self, address: Address) -> Connection:
        """The connection to an address, made if there is none that works."""
        connection = self._connections.get(address)
        if connection is None or not connection.is_open:
            connection = await Connection.open(*address, self.timeout_s, self._setup, "kraftd-cli")
            self._connections[address] = connection
        return connection

    async def node(self, node_id: int) -> Connection:
        """The connection to a broker. Raises Unreachable where the metadata does not have it."""
        address = self.cache.nodes.get(node_id)
        if address is None:
            raise Unreachable(f"broker {node_id} is not in the metadata")
        return await self.connection(address)

    async def any_node(self) -> Connection:
        """A connection to a node that answers. Raises Unreachable where none does."""
        failure = Unreachable("no broker is known")
        for _, address in self._nodes_rotated():
            try:
                return await self.connection(address)
            except Unreachable as error:
                failure = error
        raise failure

    def wait(self) -> Wait:
        """Begin a wait, of which `tell` gets the reason if it lasts."""
        return Wait(self.tell)

    async def refresh(self, topics: Sequence[str] | None = None) -> None:
        """Request the metadata of topics (None: all) until an answer is accepted.

        Raises NoLeader if all answers in time were older than the known metadata, Unreachable if there was
        none.
        """
        with self.wait() as wait:
            await self._refresh(wait, topics, lambda: True)

    async def leader(self, topic: str, index: int, *, at_least_epoch: int = UNKNOWN_EPOCH) -> Leader:
        """The leader of a partition, from metadata whose leader epoch is at least that.

        Raises NoLeader when there is none in time, Refused for a partition that does not exist.
        """
        self.cache.saw_epoch(topic, index, at_least_epoch)

        def is_known() -> bool:
            leader = self.cache.leader(topic, index)
            return leader is not None and leader.id >= 0 and not 0 <= leader.epoch < at_least_epoch

        def why_not() -> str:
            return why_without_leader(topic, index, self.cache.partition(topic, index), at_least_epoch)

        if not is_known():
            with self.wait() as wait:
                await self._refresh(wait, [topic], is_known, why_not)
        leader = self.cache.leader(topic, index)
        assert leader is not None
        return leader

    async def new_leader(self, topic: str, index: int, than: Leader | None, at_least_epoch: int) -> Leader:
        """The leader after one that refused or was not reached, from new metadata."""
        await self.refresh([topic])
        return await self.leader(topic, index, at_least_epoch=at_least_epoch)

    async def _refresh(
        self,
        wait: Wait,
        topics: Sequence[str] | None,
        enough: Callable[[], bool],
        wanted: Callable[[], str] = str,
    ) -> None:
        """See `refresh`. `wanted` says what an accepted answer lacks while it is not enough."""
        requested = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(requested, allow_auto_topic_creation=False)
        pause = Pause(time.monotonic() + self.timeout_s)
        failure: ClientFailure = Unreachable("no broker is known")
        while True:
            for node_id, address in self._nodes_rotated():
                try:
                    connection = await self.connection(address)
                    answer = await connection.ask(request, MetadataResponse, timeout_s=self.timeout_s / 3)
                except Unreachable as error:
                    wait.failure = failure = error
                    continue
                taken = self.cache.take(answer, node_id, topics)
                self.refused.extend(f"{connection.address}: {one.topic}: {one.why}" for one in taken.refused)
                wrong = _missing(answer, topics)
                if wrong is not None:
                    if wrong.code in _FOR_GOOD:
                        raise wrong
                    failure = wrong
                elif not taken.refused and enough():
                    return
                else:
                    why = "; ".join(f"{one.topic}: {one.why}" for one in taken.refused) or wanted()
                    failure = NoLeader(f"{connection.address}: {why}")
                break
            wait.failure = failure
            if not await pause.wait():
                raise failure

    def _nodes_rotated(self) -> list[tuple[int, Address]]:
        """All addresses, each time beginning with another, so that a retry asks another node."""
        known = list(self.cache.nodes.items())
        addresses = known + [
            (-1 - at, one) for at, one in enumerate(self._bootstrap) if one not in self.cache.nodes.values()
        ]
        self._rotation += 1
        begin = self._rotation % len(addresses) if known else 0
        return addresses[begin:] + addresses[:begin]


def why_without_leader(topic: str, index: int, known: Partition | None, at_least_epoch: int) -> str:
    """Why a partition cannot be read from or written to: its leader, and the replicas that could lead."""
    name = f"{topic}-{index}"
    if known is None:
        return f"{name}: its metadata has no such partition"
    if known.leader.id >= 0:
        return (
            f"{name}: its leader is broker {known.leader.id} in epoch {known.leader.epoch}, "
            f"and epoch {at_least_epoch} was seen before"
        )
    parts = [f"{name} has no leader; its replicas are on {brokers_text(known.replicas)}"]
    if known.isr:
        parts.append(f"the last in sync on {brokers_text(known.isr)}")
    if known.offline:
        parts.append(f"offline on {brokers_text(known.offline)}")
    return f"{', '.join(parts)}; kraftd doctor says why"


def brokers_text(ids: Sequence[int]) -> str:
    """`broker 1`, `brokers 1, 2`."""
    return f"broker{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"


def _missing(answer: MetadataResponse, topics: Sequence[str] | None) -> Refused | None:
    """The error of a requested topic; None if no error hides it."""
    if topics is None:
        return None
    for topic in answer.topics:
        if topic.error_code not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
            return Refused(f"{topic.name}: {error_name(topic.error_code)}", topic.error_code)
    return None
