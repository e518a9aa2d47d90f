"""Produce requests that wait for logs that are being made.

Metadata names the leader of a new partition as soon as the change is committed; a thread of the leader makes
the log after that. Apache Kafka makes it at once, so that a producer without retries may send as soon as it
knows the leader. Here its request waits for the log, at most for its own timeout, and holds its connection.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from kraftd.named_tuple import NamedTuple

if TYPE_CHECKING:
    from kraftd.broker_node.partitions.replicas import Replicas, TopicPartition
    from kraftd.requests.boundary import Boundary
    from kraftd.requests.call import Call
    from kraftd.requests.holds import Hold


class _Waiting(NamedTuple):
    call: Call
    partitions: Collection[TopicPartition]
    until_ms: int
    hold: Hold


class LogWaits:
    """The calls that wait, in their order."""

    def __init__(self, replicas: Replicas, boundary: Boundary) -> None:
        self._replicas = replicas
        self._boundary = boundary
        self._waiting: list[_Waiting] = []
        self._released: Call | None = None  # it is being handled again, and does not wait once more

    def __len__(self) -> int:
        return len(self._waiting)

    def __repr__(self) -> str:
        return f"<LogWaits {len(self)}>"

    def holds(self, call: Call, partitions: Collection[TopicPartition], until_ms: int) -> bool:
        """Return whether a call waits from now on, because a log is missing."""
        if call is self._released or not self._lacks_log(partitions):
            return False
        hold = self._boundary.holds.hold(call.connection_id)
        self._waiting.append(_Waiting(call, partitions, until_ms, hold))
        call.settled = True
        return True

    def release(self, now_ms: int) -> None:
        """Handle the calls whose logs are there, and those whose time has come."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if one.until_ms > now_ms and self._lacks_log(one.partitions):
                self._waiting.append(one)
                continue
            self._released = one.call
            one.call.settled = False
            self._boundary.handle(one.call)
            one.hold.end()
        self._released = None

    def deadline_ms(self) -> int | None:
        """When a call has waited for its time; None for never."""
        return min([one.until_ms for one in self._waiting]) if self._waiting else None

    def _lacks_log(self, partitions: Collection[TopicPartition]) -> bool:
        return any(map(self._replicas.leads_without_log, partitions))
