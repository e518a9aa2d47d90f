"""Decisions into the log: applied to the image at once, appended together.

What is decided within one turn of the loop becomes one batch, as Kafka's BatchAccumulator makes one of what
it is given within its linger. Here nobody lingers: the turn's end, or anything else that the core is told,
appends it. Offsets are known beforehand: nothing but this appends while a node takes decisions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.decision import Refusal
from kraftd.raft import effects as raft_effects
from kraftd.raft import events as raft_events
from kraftd.server.effects import EndTurn
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord, encode_records

if TYPE_CHECKING:
    from kraftd.server.node import Node

MOST_RECORDS = 100  # of one decision that waits for company; a larger one is a batch of its own
MOST_BYTES = 256 << 10  # of a turn's batch


class Appends:
    """The records of this turn's decisions that the core has not been given yet.

    `decided_end` is the offset behind the last record of any decision: what reads wait for.
    """

    def __init__(self) -> None:
        self.decided_end = 0
        self._values: list[bytes] = []
        self._size_bytes = 0
        self._append_id = 0

    def __len__(self) -> int:
        return len(self._values)

    def append(self, node: Node, records: list[VersionedRecord], atomic: bool) -> int:
        """Append records and apply them; the offset after the last. Raises Refusal if the core will not."""
        epoch = node.active_epoch
        assert epoch is not None
        _check_open(node)
        values = encode_records(records)
        size_bytes = sum(map(len, values))
        alone = len(values) > MOST_RECORDS or size_bytes > MOST_BYTES
        if self._values and (alone or self._size_bytes + size_bytes > MOST_BYTES):
            self.give(node)
            if node.active_epoch != epoch:
                raise node.not_controller()
        base_offset = node.next_offset
        effects: list[raft_effects.Effect] = []
        if alone:
            effects = self._request(node, values, epoch, atomic)
        else:
            if not self._values:
                node.emit(EndTurn())
            self._values += values
            self._size_bytes += size_bytes
        self.decided_end = end_offset = base_offset + len(values)
        node.image.apply_all([record.message for record in records], base_offset, epoch)
        node.replay.next_offset = end_offset
        self.applied(node, records)
        node.sayings.note(end_offset, records)
        node.perform(effects)
        return end_offset

    def applied(self, node: Node, records: list[VersionedRecord]) -> None:
        """A decision's records are in the image."""
        for departure in node.context.heartbeats.departures.values():
            departure.note(records)
        node.finalized.applied(node.image)
        node.loading.timestamp_ms = node.now_ms

    def give(self, node: Node) -> None:
        """Give the core what has gathered. That step may end the leadership, which takes all of it back.

        It was decided when it could be: a disk that has filled since holds it up, and does not refuse it.
        """
        values = self._values
        if not values:
            return
        self._values, self._size_bytes = [], 0
        epoch = node.active_epoch
        assert epoch is not None, "what had gathered outlived its epoch"
        node.perform(self._request(node, values, epoch, atomic=True))

    def forget(self) -> None:
        """Leadership is lost: what has gathered is taken back with all else that is not committed.

        The step that ended it may have let the node decide before that was known here: a commit comes first.
        """
        self._values, self._size_bytes = [], 0
        self.decided_end = 0

    def request(self, node: Node, values: list[bytes], epoch: int, atomic: bool) -> list[raft_effects.Effect]:
        """Append to the log alone; the core's effects, to be performed. Raises Refusal."""
        _check_open(node)
        base_offset = node.next_offset
        effects = self._request(node, values, epoch, atomic)
        self.decided_end = base_offset + len(values)
        return effects

    def _request(
        self, node: Node, values: list[bytes], epoch: int, atomic: bool
    ) -> list[raft_effects.Effect]:
        self._append_id += 1
        event = raft_events.AppendRequested(self._append_id, values, epoch, atomic)
        effects = node.core.step(event, node.now_ms)
        for effect in effects:
            if type(effect) is raft_effects.AppendRefused:
                too_large = effect.error == ErrorCode.RECORD_LIST_TOO_LARGE
                raise Refusal(ErrorCode.POLICY_VIOLATION if too_large else effect.error)
        return effects

    def next_id(self) -> int:
        """An id for an append of the core's own making."""
        self._append_id += 1
        return self._append_id

    def __repr__(self) -> str:
        return f"<Appends {len(self._values)} records, {self._size_bytes} bytes gathered>"


def _check_open(node: Node) -> None:
    """Raises Refusal while nothing new may be decided."""
    if node.disk_full:
        raise Refusal(ErrorCode.NOT_CONTROLLER, "The controller's disk is full.")
    if node.ending:
        raise node.not_controller()
