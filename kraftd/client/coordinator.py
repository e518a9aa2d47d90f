"""The coordinator of a group or of a transactional id: found by FindCoordinator, and followed as it moves.

It leads the partition of an internal topic that the key's hash gives: without a leader there is none.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Set
from typing import TypeVar

from kraftd.client.cluster import Cluster, Pause, why_without_leader
from kraftd.client.connection import Connection
from kraftd.client.failures import ClientFailure, NoAnswer, Refused, Unreachable
from kraftd.client.metadata_cache import UNKNOWN_EPOCH, Partition, partition_of
from kraftd.ground.java_hashes import partition_for
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.find_coordinator_response import FindCoordinatorResponse
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.metadata_response import MetadataResponse
from kraftd.types import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kraftd.wire.error_code import ErrorCode, error_name

GROUP, TRANSACTION = 0, 1  # the types of a coordinator's key
_KINDS = {GROUP: "group", TRANSACTION: "transactional id"}
_TOPICS = {GROUP: OFFSETS_TOPIC, TRANSACTION: TRANSACTIONS_TOPIC}

# After these errors the coordinator has moved, or cannot answer yet.
COORDINATOR_ERRORS = frozenset(
    (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    )
)

Answer = TypeVar("Answer")


class Coordinator:
    """The coordinator of a key. `also_again` are errors besides that pass. Raises Refused, Unreachable."""

    def __init__(self, cluster: Cluster, key_type: int, key: str, also_again: Set[int] = frozenset()) -> None:
        self.what = f"{_KINDS[key_type]} {key}"
        self._cluster = cluster
        self._key_type, self._key = key_type, key
        self._again = COORDINATOR_ERRORS | also_again
        self._address: tuple[str, int] | None = None

    def __repr__(self) -> str:
        return f"<Coordinator of {self.what}: {self._address}>"

    async def connection(self) -> Connection:
        """The connection to the coordinator, which is looked for if it is unknown."""
        return await self._cluster.connection(self._address or await self._find())

    async def found(self) -> Connection:
        """The same, as soon as there is a coordinator that answers."""

        async def attempt(connection: Connection) -> tuple[int, Connection]:
            return ErrorCode.NONE, connection

        return await self.ask(attempt)

    def forget(self) -> None:
        """Look for the coordinator anew before the next request."""
        self._address = None

    async def ask(self, attempt: Callable[[Connection], Awaitable[tuple[int, Answer]]]) -> Answer:
        """The result of an attempt, a coroutine that returns it with Kafka's error code. It is repeated while
        the coordinator moves or loads.
        """
        return await repeated(self._cluster, self.what, self.connection, attempt, self.forget, self._again)

    async def _find(self) -> tuple[str, int]:
        """Ask any broker where the coordinator is."""
        request = FindCoordinatorRequest(key_type=self._key_type, coordinator_keys=(self._key,))
        connection = await self._cluster.any_node()
        found = (await connection.ask(request, FindCoordinatorResponse)).coordinators[0]
        if found.error_code:
            why = found.error_message
            if found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE:
                why = await self._without_leader(connection) or why
            raise Unreachable(f"{self.what}: {error_name(found.error_code)}{f': {why}' if why else ''}")
        self._address = (found.host, found.port)
        return self._address

    async def _without_leader(self, connection: Connection) -> str:
        """Why the partition that holds the key has no leader; empty if it has one, or is not known."""
        topic = _TOPICS[self._key_type]
        partitions = await _partitions(connection, topic)
        index = partition_for(self._key, len(partitions)) if partitions else 0
        known = partitions.get(index)
        if known is None or known.leader.id >= 0:
            return ""
        return why_without_leader(topic, index, known, UNKNOWN_EPOCH)


async def partitions_without_coordinator(cluster: Cluster, key_type: int) -> dict[str, str]:
    """What keys are not listed, as no broker coordinates them: by the partitions that hold them, and why."""
    topic = _TOPICS[key_type]
    partitions = await _partitions(await cluster.any_node(), topic)
    leaderless = {index: one for index, one in sorted(partitions.items()) if one.leader.id < 0}
    if not leaderless:
        return {}
    first = next(iter(leaderless))
    why = why_without_leader(topic, first, leaderless[first], UNKNOWN_EPOCH)
    count = len(leaderless)
    return {f"{count} {'partition' if count == 1 else 'partitions'} of {topic}": why}


async def _partitions(connection: Connection, topic: str) -> dict[int, Partition]:
    """The partitions of a topic as one node has them; none of one that does not exist or is not shown."""
    request = MetadataRequest([MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    answer = await connection.ask(request, MetadataResponse)
    return {one.partition_index: partition_of(one) for found in answer.topics for one in found.partitions}


async def repeated(
    cluster: Cluster,
    what: str,
    connect: Callable[[], Awaitable[Connection]],
    attempt: Callable[[Connection], Awaitable[tuple[int, Answer]]],
    failed: Callable[[], None] = lambda: None,
    again: Set[int] = COORDINATOR_ERRORS,
) -> Answer:
    """The result of an attempt at a node, repeated after the errors `again`, or while it is not reached.

    `failed` is called before each repetition. Raises Refused, Unreachable.
    """
    pause = Pause(time.monotonic() + cluster.timeout_s)
    with cluster.wait() as wait:
        wait.failure = NoAnswer(f"{what}: no answer yet")
        while True:
            failure: ClientFailure
            try:
                code, answer = await attempt(await connect())
                if code == ErrorCode.NONE:
                    return answer
                failure = Refused(f"{what}: {error_name(code)}", code)
                if code not in again:
                    raise failure
            except Unreachable as error:
                failure = error
            wait.failure = failure
            failed()
            if not await pause.wait():
                raise failure
