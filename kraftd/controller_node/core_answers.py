"""Calls for the consensus core: keeps those that wait for its answer, and frames the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kraftd.controller.context import Context
from kraftd.controller_node.deciding.appending import Appends
from kraftd.controller_node.effects import AnswerSnapshot
from kraftd.controller_node.watching.duplicate_ids import FetchingReplicas, duplicate_ids
from kraftd.controller_node.watching.replicas_ahead import ReplicasAhead, role_of
from kraftd.controller_node.watching.went_back import WentBack
from kraftd.messages.describe_quorum_response import DescribeQuorumResponse
from kraftd.raft import effects as raft_effects
from kraftd.raft import events as raft_events
from kraftd.replica.core_driver import CoreDriver
from kraftd.requests.boundary import Boundary
from kraftd.requests.call import Call, FrameMemo
from kraftd.requests.effects import AnswerRecords, RecordsOf
from kraftd.requests.outbox import Outbox
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode

FETCH = int(ApiKey.FETCH)
DESCRIBE_QUORUM = int(ApiKey.DESCRIBE_QUORUM)

MAX_TEXT_LENGTH = 8_000  # characters of up to four bytes; a string field holds 32,767 bytes


class CoreAnswers:
    """The calls at the core, by connection, and the last answer to an empty fetch.

    `troubles` says how long this node has found no leader, and why, one line per peer; `addresses` names
    addresses that do not lead to their nodes. DescribeQuorum passes both on.
    """

    def __init__(
        self, driver: CoreDriver, context: Context, appends: Appends, boundary: Boundary, outbox: Outbox
    ) -> None:
        self.waiting: dict[int, set[Call]] = {}
        self.troubles: Callable[[], Sequence[str]] = tuple
        self.addresses: Callable[[], Sequence[str]] = tuple
        self._driver = driver
        self._appends = appends
        self._boundary = boundary
        self._outbox = outbox
        self._empty_fetches = FrameMemo()
        self._unchanged_answer: Any = None  # the last answer without news, which many fetches share
        self._ahead = ReplicasAhead(
            outbox, lambda node_id: role_of(node_id, driver.core.voters.ids, context.image)
        )
        self._fetching = FetchingReplicas(outbox)
        self._went_back = WentBack(outbox, self._fetching.is_late)
        driver.takers[raft_effects.Respond] = self._on_respond
        driver.takers[raft_effects.RespondRecords] = self._on_respond_records
        driver.takers[raft_effects.RespondSnapshot] = self._on_respond_snapshot
        driver.takers[raft_effects.ReplicaWentBack] = self._on_replica_went_back

    def pass_to_core(self, call: Call) -> None:
        """Pass a call to the consensus core, which answers now or later."""
        self._appends.flush()
        event = raft_events.RequestReceived(call, call.message, call.version, call.listener)
        effects = self._driver.step(event)
        if len(effects) == 1:
            effect = effects[0]
            if type(effect) is raft_effects.Respond and effect.request_id is call:
                self._respond(call, effect.message)  # answered at once, like most calls: nothing to remember
                return
        waiting = self.waiting.get(call.connection_id)
        if waiting is None:
            waiting = self.waiting[call.connection_id] = set()
        waiting.add(call)
        self._driver.perform(effects)

    def replicas_ahead(self) -> list[str]:
        """On a leader, one line for each replica that has applied records which the quorum has lost."""
        return self._ahead.lines() if self._driver.core.is_leader else []

    def went_back(self, now_ms: int) -> list[str]:
        """On a leader, one line for each replica that holds less than it had shown, or lately did."""
        core = self._driver.core
        return self._went_back.lines(core.replicas(now_ms), now_ms) if core.is_leader else []

    def duplicate_ids(self, now_ms: int) -> list[str]:
        """On a leader, one line for each id under which several nodes run."""
        core = self._driver.core
        if not core.is_leader:
            return []
        found = {**self._fetching.lines(now_ms), **duplicate_ids(core.replicas(now_ms), now_ms)}
        return [found[node_id] for node_id in sorted(found)]

    def note_heartbeat(self, call: Call) -> None:
        """Check whether a broker has applied more than the log holds; only a leader knows its end."""
        core = self._driver.core
        log_end = core.log_end_offset
        if call.message.current_metadata_offset >= log_end and core.is_leader:  # nearly no broker is ahead
            self._ahead.note_heartbeat(call, log_end)

    def abandon(self, connection_id: int) -> None:
        """Make the core forget the calls of a lost connection."""
        for call in self.waiting.pop(connection_id, ()):
            self._appends.step_core(raft_events.RequestAbandoned(call))

    def _on_respond(self, effect: raft_effects.Respond) -> None:
        call: Call = effect.request_id  # type: ignore[assignment]
        if self._claim(call):
            try:
                self._respond(call, effect.message)
            except Exception as error:  # the other calls of this step still get their answers
                self._boundary.fail(call, error)

    def _on_respond_records(self, effect: raft_effects.RespondRecords) -> None:
        call: Call = effect.request_id  # type: ignore[assignment]
        if self._claim(call):
            try:
                self._note_follower(call)
            except Exception as error:  # as in _on_respond
                self._boundary.fail(call, error)
                return
            message: Any = effect.message
            partition = message.responses[0].partitions[0]
            records = RecordsOf(partition, effect.offset, effect.end_offset, effect.max_bytes)
            self._outbox.emit(AnswerRecords(call, message, (records,)))

    def _on_respond_snapshot(self, effect: raft_effects.RespondSnapshot) -> None:
        call: Call = effect.request_id  # type: ignore[assignment]
        if self._claim(call):
            piece = AnswerSnapshot(
                call, effect.message, effect.snapshot_id, effect.position, effect.max_bytes
            )
            self._outbox.emit(piece)

    def _on_replica_went_back(self, effect: raft_effects.ReplicaWentBack) -> None:
        self._went_back.note(effect, self._driver.now_ms)

    def _claim(self, call: Call) -> bool:
        """Claim the reply: return true once, false if the call is already answered or disconnected."""
        waiting = self.waiting.get(call.connection_id)
        if waiting is None or call not in waiting:
            return False
        waiting.discard(call)
        return True

    def _respond(self, call: Call, message: Any) -> None:
        boundary = self._boundary
        if call.key == FETCH:
            if message is self._unchanged_answer:  # nearly always
                self._note_follower(call)
            else:
                self._note_fetch(call, message)
            boundary.send(call, call.frame_repeated(message, self._empty_fetches))
        else:
            errors = boundary.count(call, message)
            if call.key == DESCRIBE_QUORUM:
                self._add_troubles(call, message)
            boundary.send(call, call.frame_with(message, errors))

    def _note_follower(self, call: Call) -> None:
        """Note that the sender of a Fetch follows this log."""
        self._ahead.follows(call)
        self._fetching.note(call, self._driver.now_ms)

    def _note_fetch(self, call: Call, message: Any) -> None:
        """Note what the answer to a Fetch shows about its sender, and count its errors."""
        partition = message.responses[0].partitions[0] if message.responses else None
        if message.error_code or partition is None or partition.error_code:
            self._boundary.count(call, message)
            return
        if partition.diverging_epoch.epoch >= 0:
            self._ahead.note(call, partition.diverging_epoch.end_offset)
        elif partition.snapshot_id.epoch >= 0:
            self._ahead.note(call, partition.snapshot_id.end_offset)
        else:
            self._ahead.follows(call)
            self._unchanged_answer = message
        self._fetching.note(call, self._driver.now_ms)

    def _add_troubles(self, call: Call, message: DescribeQuorumResponse) -> None:
        """Add lines to the texts of errors that say why no leader is found.

        The leader's text, beside the code NONE, names the nodes that are ahead of it, that went back, and
        that it refuses. Clients check the code first.
        """
        for topic in message.topics:
            for partition in topic.partitions:
                if partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    partition.error_message = _text_of((partition.error_message or "", *self.troubles()))
                elif partition.error_code == ErrorCode.NONE:
                    refused = self._boundary.refusals.lines(call.arrived_ns)
                    now_ms = self._driver.now_ms
                    lost = (*self.replicas_ahead(), *self.went_back(now_ms))
                    message.error_message = _text_of(
                        (*lost, *self.duplicate_ids(now_ms), *self.addresses(), *refused)
                    )

    def __repr__(self) -> str:
        return f"<CoreAnswers {sum(map(len, self.waiting.values()))} calls wait>"


def _text_of(lines: Iterable[str]) -> str:
    """The lines as one text, without the last ones if it would be too long for an answer."""
    kept = list(lines)
    length = sum(len(line) + 1 for line in kept)
    left_out = 0
    while length > MAX_TEXT_LENGTH:
        length -= len(kept.pop()) + 1
        left_out += 1
    if left_out:
        kept.append(f"… and {left_out} more")
    return "\n".join(kept)
