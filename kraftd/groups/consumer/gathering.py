"""Members that join a new group together: their answers wait a moment, for a first target of all of them.

Else the first of them would get all partitions. The others would get theirs with later heartbeats, once a
target may be computed again (`consumer.assignment.interval.ms`) and the first one has given them up.

A member that stays alone joins as in any other group, 30 ms later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from msgspec import Struct

from kraftd.groups.assigning import ASSIGNING
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.member import JOINING_EPOCH
from kraftd.groups.consumer.retargeting import (
    begin_apart,
    by_custom_assignor,
    has_large_parts,
    is_due,
)
from kraftd.groups.consumer.settings import assignment_interval_ms
from kraftd.groups.outcome import Outcome
from kraftd.groups.state import ShardState
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kraftd.wire.error_code import ErrorCode

ALONE_MS = 30  # how long a member waits for a second one: clients that start together connect within that
QUIET_MS = 100  # so long without a further member ends it: else the last ones would wait for seconds
MOST_MS = 1_000
TARGET_MS = 1_000  # the longest wait for a target that is computed in slices, or by a custom assignor
ANSWERED_A_SLICE = 20  # in one event loop callback
GATHERING = "gathering"  # the kind of the deadline


class Join(Struct, frozen=True):
    """A member's first heartbeat.

    note: writes what it says of itself, at a time. answer: lets it take its first step.
    """

    request: ConsumerGroupHeartbeatRequest
    note: Callable[[int], None]
    answer: Callable[[int], None]
    refuse: Callable[[ErrorCode], None]


class Gathering:
    """The joins of one group. is_open: further ones may come."""

    __slots__ = ("_began_ms", "_group_id", "_joins", "_noted", "_others", "_state", "_until_ms", "is_open")

    def __init__(self, state: ShardState, group_id: str, others: dict[str, Gathering]) -> None:
        self._state = state
        self._others = others
        self._group_id = group_id
        self._joins: deque[Join] = deque()
        self._noted = 0
        self._began_ms = self._until_ms = state.now_ms
        self.is_open = True

    def __repr__(self) -> str:
        return f"<Gathering of {self._group_id}, {len(self._joins)} joins>"

    def add(self, join: Join) -> None:
        """Hold a join; the records of a single one go into one batch with its first step, as in Kafka."""
        self._joins.append(join)
        if len(self._joins) > 1:
            self._note_all()
        quiet_ms = QUIET_MS if len(self._joins) > 1 else ALONE_MS
        self._schedule(min(self._began_ms + MOST_MS, self._state.now_ms + quiet_ms), self._close)

    def refuse(self, error: ErrorCode) -> None:
        """Refuse all: the shard serves no more."""
        for join in self._joins:
            join.refuse(error)

    def _note_all(self) -> None:
        for at in range(self._noted, len(self._joins)):
            self._joins[at].note(self._state.now_ms)
        self._noted = len(self._joins)

    def _schedule(self, due_ms: int, action: Callable[[], Outcome]) -> None:
        self._state.deadlines.schedule((GATHERING, self._group_id), due_ms, action)

    def _close(self) -> Outcome:
        state = self._state
        self.is_open = False
        self._until_ms = state.now_ms
        if self._noted or by_custom_assignor(state, self._joins[0].request):
            self._note_all()
            group = state.groups.get(self._group_id)
            if isinstance(group, ConsumerGroup) and not has_large_parts(state, group):
                begin_apart(state, group)
                self._until_ms += TARGET_MS
        return self._answer_some()

    def _answer_some(self) -> Outcome:
        state = self._state
        if (ASSIGNING, self._group_id) not in state.deadlines or state.now_ms >= self._until_ms:
            for _ in range(min(ANSWERED_A_SLICE, len(self._joins))):
                self._answer(self._joins.popleft())
        if self._joins:
            self._schedule(state.now_ms + 1, self._answer_some)
        else:
            del self._others[self._group_id]
        return Outcome()

    def _answer(self, join: Join) -> None:
        group = self._state.groups.get(self._group_id)
        members = group.members if isinstance(group, ConsumerGroup) else {}
        if self._noted and join.request.member_id not in members:
            join.refuse(ErrorCode.UNKNOWN_MEMBER_ID)  # it has left, or could not be written
        else:
            join.answer(self._state.now_ms)


def gathering_of(
    state: ShardState, gatherings: dict[str, Gathering], request: ConsumerGroupHeartbeatRequest
) -> Gathering | None:
    """Where a heartbeat waits for others; None for all but first ones of dynamic members of a new group."""
    group_id = request.group_id
    if request.member_epoch != JOINING_EPOCH or request.instance_id is not None or not request.member_id:
        return None
    if request.subscribed_topic_regex or not request.subscribed_topic_names:
        return None
    found = gatherings.get(group_id)
    if found is not None:
        return found if found.is_open else None
    if not _is_new(state, group_id) or not assignment_interval_ms(state.config, state.metadata, group_id):
        return None
    found = gatherings[group_id] = Gathering(state, group_id, gatherings)
    return found


def _is_new(state: ShardState, group_id: str) -> bool:
    """Return whether a group has no member, and the first one gets a target."""
    group = state.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        return group.is_empty() and is_due(state, group)
    return group is None
