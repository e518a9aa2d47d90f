"""Decisions too large for one turn of the loop: made, appended and applied in turns.

One at a time. Its records are made from an image that nobody changes meanwhile, go into the log as one batch,
and are applied some a turn. Other decisions wait behind it; a heartbeat that changes nothing, fetches, the
quorum and whatever else needs no decision go on. Should leadership be lost before its append, nothing has
happened; after it, the rest is applied at once and shares the fate of all that is not committed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kraftd.controller.decision import Decision, Refusal
from kraftd.server.effects import TakeTurn
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import encode_records

if TYPE_CHECKING:
    from kraftd.server.call import Call
    from kraftd.server.node import Node

Deciding = Generator[None, None, Decision[Any]]

APPLIED_A_TURN = 2_000  # records
HANDLED_A_TURN = 8  # calls that have waited


class LongDecisions:
    """The one under way, if one is, and the calls that wait behind it."""

    def __init__(self) -> None:
        self._call: Call | None = None
        self._turns: Iterator[Sequence[Any]] | None = None  # each with the core's effects to be performed
        self._appended = False
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

    def begin(self, node: Node, call: Call, deciding: Deciding) -> None:
        """The first turn of a decision; a TakeTurn for each that follows."""
        self._call, self._turns, self._appended = call, self._run(node, call, deciding), False
        self.go_on(node)

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
            self._end(node)
            node.refuse(call, refusal.code, refusal.message)
        except Exception as error:
            if self._appended:
                raise
            self._end(node)
            node.decision_failed(call, error)
            node.refuse(call, ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            if effects is None:
                self._end(node)
            else:
                node.emit(TakeTurn())
                node.perform(effects)

    def abandon(self, node: Node) -> None:
        """Leadership is lost, but not yet given up."""
        turns, call = self._turns, self._call
        self._turns = self._call = None
        refusal = node.not_controller()
        if turns is not None and self._appended:
            for _ in turns:
                pass
        elif call is not None:
            node.refuse(call, refusal.code, refusal.message)
        behind, self._behind = self._behind, deque()
        for waiting in behind:
            node.refuse(waiting, refusal.code, refusal.message)

    def _end(self, node: Node) -> None:
        self._turns = self._call = None
        if self._behind:
            node.emit(TakeTurn())

    def _handle_some(self, node: Node) -> None:
        """Calls that have waited, in their order, until one of them is a long one itself."""
        self._handling = True
        for _ in range(HANDLED_A_TURN):
            if not self._behind or self._turns is not None:
                break
            node.handle(self._behind.popleft())
        self._handling = False
        if self._behind and self._turns is None:
            node.emit(TakeTurn())

    def _run(self, node: Node, call: Call, deciding: Deciding) -> Iterator[Sequence[Any]]:
        epoch = node.active_epoch
        assert epoch is not None
        while True:
            try:
                next(deciding)
            except StopIteration as end:
                decision: Decision[Any] = end.value
                break
            yield ()
        node.requests.count_errors(call.key, decision.answer)
        parts = call.frame(decision.answer)
        end_offset = node.next_offset
        if decision.records:
            yield ()
            values = encode_records(decision.records)
            yield ()
            base_offset = node.next_offset
            effects = node.appends.request(node, values, epoch, decision.atomic)
            end_offset = base_offset + len(values)
            self._appended = True
            node.sayings.note(end_offset, decision.records)
            yield effects
            messages = [record.message for record in decision.records]
            for first in range(0, len(messages), APPLIED_A_TURN):
                some = messages[first : first + APPLIED_A_TURN]
                node.image.apply_all(some, base_offset + first, epoch)
                node.replay.next_offset = base_offset + first + len(some)
                yield ()
            node.appends.applied(node, decision.records)
        if decision.after is not None:
            decision.after(end_offset)
        node.answer_decision(call, parts, end_offset, appended=bool(decision.records))

    def __repr__(self) -> str:
        now = f"{self._call!r}" if self._call is not None else "none"
        return f"<LongDecisions {now} under way, {len(self._behind)} calls behind>"
