"""Calls that the consensus core answers: who still waits for what, and the answers framed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kraftd.raft import effects as raft_effects
from kraftd.raft import events as raft_events
from kraftd.server.call import Call, FrameMemo
from kraftd.server.effects import Answer, AnswerRecords, AnswerSnapshot
from kraftd.wire.api import ApiKey

if TYPE_CHECKING:
    from kraftd.server.node import Node

FETCH = int(ApiKey.FETCH)


class CoreAnswers:
    """The calls at the core, by connection; the empty fetch that was answered last."""

    def __init__(self) -> None:
        self.waiting: dict[int, set[Call]] = {}
        self._empty_fetches = FrameMemo()

    def ask(self, node: Node, call: Call) -> None:
        """Let the consensus core answer, now or later."""
        if node.appends:
            node.appends.give(node)
        event = raft_events.RequestReceived(call, call.message, call.version, call.listener)
        effects = node.core.step(event, node.now_ms)
        if len(effects) == 1:
            effect = effects[0]
            if type(effect) is raft_effects.Respond and effect.request_id is call:
                self._respond(node, call, effect.message)  # at once, as most are: nothing to remember
                return
        waiting = self.waiting.get(call.connection_id)
        if waiting is None:
            waiting = self.waiting[call.connection_id] = set()
        waiting.add(call)
        node.perform(effects)

    def closed(self, connection_id: int) -> set[Call]:
        """The calls of that connection that the core may forget."""
        return self.waiting.pop(connection_id, set())

    def on_respond(self, node: Node, effect: raft_effects.Respond) -> None:
        call: Call = effect.request_id  # type: ignore[assignment]
        if self._still_wanted(call):
            self._respond(node, call, effect.message)

    def on_respond_records(self, node: Node, effect: raft_effects.RespondRecords) -> None:
        call: Call = effect.request_id  # type: ignore[assignment]
        if self._still_wanted(call):
            node.emit(AnswerRecords(call, effect.message, effect.offset, effect.end_offset, effect.max_bytes))

    def on_respond_snapshot(self, node: Node, effect: raft_effects.RespondSnapshot) -> None:
        call: Call = effect.request_id  # type: ignore[assignment]
        if self._still_wanted(call):
            node.emit(
                AnswerSnapshot(call, effect.message, effect.snapshot_id, effect.position, effect.max_bytes)
            )

    def _still_wanted(self, call: Call) -> bool:
        """Whether the call still wants its answer; it does not want another."""
        waiting = self.waiting.get(call.connection_id)
        if waiting is None or call not in waiting:
            return False
        waiting.discard(call)
        return True

    def _respond(self, node: Node, call: Call, message: Any) -> None:
        if call.key == FETCH:
            topics = message.responses
            if message.error_code or (topics and topics[0].partitions[0].error_code):
                node.requests.count_errors(FETCH, message)
            parts = call.frame_repeated(message, self._empty_fetches)
        else:
            errors = node.requests.count_errors(call.key, message)
            parts = call.frame_with(message, errors)
        node.emit(Answer(call.connection_id, call.slot, parts, call))

    def __repr__(self) -> str:
        return f"<CoreAnswers {sum(map(len, self.waiting.values()))} calls wait>"
