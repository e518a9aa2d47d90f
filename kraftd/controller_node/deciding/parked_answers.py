"""Answers that wait for the core's verdict on an append: AppendCommitted or AppendAborted.

The core's purgatory is the only one: it knows when an append is committed or lost. This module holds the
framed answers of each append under way. An answer without records waits with the append that it may reflect.
"""

from __future__ import annotations

from collections import deque

from kraftd.controller_node.deciding.decision_rights import DecisionRights
from kraftd.raft.effects import AppendAborted, AppendCommitted
from kraftd.replica.core_driver import CoreDriver
from kraftd.requests.boundary import Boundary
from kraftd.requests.call import Call
from kraftd.wire.primitives import Buffer

Parked = tuple[Call, list[Buffer]]


class AppendUnderWay:
    """An append with its id, the offset after its last record, and the answers that wait for it."""

    __slots__ = ("answers", "append_id", "end_offset")

    def __init__(self, append_id: int, end_offset: int) -> None:
        self.append_id = append_id
        self.end_offset = end_offset
        self.answers: list[Parked] = []

    def __repr__(self) -> str:
        return f"<AppendUnderWay {self.append_id} to {self.end_offset}, {len(self.answers)} answers>"


class ParkedAnswers:
    """Appends under way, in log order, so that answers leave in the order of their decisions."""

    def __init__(self, driver: CoreDriver, rights: DecisionRights, boundary: Boundary) -> None:
        self._core = driver.core
        self._rights = rights
        self._boundary = boundary
        self._under_way: deque[AppendUnderWay] = deque()
        self._settled_end = 0
        self._count = 0
        driver.takers[AppendCommitted] = self.committed
        driver.takers[AppendAborted] = self.aborted

    def __len__(self) -> int:
        return self._count

    def expect(self, append_id: int, end_offset: int) -> None:
        """Add an append. Ids and offsets ascend."""
        self._under_way.append(AppendUnderWay(append_id, end_offset))

    def extend(self, end_offset: int) -> None:
        """Note that the last append, which the core does not have yet, has grown."""
        self._under_way[-1].end_offset = end_offset

    def answer(self, call: Call, parts: list[Buffer], end_offset: int) -> None:
        """Send the answer once everything below the offset, which it confirms or reflects, is committed."""
        if end_offset <= self._settled_end or end_offset <= self._core.high_watermark:
            self._boundary.send(call, parts)
            return
        append = self._under_way[-1]
        if append.end_offset < end_offset or (
            len(self._under_way) > 1 and end_offset <= self._under_way[-2].end_offset
        ):
            append = next(one for one in self._under_way if one.end_offset >= end_offset)
        append.answers.append((call, parts))
        self._count += 1
        call.settled = True

    def committed(self, effect: AppendCommitted) -> None:
        """Send the answers of an append, and of those before it."""
        under_way = self._under_way
        while under_way and under_way[0].append_id <= effect.append_id:  # type: ignore[operator]
            append = under_way.popleft()
            self._settled_end = append.end_offset
            self._count -= len(append.answers)
            for call, parts in append.answers:
                self._boundary.send(call, parts)

    def aborted(self, effect: AppendAborted) -> None:
        """Refuse the calls of an append that was lost with the leadership."""
        under_way = self._under_way
        while under_way and under_way[0].append_id <= effect.append_id:  # type: ignore[operator]
            self._refuse(under_way.popleft())

    def abandon(self) -> None:
        """Also refuse the calls of appends that the core does not have, after the leadership is lost."""
        for append in self._under_way:
            self._refuse(append)
        self._under_way.clear()
        self._settled_end = 0

    def _refuse(self, append: AppendUnderWay) -> None:
        refusal = self._rights.not_controller()
        answers, append.answers = append.answers, []
        self._count -= len(answers)
        for call, _ in answers:
            self._boundary.refuse(call, refusal.code, refusal.message)

    def __repr__(self) -> str:
        ends = [append.end_offset for append in self._under_way]
        span = f", offsets {ends[0]} to {ends[-1]}" if ends else ""
        return f"<ParkedAnswers {self._count}{span}>"
