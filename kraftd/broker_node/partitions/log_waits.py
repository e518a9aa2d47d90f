"""Produce requests that wait for logs that are being made.

Metadata names the leader of a new partition as soon as the change is committed; a thread of the leader makes
the log after that. Apache Kafka makes it at once, so that a producer without retries may send as soon as it
knows the leader. Here its request waits for the log, at most for its own timeout.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, NamedTuple

from kraftd.requests.call import Call

if TYPE_CHECKING:
    from kraftd.broker_node.partitions.replicas import Replicas, TopicPartition


class _Waiting(NamedTuple):
    call: Call
    partitions: Collection[TopicPartition]
    until_ms: int


class LogWaits:
    """The calls that wait, in their order; `handle` handles one again."""

    def __init__(self, replicas: Replicas, handle: Callable[[Call], None]) -> None:
        self._replicas = replicas
        self._handle = handle
        self._waiting: list[_Waiting] = []
        self._released: Call | None = None  # it is being handled again, and does not wait once more

    def __len__(self) -> int:
        return len(self._waiting)

    def __repr__(self) -> str:
        return f"<LogWaits {len(self)}>"

    @property
    def may_hold(self) -> bool:
        """Return whether a call could have to wait at all."""
        return bool(self._waiting or self._replicas.opening_count)

    def holds(self, call: Call, partitions: Collection[TopicPartition], until_ms: int) -> bool:
        """Return whether a call waits from now on: a log is missing, or an earlier call of its connection
        waits, after which it must be handled.
        """
        if call is self._released:
            return False
        is_behind = any(one.call.connection_id == call.connection_id for one in self._waiting)
        if not is_behind and not self._lacks_log(partitions):
            return False
        self._waiting.append(_Waiting(call, partitions, until_ms))
        call.settled = True
        return True

    def release(self, now_ms: int) -> None:
        """Handle the calls whose logs are there, and those whose time has come."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        behind: set[int] = set()
        ready: list[Call] = []
        for one in waiting:
            is_due = one.until_ms <= now_ms
            if not is_due and (one.call.connection_id in behind or self._lacks_log(one.partitions)):
                behind.add(one.call.connection_id)
                self._waiting.append(one)
            else:
                ready.append(one.call)
        for call in ready:
            self._released = call
            call.settled = False
            self._handle(call)
        self._released = None

    def deadline_ms(self) -> int | None:
        """When a call has waited for its time; None for never."""
        return min((one.until_ms for one in self._waiting), default=None)

    def _lacks_log(self, partitions: Collection[TopicPartition]) -> bool:
        return any(map(self._replicas.leads_without_log, partitions))
