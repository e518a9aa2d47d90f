"""DeleteRecords requests that wait until every replica's log begins where they asked for, at most for their
timeout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.broker_node.audit import audit
from kraftd.fetch.purgatory import Purgatory
from kraftd.messages.delete_records_response import DeleteRecordsPartitionResult, DeleteRecordsResponse
from kraftd.partition.reading import low_watermark, records_deleted
from kraftd.requests.boundary import Boundary
from kraftd.requests.outbox import Outbox
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.broker_node.partitions.replicas import Hosted
    from kraftd.requests.call import Call

NO_LOW_WATERMARK = -1


class Deletion:
    """One DeleteRecords, and those of its partitions that wait: with the offset of each, and its answer."""

    __slots__ = ("call", "is_judged", "part_count", "parts", "response")

    def __init__(self, call: Call) -> None:
        self.call = call
        self.response = DeleteRecordsResponse()
        self.part_count = 0
        self.is_judged = False  # all of its partitions
        self.parts: dict[int, tuple[Hosted, int, DeleteRecordsPartitionResult]] = {}  # by their order

    def __repr__(self) -> str:
        return f"<Deletion {self.call!r}, {len(self.parts)} partitions wait>"


class RecordDeletions:
    """The DeleteRecords requests that are not answered yet."""

    def __init__(self, boundary: Boundary, outbox: Outbox) -> None:
        self._boundary = boundary
        self._outbox = outbox
        self._waiting: Purgatory[tuple[Deletion, int]] = Purgatory()
        self._by_deadline: Purgatory[Deletion] = Purgatory()

    def __repr__(self) -> str:
        return f"<RecordDeletions, {len(self._by_deadline)} wait>"

    @property
    def waiting_count(self) -> int:
        """The requests that wait for replicas."""
        return len(self._by_deadline)

    def add(
        self, deletion: Deletion, hosted: Hosted, offset: int, answer: DeleteRecordsPartitionResult
    ) -> None:
        """Wait for a partition whose log begins at an offset here by now, unless it does at every replica."""
        deletion.part_count += 1
        part = deletion.part_count
        deletion.parts[part] = hosted, offset, answer
        if not self._settle(deletion, part):
            assert hosted.partition is not None
            answer.low_watermark = low_watermark(hosted.partition)  # as of now, if it waits in vain
            key = hosted.topic, hosted.index
            self._waiting.park((deletion, part), (deletion, part), [(key, offset)])

    def handled(self, deletion: Deletion, now_ms: int) -> None:
        """All partitions of a request were judged."""
        deletion.call.settled = deletion.is_judged = True
        if deletion.parts:
            self._by_deadline.park(deletion, deletion, (), now_ms + max(0, deletion.call.message.timeout_ms))
        else:
            self._answer(deletion)

    def moved(self, hosted: Hosted) -> None:
        """The low watermark of a partition moved, or it is not led any more."""
        key = hosted.topic, hosted.index
        partition = hosted.partition
        if self._waiting.lowest(key) is None:
            return
        if partition is None or not partition.is_leader:
            woken = self._waiting.complete_all(key)
        else:
            woken = self._waiting.reach(key, low_watermark(partition))
        for deletion, part in woken:
            self._settle(deletion, part)
            if deletion.is_judged and not deletion.parts:
                self._by_deadline.abandon(deletion)
                self._answer(deletion)

    def deadline_ms(self) -> int | None:
        """When `run_due` has work next; None for never."""
        return self._by_deadline.deadline_ms()

    def run_due(self, now_ms: int) -> None:
        """Answer what has waited for its timeout."""
        for deletion in self._by_deadline.expire(now_ms):
            for part, (_, _, answer) in deletion.parts.items():
                self._waiting.abandon((deletion, part))
                answer.error_code = ErrorCode.REQUEST_TIMED_OUT
            self._answer(deletion)

    def _answer(self, deletion: Deletion) -> None:
        audit(self._outbox, deletion.call, deletion.response)
        self._boundary.answer_paced(deletion.call, deletion.response)

    def _settle(self, deletion: Deletion, part: int) -> bool:
        """Fill a partition's answer, if it need not wait; return whether it is filled."""
        hosted, offset, answer = deletion.parts[part]
        partition = hosted.partition
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER if partition is None else records_deleted(partition, offset)
        if error is None:
            return False
        answer.error_code = error
        answer.low_watermark = NO_LOW_WATERMARK
        if partition is not None and not error:
            answer.low_watermark = low_watermark(partition)
        del deletion.parts[part]
        return True
