"""Offsets that a group has committed, each with the leader epoch of the record before it (KIP-320)."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from kraftd.client.cluster import Cluster, Pause
from kraftd.client.connection import Connection
from kraftd.client.failures import Refused, Unreachable
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

_AGAIN = frozenset(
    (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )
)


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

        async def attempt(connection: Connection) -> int:
            answer = await connection.ask(request, OffsetCommitResponse, max_version=BY_NAME)
            return answer.topics[0].partitions[0].error_code

        await self._at_coordinator(attempt)

    async def fetch(self, topic: str, index: int) -> Committed | None:
        """The committed offset, None without one. From then on, metadata older than its epoch is refused."""
        wanted = OffsetFetchRequestTopics(topic, partition_indexes=(index,))
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(self.group, topics=[wanted])], require_stable=True
        )
        found: list[Committed] = []

        async def attempt(connection: Connection) -> int:
            answer = await connection.ask(request, OffsetFetchResponse, max_version=BY_NAME)
            group = answer.groups[0]
            if group.error_code:
                return group.error_code
            partition = group.topics[0].partitions[0]
            if not partition.error_code:
                found[:] = [Committed(partition.committed_offset, partition.committed_leader_epoch)]
            return partition.error_code

        await self._at_coordinator(attempt)
        if not found or found[0].offset < 0:
            return None
        self._cluster.cache.saw_epoch(topic, index, found[0].epoch)
        return found[0]

    async def _at_coordinator(self, attempt: Callable[[Connection], Awaitable[int]]) -> None:
        pause = Pause(time.monotonic() + self._cluster.timeout_s)
        while True:
            failure: Exception
            try:
                connection = await self._cluster.connection(self._coordinator or await self._find())
                code = await attempt(connection)
                if code == ErrorCode.NONE:
                    return
                failure = Refused(f"group {self.group}: {error_name(code)}", code)
                if code not in _AGAIN:
                    raise failure
            except Unreachable as error:
                failure = error
            self._coordinator = None
            if not await pause.wait():
                raise failure

    async def _find(self) -> tuple[str, int]:
        """Ask any broker where the group's coordinator is."""
        request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=(self.group,))
        answer = await (await self._cluster.any_node()).ask(request, FindCoordinatorResponse)
        found = answer.coordinators[0]
        if found.error_code:
            raise Unreachable(f"group {self.group}: {error_name(found.error_code)}")
        self._coordinator = (found.host, found.port)
        return self._coordinator
