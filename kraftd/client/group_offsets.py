"""Offsets that a group has committed, each with the leader epoch of the record before it (KIP-320)."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

from kraftd.client.cluster import Cluster, Pause
from kraftd.client.connection import Connection
from kraftd.client.failures import ClientFailure, Refused, Unreachable
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.find_coordinator_response import FindCoordinatorResponse
from kraftd.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftd.messages.offset_commit_response import OffsetCommitResponse
from kraftd.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kraftd.messages.offset_fetch_response import OffsetFetchResponse
from kraftd.wire.error_code import ErrorCode, error_name

GROUP = 0  # the type of a coordinator's key
BY_NAME = 9  # the last version of both APIs with topic names instead of ids

# After these errors the coordinator has moved, or cannot answer yet.
COORDINATOR_ERRORS = frozenset(
    (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    )
)
_AGAIN = COORDINATOR_ERRORS | {ErrorCode.UNSTABLE_OFFSET_COMMIT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}

Answer = TypeVar("Answer")


class Committed(NamedTuple):
    """A committed offset; epoch -1 if its commit carried none."""

    offset: int
    epoch: int


class GroupOffsets:
    """A group's offsets, at its coordinator, which it follows. Raises Refused, Unreachable."""

    def __init__(self, cluster: Cluster, group: str) -> None:
        self.group = group
        self._cluster = cluster
        self._coordinator: tuple[str, int] | None = None

    def __repr__(self) -> str:
        return f"<GroupOffsets of {self.group}, coordinator {self._coordinator}>"

    async def commit(self, topic: str, index: int, committed: Committed) -> None:
        """Commit an offset with the leader epoch of the record before it."""
        partition = OffsetCommitRequestPartition(index, committed.offset, committed.epoch)
        request = OffsetCommitRequest(
            self.group, topics=[OffsetCommitRequestTopic(topic, partitions=[partition])]
        )

        async def attempt(connection: Connection) -> tuple[int, None]:
            answer = await connection.ask(request, OffsetCommitResponse, max_version=BY_NAME)
            return answer.topics[0].partitions[0].error_code, None

        await self.at_coordinator(attempt)

    async def fetch(self, topic: str, index: int) -> Committed | None:
        """The committed offset, None without one. From then on, metadata older than its epoch is refused."""
        wanted = OffsetFetchRequestTopics(topic, partition_indexes=(index,))
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(self.group, topics=[wanted])], require_stable=True
        )

        async def attempt(connection: Connection) -> tuple[int, Committed | None]:
            answer = await connection.ask(request, OffsetFetchResponse, max_version=BY_NAME)
            group = answer.groups[0]
            if group.error_code:
                return group.error_code, None
            partition = group.topics[0].partitions[0]
            return partition.error_code, Committed(
                partition.committed_offset, partition.committed_leader_epoch
            )

        found = await self.at_coordinator(attempt)
        if found is None or found.offset < 0:
            return None
        self._cluster.cache.saw_epoch(topic, index, found.epoch)
        return found

    async def coordinator(self) -> Connection:
        """The connection to the group's coordinator, which is looked for if it is unknown."""
        return await self._cluster.connection(self._coordinator or await self._find())

    def forget_coordinator(self) -> None:
        """Look for the coordinator anew before the next request."""
        self._coordinator = None

    async def at_coordinator(self, attempt: Callable[[Connection], Awaitable[tuple[int, Answer]]]) -> Answer:
        """The result of an attempt, a coroutine that returns it with Kafka's error code. It is repeated while
        the coordinator moves or loads.
        """
        what = f"group {self.group}"
        return await repeated(self._cluster, what, self.coordinator, attempt, self.forget_coordinator)

    async def _find(self) -> tuple[str, int]:
        """Ask any broker where the group's coordinator is."""
        request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=(self.group,))
        answer = await (await self._cluster.any_node()).ask(request, FindCoordinatorResponse)
        found = answer.coordinators[0]
        if found.error_code:
            raise Unreachable(f"group {self.group}: {error_name(found.error_code)}")
        self._coordinator = (found.host, found.port)
        return self._coordinator


async def repeated(
    cluster: Cluster,
    what: str,
    connect: Callable[[], Awaitable[Connection]],
    attempt: Callable[[Connection], Awaitable[tuple[int, Answer]]],
    failed: Callable[[], None],
) -> Answer:
    """The result of an attempt at a node, repeated while that node's groups move or load, or it is not
    reached. `failed` is called before each repetition. Raises Refused, Unreachable.
    """
    pause = Pause(time.monotonic() + cluster.timeout_s)
    while True:
        failure: ClientFailure
        try:
            code, answer = await attempt(await connect())
            if code == ErrorCode.NONE:
                return answer
            failure = Refused(f"{what}: {error_name(code)}", code)
            if code not in _AGAIN:
                raise failure
        except Unreachable as error:
            failure = error
        failed()
        if not await pause.wait():
            raise failure
