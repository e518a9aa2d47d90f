"""Decisions too large for one turn of the loop: made, appended and applied in turns.

One at a time. Its records are made from an image that nobody changes meanwhile. Atomic ones go into the log
as one batch and are applied some a turn; others are appended and applied some a turn. Other decisions wait
behind it; a heartbeat that changes nothing, fetches, the quorum and whatever else needs no decision go on.
Should leadership be lost before an append, that has not happened; what was appended shares the fate of all
that is not committed, and is read from the log again where it had yet to be applied.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from kraftd.controller.decision import Decision, Refusal
from kraftd.controller.turns import Deciding, Turns
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.metadata.image import Image
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord, encode_records

if TYPE_CHECKING:
    from kraftd.server.call import Call
    from kraftd.server.node import Node
    from kraftd.wire.primitives import Buffer

R = TypeVar("R")

# Records of a decision that are appended and applied in the turn in which it was made: all those of a broker
# that shuts down and is not so large that it leaves its partitions some at a time.
AT_ONCE = 360
APPLIED_A_TURN = 2_500  # microseconds, about, of applying records
COSTS: dict[type, int] = {PartitionRecord: 1, PartitionChangeRecord: 7}
OTHER_COST, REMOVAL_COST = 4, 10
HANDLED_A_TURN = 8  # calls that have waited


class LongDecisions:
    """The one under way, if one is, and the calls that wait behind it."""

    def __init__(self) -> None:
        self._call: Call | None = None
        self._turns: Iterator[Sequence[Any]] | None = None  # each with the core's effects to be performed
        self._appended = False
        self._answer: list[Buffer] | None = None  # of what has been appended as one batch, which
        self._end_offset = 0  # ends there
        self._applied_end: int | None = None  # and is applied so far
        self._behind: deque[Call] = deque()
        self._handling = False

    @property
    def is_under_way(self) -> bool:
        """Whether nobody else may decide anything now."""
        return self._turns is not None

    @property
    def busy(self) -> bool:
        return self._turns is not None or bool(self._behind)

    def put_off(self, call: Call) -> bool:
        """Whether the call has to wait its turn: it is handled again then."""
        if self._turns is None and (self._handling or not self._behind):
            return False
        self._behind.append(call)
        return True

    def begin(self, node: Node, call: Call, rest: Deciding | Decision[Any]) -> None:
        """Go on, from the next turn on, with a decision that is not made yet, or has very many records."""
        self._call, self._turns, self._appended = call, self._run(node, call, rest), False
        node.turns.ask(node)

    def go_on(self, node: Node) -> None:
        """One turn."""
        if self._turns is None:
            self._handle_some(node)
            return
        if node.appends:
            node.appends.give(node)
        turns, call = self._turns, self._call
        if turns is None or call is None:
            return  # leadership ended with that
        try:
            effects = next(turns, None)
        except Refusal as refusal:
            self._end()
            node.refuse(call, refusal.code, refusal.message)
        except Exception as error:
            if self._appended:
                raise
            self._end()
            node.decision_failed(call, error)
            node.refuse(call, ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            if effects is None:
                self._end()
            else:
                node.perform(effects)

    def abandon(self, node: Node) -> int | None:
        """Leadership is lost, but not yet given up: nothing more is appended or applied.

        The first offset of what is in the log but not in the image, if anything is.
        """
        call, answer, applied_end = self._call, self._answer, self._applied_end
        self._end()
        refusal = node.not_controller()
        if call is not None and answer is not None and self._end_offset <= (node.core.high_watermark or 0):
            node.answer_decision(call, answer, self._end_offset)  # committed, if not applied
        elif call is not None:
            node.refuse(call, refusal.code, refusal.message)
        behind, self._behind = self._behind, deque()
        for waiting in behind:
            node.refuse(waiting, refusal.code, refusal.message)
        return applied_end

    def _end(self) -> None:
        self._turns = self._call = self._answer = self._applied_end = None

    def _handle_some(self, node: Node) -> None:
        """Calls that have waited, in their order, until one of them is a long one itself."""
        self._handling = True
        for _ in range(HANDLED_A_TURN):
            if not self._behind or self._turns is not None:
                break
            node.handle(self._behind.popleft())
        self._handling = False

    def _run(self, node: Node, call: Call, rest: Deciding | Decision[Any]) -> Iterator[Sequence[Any]]:
        if isinstance(rest, Decision):
            decision = rest
        else:
            decision = yield from _quiet(rest)
        yield from _quiet(node.requests.count_errors_in_turns(call.key, decision.answer))
        yield ()
        answer = yield from _quiet(call.frame_in_turns(decision.answer))
        end_offset = node.next_offset
        has_records = bool(decision.records)
        if decision.records:
            yield ()
            append = self._append_whole if decision.atomic else self._append_some_a_turn
            end_offset = yield from append(node, decision.records, answer)
        if decision.after is not None:
            decision.after(end_offset)
        node.answer_decision(call, answer, end_offset if has_records else node.appends.decided_end)

    def _append_whole(
        self, node: Node, records: list[VersionedRecord], answer: list[Buffer]
    ) -> Generator[Sequence[Any], None, int]:
        """One batch, applied in turns; the offset behind it."""
        image, epoch = node.image, node.active_epoch
        assert epoch is not None
        values = encode_records(records)
        base_offset = node.next_offset
        end_offset = base_offset + len(values)
        effects = node.appends.request(node, values, epoch, atomic=True)
        self._appended, self._applied_end = True, base_offset
        self._answer, self._end_offset = answer, end_offset
        node.sayings.note(end_offset, records)
        yield effects
        while records:
            some = next_records(image, records)
            image.apply_all([record.message for record in some], base_offset, epoch)
            base_offset += len(some)
            node.replay.next_offset = self._applied_end = base_offset
            node.appends.applied(node, some)
            yield ()
        self._applied_end = None
        return end_offset

    def _append_some_a_turn(
        self, node: Node, records: list[VersionedRecord], _: list[Buffer]
    ) -> Generator[Sequence[Any], None, int]:
        """Some records a turn, each time appended and applied; the offset behind the last."""
        image, epoch = node.image, node.active_epoch
        assert epoch is not None
        end_offset = 0
        while records:
            some = next_records(image, records)
            values = encode_records(some)
            base_offset = node.next_offset
            effects = node.appends.request(node, values, epoch, atomic=False)
            self._appended = True
            image.apply_all([record.message for record in some], base_offset, epoch)
            end_offset = node.replay.next_offset = base_offset + len(values)
            node.appends.applied(node, some)
            node.sayings.note(end_offset, some)
            yield effects
        return end_offset

    def __repr__(self) -> str:
        now = f"{self._call!r}" if self._call is not None else "none"
        return f"<LongDecisions {now} under way, {len(self._behind)} calls behind>"


def first_turn(deciding: Deciding) -> Deciding | Decision[Any]:
    """The decision, if one turn is enough for it, and otherwise what is left to do."""
    try:
        next(deciding)
    except StopIteration as end:
        decision: Decision[Any] = end.value
        return decision
    return deciding


def next_records(image: Image, records: list[VersionedRecord]) -> list[VersionedRecord]:
    """Take out, from the front, what can be applied in one turn: to let go of very many takes long, too."""
    left, count = APPLIED_A_TURN, 0
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


def _quiet(turns: Turns[R]) -> Generator[Sequence[Any], None, R]:
    """Turns in which there is nothing to be performed."""
    while True:
        try:
            next(turns)
        except StopIteration as end:
            result: R = end.value
            return result
        yield ()
