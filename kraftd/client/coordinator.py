"""The coordinator of a group or of a transactional id: found by FindCoordinator, and followed as it moves."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Set
from typing import TypeVar

from kraftd.client.cluster import Cluster, Pause
from kraftd.client.connection import Connection
from kraftd.client.failures import ClientFailure, Refused, Unreachable
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.find_coordinator_response import FindCoordinatorResponse
from kraftd.wire.error_code import ErrorCode, error_name

GROUP, TRANSACTION = 0, 1  # the types of a coordinator's key
_KINDS = {GROUP: "group", TRANSACTION: "transactional id"}

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
        answer = await (await self._cluster.any_node()).ask(request, FindCoordinatorResponse)
        found = answer.coordinators[0]
        if found.error_code:
            why = f": {found.error_message}" if found.error_message else ""
            raise Unreachable(f"{self.what}: {error_name(found.error_code)}{why}")
        self._address = (found.host, found.port)
        return self._address


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
