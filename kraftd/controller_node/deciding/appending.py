"""Appends the records of decisions: applied to the image at once, appended together.

The decisions of one event loop callback become one batch, as the records within the linger of Kafka's
BatchAccumulator do. There is no linger time here: the end of the callback, or any other event for the core,
appends them. Their offsets are known before the append, because only this module appends while a node takes
decisions.
"""

from __future__ import annotations

from kraftd.controller.context import Context
from kraftd.controller_node.deciding.decision_rights import DecisionRights
from kraftd.controller_node.deciding.parked_answers import ParkedAnswers
from kraftd.controller_node.effects import ScheduleFlush
from kraftd.controller_node.watching.pending_events import PendingEvents
from kraftd.ground.effect import Effect
from kraftd.ground.event import Event
from kraftd.ground.refusal import Refusal
from kraftd.raft import effects as raft_effects
from kraftd.raft import events as raft_events
from kraftd.replica.core_driver import CoreDriver
from kraftd.replica.fatal_faults import HalfChanged
from kraftd.replica.following import Following
from kraftd.requests.call import Call
from kraftd.requests.outbox import Outbox
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord, encode_records

MAX_GATHERED_RECORDS = 100  # of a decision that joins a batch; a larger one is a batch of its own
MAX_BATCH_BYTES = 256 << 10  # of gathered decisions
# A batch is at most this many times as large as its records, the shortest of which have three bytes.
BATCH_OVERHEAD_FACTOR = 8


class Appends:
    """The records of this callback's decisions that the core does not have yet. Owns the next offset.

    `decided_end` is the offset after the last record of any decision: reads wait for it.
    """

    def __init__(
        self,
        driver: CoreDriver,
        context: Context,
        rights: DecisionRights,
        following: Following,
        parked: ParkedAnswers,
        pending_events: PendingEvents,
        outbox: Outbox,
    ) -> None:
        self.decided_end = 0
        self._parked = parked
        self._driver = driver
        self._core = driver.core
        self._context = context
        self._rights = rights
        self._following = following
        self._pending_events = pending_events
        self._outbox = outbox
        self._values: list[bytes] = []
        self._size_bytes = 0
        self._max_core_bytes = driver.core.max_batch_bytes // BATCH_OVERHEAD_FACTOR
        self._append_id = 0

    def __len__(self) -> int:
        return len(self._values)

    @property
    def next_offset(self) -> int:
        """The offset of the next record: after the log and the records that wait to be appended."""
        return self._core.log_end_offset + len(self._values)

    def append(
        self, records: list[VersionedRecord], atomic: bool, call: Call | None = None, *, gather: bool = True
    ) -> int:
        """Append records and apply them; returns the offset after the last. Raises Refusal if the core
        refuses.

        `call` is the one that requested them, if any. Without `gather` they wait for no others: each callback
        of an idle node's loop costs.
        """
        rights = self._rights
        epoch = rights.active_epoch
        assert epoch is not None
        rights.check_may_append()
        values = encode_records(records)
        size_bytes = sum(map(len, values))
        max_bytes = min(MAX_BATCH_BYTES, self._max_core_bytes)  # the core must not refuse gathered records
        alone = not gather or len(values) > MAX_GATHERED_RECORDS or size_bytes > max_bytes
        if self._values and (alone or self._size_bytes + size_bytes > max_bytes):
            self.flush()
            if rights.active_epoch != epoch:
                raise rights.not_controller()
        base_offset = self.next_offset
        end_offset = base_offset + len(values)
        effects: list[Effect] = []
        if alone:
            effects = self._request(self._new_id(), values, epoch, atomic)
            self._parked.expect(self._append_id, end_offset)
        else:
            if self._values:
                self._parked.extend(end_offset)
            else:
                self._parked.expect(self._new_id(), end_offset)
                self._outbox.emit(ScheduleFlush())
            self._values += values
            self._size_bytes += size_bytes
        self.decided_end = end_offset
        image = self._context.image
        try:
            self._pending_events.note(image, end_offset, records, call)
            image.apply_all([record.message for record in records], base_offset, epoch)
            self._following.applied(records, end_offset)
        except Exception as error:
            raise HalfChanged(f"records were appended and not applied: {error!r}") from error
        self._driver.perform(effects)
        return end_offset

    def flush(self) -> None:
        """Append the gathered records. That step may end the leadership, which undoes all of them.

        Already accepted: if the disk has filled since, the append is delayed, not refused.
        """
        values = self._values
        if not values:
            return
        self._values, self._size_bytes = [], 0
        epoch = self._rights.active_epoch
        assert epoch is not None, "gathered records outlived their epoch"
        try:
            effects = self._request(self._append_id, values, epoch, atomic=True)
        except Exception as error:
            raise HalfChanged(f"records were applied and not appended: {error!r}") from error
        self._driver.perform(effects)

    def step_core(self, event: Event) -> None:
        """Step the core with an event after flushing the gathered records, and perform the effects."""
        if self._values:
            self.flush()
        self._driver.deliver(event)

    def forget(self) -> None:
        """Drop the gathered records after the leadership is lost: they are undone with all uncommitted ones.

        The node may have taken them in the step that ended the leadership: it handles the effects of a commit
        before that of the loss.
        """
        self._values, self._size_bytes = [], 0
        self.decided_end = 0

    def request(self, values: list[bytes], epoch: int, atomic: bool) -> list[Effect]:
        """Append to the log without applying; returns the core's effects, to be performed. Raises Refusal."""
        self._rights.check_may_append()
        end_offset = self.next_offset + len(values)
        effects = self._request(self._new_id(), values, epoch, atomic)
        self._parked.expect(self._append_id, end_offset)
        self.decided_end = end_offset
        return effects

    def _new_id(self) -> int:
        """The id of another append; the id of gathered records stays the last one until they are flushed."""
        self._append_id += 1
        return self._append_id

    def _request(self, append_id: int, values: list[bytes], epoch: int, atomic: bool) -> list[Effect]:
        effects = self._driver.step(raft_events.AppendRequested(append_id, values, epoch, atomic))
        for effect in effects:
            if type(effect) is raft_effects.AppendRefused:
                self._driver.perform(effects)  # among them the answers that were due
                too_large = effect.error == ErrorCode.RECORD_LIST_TOO_LARGE
                raise Refusal(ErrorCode.POLICY_VIOLATION if too_large else effect.error)
        return effects

    def upgrade_kraft_version(self, level: int, validate_only: bool) -> ErrorCode | None:
        """Make the quorum finalize another kraft.version (KIP-853); returns the reason if it refuses."""
        rights = self._rights
        epoch = rights.active_epoch
        assert epoch is not None
        self.flush()
        if rights.active_epoch != epoch:
            return ErrorCode.NOT_CONTROLLER
        event = raft_events.KRaftVersionUpgradeRequested(self._new_id(), level, epoch, validate_only)
        effects = self._driver.step(event)
        self._driver.perform(effects)
        for effect in effects:
            if type(effect) is raft_effects.AppendRefused:
                return effect.error
        return None if rights.active_epoch == epoch else ErrorCode.NOT_CONTROLLER

    def __repr__(self) -> str:
        return f"<Appends {len(self._values)} records, {self._size_bytes} bytes gathered>"
