"""Decisions too large for one event loop callback: made, appended and applied in several.

One long decision runs at a time. Its records are made from an image that nothing changes meanwhile. Atomic
records go into the log as one batch, others in large runs, so that the decision waits for few syncs. Appended
records are applied in slices while the disk syncs them. Other decisions wait for it; heartbeats that change
nothing, fetches and the quorum's requests do not. If the leadership is lost before an append, the append does
not happen. If it is lost afterwards, the next leader decides about the records, as about all uncommitted
ones. Those not yet applied are read from the log again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

from kraftd.controller.context import Context
from kraftd.controller.decision import Deciding, Decision
from kraftd.controller_node.deciding.appending import Appends
from kraftd.controller_node.deciding.decision_rights import DecisionRights
from kraftd.controller_node.deciding.parked_answers import ParkedAnswers
from kraftd.controller_node.watching.pending_events import PendingEvents
from kraftd.ground.pace import Slices
from kraftd.ground.refusal import Refusal
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.metadata.image import Image
from kraftd.replica.core_driver import CoreDriver
from kraftd.replica.following import Following
from kraftd.replica.next_slice import NextSlice
from kraftd.requests.boundary import Boundary
from kraftd.requests.call import Call
from kraftd.requests.refused_rows import RefusedRows
from kraftd.wire.message import Message
from kraftd.wire.primitives import Buffer
from kraftd.wire.record_frame import VersionedRecord, encode_records

# The effects of the core that a slice has, None without any.
SliceEffects = Sequence[Any] | None

# Records that a decision may append and apply within one slice. They are enough for the shutdown of a broker,
# unless it has so many partitions that it leaves them in parts.
MAX_INLINE_RECORDS = 360
MAX_RUN_RECORDS = 2_000  # per append; an atomic decision's records are one run
APPLY_BUDGET_US = 2_500
# Of partitions that a broker in this process hosts; others cost a fraction.
COSTS: dict[type, int] = {PartitionRecord: 4, PartitionChangeRecord: 5}
OTHER_COST, REMOVAL_COST = 4, 10
WAITING_CALLS_PER_CALLBACK = 8  # of calls that have waited
_DONE: Any = object()


class LongDecisions:
    """The decision under way, if there is one, and the calls that wait behind it.

    `failures` counts decisions that failed unexpectedly.
    """

    def __init__(
        self,
        boundary: Boundary,
        context: Context,
        rights: DecisionRights,
        following: Following,
        appends: Appends,
        parked: ParkedAnswers,
        driver: CoreDriver,
        pending_events: PendingEvents,
        next_slice: NextSlice,
    ) -> None:
        self.failures = 0
        self._boundary = boundary
        self._context = context
        self._rights = rights
        self._following = following
        self._appends = appends
        self._parked = parked
        self._driver = driver
        self._pending_events = pending_events
        self._next_slice = next_slice
        self._call: Call | None = None
        self._steps: Iterator[SliceEffects] | None = None
        self._appended = False  # records in the log may be missing in the image
        # For a decision appended as a whole: its answer and end offset. For a run: how far it is applied.
        self._answer: list[Buffer] | None = None
        self._end_offset = 0
        self._applied_end: int | None = None
        # Each with the time in ms at which its wait began, and what to do then.
        self._behind: deque[tuple[Call, int, Callable[[], None]]] = deque()
        self._handling = False

    @property
    def is_under_way(self) -> bool:
        """Return whether a long decision prevents all others now."""
        return self._steps is not None

    @property
    def busy(self) -> bool:
        """Return whether there is something to do in the next slice."""
        return self._steps is not None or bool(self._behind)

    def put_off(self, call: Call, again: Callable[[], None]) -> bool:
        """Return whether the call has to wait; if so, `again` is called later."""
        if self._steps is None and (self._handling or not self._behind):
            return False
        self._behind.append((call, self._context.now_ms, again))
        return True

    def begin(self, call: Call, rest: Deciding | Decision[Any], refused: RefusedRows | None = None) -> None:
        """Continue, from the next slice on, a decision that is not made yet or has very many records."""
        self._call, self._steps, self._appended = call, self._run(call, rest, refused), False
        self._next_slice.schedule()

    def frame(self, call: Call, response: Message, refused: RefusedRows | None) -> Slices[list[Buffer]]:
        """Count the errors of an answer and frame it, in slices; consumes it."""
        if refused:
            self._boundary.count_refused(call, refused.codes)
        yield from self._boundary.count_in_slices(call, response)
        return (yield from call.frame_in_slices(response, refused.encoded if refused else None))

    def go_on(self) -> None:
        """Do one slice."""
        if self._steps is None:
            self._handle_some()
            return
        self._appends.flush()
        steps, call = self._steps, self._call
        if steps is None or call is None:
            return  # the step ended the leadership
        try:
            effects = next(steps, _DONE)
        except Exception as error:
            if not isinstance(error, Refusal):
                if self._appended:
                    raise
                self.failures += 1
            elif self._call is not call:
                return  # the step that refused the append also ended the leadership
            self._end()
            self._boundary.guard(call, error)
        else:
            if effects is _DONE:
                self._end()
            else:
                self._driver.perform(effects or ())

    def abandon(self) -> int | None:
        """Stop appending and applying: the leadership is lost, but not yet given up.

        Returns the first offset that is in the log but not in the image, if any.
        """
        call, answer, applied_end = self._call, self._answer, self._applied_end
        self._end()
        refusal = self._rights.not_controller()
        committed_end = self._driver.core.high_watermark or 0
        if call is not None and answer is not None and self._end_offset <= committed_end:
            self._parked.answer(call, answer, self._end_offset)  # committed, though perhaps not applied
        elif call is not None:
            self._boundary.refuse(call, refusal.code, refusal.message)
        behind, self._behind = self._behind, deque()
        for waiting, _, _again in behind:
            self._boundary.refuse(waiting, refusal.code, refusal.message)
        return applied_end

    def _end(self) -> None:
        self._steps = self._call = self._answer = self._applied_end = None

    def _handle_some(self) -> None:
        """Handle waiting calls in their order, until one of them needs many slices itself."""
        self._handling = True
        for _ in range(WAITING_CALLS_PER_CALLBACK):
            if not self._behind or self._steps is not None:
                break
            call, since_ms, again = self._behind.popleft()
            take_time_off(call, self._context.now_ms - since_ms)
            try:
                again()
            except Exception as error:
                self._boundary.guard(call, error)
        self._handling = False

    def _run(
        self, call: Call, rest: Deciding | Decision[Any], refused: RefusedRows | None
    ) -> Iterator[SliceEffects]:
        if isinstance(rest, Decision):
            decision = rest
        else:
            decision = yield from rest
        if not decision.records:
            if decision.after is not None:
                decision.after(self._appends.next_offset)
            self._boundary.large.begin(call, self._answer_later(call, decision, refused))
            return
        answer = yield from self.frame(call, decision.answer, refused)
        yield None
        end_offset = yield from self._append_in_runs(decision.records, decision.atomic, answer)
        if decision.after is not None:
            decision.after(end_offset)
        self._parked.answer(call, answer, end_offset)

    def _answer_later(self, call: Call, decision: Decision[Any], refused: RefusedRows | None) -> Slices[None]:
        """Answer with a decision that changes nothing, while others are taken."""
        epoch, end_offset = self._rights.active_epoch, self._appends.decided_end
        answer = yield from self.frame(call, decision.answer, refused)
        if epoch is not None and self._rights.active_epoch != epoch:
            raise self._rights.not_controller()  # what the answer reflects may be undone
        self._parked.answer(call, answer, end_offset)

    def _append_in_runs(
        self, records: list[VersionedRecord], atomic: bool, answer: list[Buffer]
    ) -> Generator[SliceEffects, None, int]:
        """Append and apply all records, freeing them on the way; returns the offset after the last."""
        run_length = len(records) if atomic else MAX_RUN_RECORDS
        end_offset = 0
        while records:
            run = records[:run_length]
            del records[:run_length]
            end_offset = yield from self._append_run(run, atomic, None if records else answer)
        return end_offset

    def _append_run(
        self, records: list[VersionedRecord], atomic: bool, answer: list[Buffer] | None
    ) -> Generator[SliceEffects, None, int]:
        """Append records at once, encode and apply them in slices; returns the offset after them.

        `answer` is the decision's, passed with the last of its records.
        """
        values: list[bytes] = []
        for first in range(0, len(records), MAX_RUN_RECORDS):
            if values:
                yield None
            values += encode_records(records[first : first + MAX_RUN_RECORDS])
        image, epoch = self._context.image, self._rights.active_epoch
        assert epoch is not None
        base_offset = self._appends.next_offset
        end_offset = base_offset + len(values)
        effects = self._appends.request(values, epoch, atomic)
        self._appended, self._applied_end = True, base_offset
        self._answer, self._end_offset = answer, end_offset
        self._pending_events.note(image, end_offset, records, self._call)
        yield effects
        while records:
            some = next_records(image, records)
            image.apply_all([record.message for record in some], base_offset, epoch)
            base_offset += len(some)
            self._applied_end = base_offset
            self._following.applied(some, base_offset)
            yield None
        self._appended, self._applied_end = False, None
        return end_offset

    def __repr__(self) -> str:
        now = f"{self._call!r}" if self._call is not None else "none"
        return f"<LongDecisions {now} under way, {len(self._behind)} calls behind>"


def take_time_off(call: Call, waited_ms: int) -> None:
    """Subtract the time that a call has waited from its request's timeout."""
    timeout_ms = getattr(call.message, "timeout_ms", None)
    if timeout_ms is not None:
        call.message.timeout_ms = timeout_ms - waited_ms


def first_slice(deciding: Deciding) -> Deciding | Decision[Any]:
    """The decision, if one slice is enough for it; otherwise the rest of the work."""
    try:
        next(deciding)
    except StopIteration as end:
        decision: Decision[Any] = end.value
        return decision
    return deciding


def next_records(image: Image, records: list[VersionedRecord]) -> list[VersionedRecord]:
    """Remove and return the first records, as many as one slice can apply; freeing very many partitions takes
    time, too.
    """
    left, count = APPLY_BUDGET_US, 0
    for message, _ in records:
        count += 1
        if type(message) is RemoveTopicRecord:
            topic = image.topics.get(message.topic_id)
            left -= REMOVAL_COST + (0 if topic is None else len(topic.partitions))
        else:
            left -= COSTS.get(type(message), OTHER_COST)
        if left <= 0:
            break
    some = records[:count]
    del records[:count]
    return some
