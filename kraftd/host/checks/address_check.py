"""Checks with a request whether an advertised address leads to its node.

Pure: targets, outcomes and the time go in; requests to send, lines and reports come out. The request is the
BeginQuorumEpoch of the epoch's leader, meant for one replica: another one answers INVALID_VOTER_KEY.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kraftd.host.checks.peer_troubles import CLOSED, reason_in_words
from kraftd.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraftd.named_tuple import NamedTuple
from kraftd.types import ReplicaKey, address_text
from kraftd.wire.error_code import ErrorCode

PERIOD_MS = 30_000
AGAIN_MS = 1_000  # after a failure; two of them in a row are a finding
REPEAT_MS = 60_000
CORRECT = "correct advertised.listeners (or listeners) in its file, and restart it"
ELSEWHERE = "another node answers there"
OTHER_CLUSTER = "a node of another cluster answers there"


class Target(NamedTuple):
    """A replica that runs, and the address at which others look for it."""

    key: ReplicaKey
    host: str
    port: int

    @property
    def at(self) -> str:
        return address_text((self.host, self.port))


class _State(Struct):
    due_ms: int
    failures: int = 0
    text: str = ""
    reported_ms: int | None = None
    seen: int = 0


class Report(NamedTuple):
    """A line that is due: the node, its address, what is wrong, how often since the last line."""

    target: Target
    text: str
    seen: int


class AddressCheck:
    """The targets of node `own_id`: its own address and, while it leads, those of the voters that fetch."""

    def __init__(self, own_id: int) -> None:
        self._own_id = own_id
        self._states: dict[Target, _State] = {}

    def due(self, targets: Iterable[Target], now_ms: int) -> list[Target]:
        """The targets that must get a request now; targets that are no longer named are forgotten."""
        self._states = {one: self._states.get(one) or _State(now_ms) for one in targets}
        found = [one for one, state in self._states.items() if state.due_ms <= now_ms]
        for one in found:
            self._states[one].due_ms = now_ms + PERIOD_MS
        return found

    def failed(self, target: Target, reason: str, now_ms: int) -> None:
        """Handle that no node answered; `reason` is the error of the system or the connection.

        A connection that is closed proves nothing: a node with a full disk or too many connections closes it.
        """
        text = reason_in_words(reason)
        if text != CLOSED:
            self._note(target, text, now_ms)

    def answered(self, target: Target, answer: object, now_ms: int) -> None:
        """Handle a node's answer. A node that knows a later epoch, or checks no voter key, counts as the
        right one.
        """
        if not isinstance(answer, BeginQuorumEpochResponse):
            return
        codes = {answer.error_code, *(one.error_code for topic in answer.topics for one in topic.partitions)}
        if ErrorCode.INVALID_VOTER_KEY in codes:
            self._note(target, ELSEWHERE, now_ms)
        elif ErrorCode.INCONSISTENT_CLUSTER_ID in codes:
            self._note(target, OTHER_CLUSTER, now_ms)
        elif (state := self._states.get(target)) is not None:
            self._states[target] = _State(state.due_ms)

    def _note(self, target: Target, text: str, now_ms: int) -> None:
        state = self._states.get(target)
        if state is not None:
            state.failures += 1
            state.seen += 1
            state.text = text
            state.due_ms = now_ms + AGAIN_MS * min(state.failures, 5)

    @property
    def has_failures(self) -> bool:
        """Return whether an address is asked again soon."""
        return any(state.failures for state in self._states.values())

    def lines(self) -> list[str]:
        """A line for each address that does not lead to its node: the fault, and what to do."""
        return [
            f"{self._node_text(one)} advertises {one.at}, and {state.text}; {CORRECT}"
            for one, state in self._states.items()
            if state.failures > 1
        ]

    def _node_text(self, target: Target) -> str:
        return f"node {target.key.id}" + (" (this node)" if target.key.id == self._own_id else "")

    def report(self, now_ms: int) -> list[Report]:
        """The findings that are due in the log: at once, then once a minute."""
        found = []
        for target, state in self._states.items():
            is_due = state.reported_ms is None or now_ms - state.reported_ms >= REPEAT_MS
            if state.failures > 1 and is_due:
                found.append(Report(target, state.text, state.seen))
                state.reported_ms, state.seen = now_ms, 0
        return found

    def __repr__(self) -> str:
        wrong = sum(state.failures > 1 for state in self._states.values())
        return f"<AddressCheck of {len(self._states)} addresses, {wrong} wrong>"
