"""Decisions into the log: applied to the image at once, appended together.

What is decided within one event loop callback becomes one batch, as Kafka's BatchAccumulator makes one of
what it is given within its linger. Here nothing lingers: the end of the callback, or anything else that the
core is told, appends it. Offsets are known beforehand: nothing but this appends while a node takes decisions.
"""

from __future__ import annotations

from kraftd.controller.context import Context
from kraftd.controller.decision import Refusal
from kraftd.controller_node.core_driver import CoreDriver
from kraftd.controller_node.effects import EndTurn
from kraftd.controller_node.faults import HalfChanged
from kraftd.controller_node.following import Following
from kraftd.controller_node.parked import ParkedAnswers
from kraftd.controller_node.sayings import Sayings
from kraftd.controller_node.standing import Standing
from kraftd.raft import effects as raft_effects
from kraftd.raft import events as raft_events
from kraftd.requests.call import Call
from kraftd.requests.outbox import Outbox
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord, encode_records

MAX_GATHERED_RECORDS = 100  # of one decision that joins a batch; a larger one is a batch of its own
MAX_BATCH_BYTES = 256 << 10  # of gathered decisions


class Appends:
    """The records of this callback's decisions that the core has not been given yet; owns the next offset.

    `decided_end` is the offset behind the last record of any decision: what reads wait for.
    """

    def __init__(
        self,
        driver: CoreDriver,
        context: Context,
        standing: Standing,
        following: Following,
        parked: ParkedAnswers,
        sayings: Sayings,
        outbox: Outbox,
    ) -> None:
        self.decided_end = 0
        self._parked = parked
        self._driver = driver
        self._core = driver.core
        self._context = context
        self._standing = standing
        self._following = following
        self._sayings = sayings
        self._outbox = outbox
        self._values: list[bytes] = []
        self._size_bytes = 0
        self._append_id = 0

    def __len__(self) -> int:
        return len(self._values)

    @property
    def next_offset(self) -> int:
        """Where the next record will be: behind the log, and what is about to be appended to it."""
        return self._core.log_end_offset + len(self._values)

    def append(self, records: list[VersionedRecord], atomic: bool, call: Call | None = None) -> int:
        """Append records and apply them; the offset after the last. Raises Refusal if the core will not.

        `call` is the one that asked for them, if one did.
        """
        standing = self._standing
        epoch = standing.active_epoch
        assert epoch is not None
        standing.check_may_append()
        values = encode_records(records)
        size_bytes = sum(map(len, values))
        alone = len(values) > MAX_GATHERED_RECORDS or size_bytes > MAX_BATCH_BYTES
        if self._values and (alone or self._size_bytes + size_bytes > MAX_BATCH_BYTES):
            self.flush()
            if standing.active_epoch != epoch:
                raise standing.not_controller()
        base_offset = self.next_offset
        end_offset = base_offset + len(values)
        effects: list[raft_effects.Effect] = []
        if alone:
            effects = self._request(self._new_id(), values, epoch, atomic)
            self._parked.expect(self._append_id, end_offset)
        else:
            if self._values:
                self._parked.extend(end_offset)
            else:
                self._parked.expect(self._new_id(), end_offset)
                self._outbox.emit(EndTurn())
            self._values += values
            self._size_bytes += size_bytes
        self.decided_end = end_offset
        image = self._context.image
        try:
            self._sayings.note(image, end_offset, records, call)
            image.apply_all([record.message for record in records], base_offset, epoch)
            self._following.applied(records, end_offset)
        except Exception as error:
            raise HalfChanged(f"records were appended and not applied: {error!r}") from error
        self._driver.perform(effects)
        return end_offset

    def flush(self) -> None:
        """Append what has gathered. That step may end the leadership, which takes all of it back.

        Already accepted: if the disk has filled since, the append is delayed, not refused.
        """
        values = self._values
        if not values:
            return
        self._values, self._size_bytes = [], 0
        epoch = self._standing.active_epoch
        assert epoch is not None, "what had gathered outlived its epoch"
        try:
            effects = self._request(self._append_id, values, epoch, atomic=True)
        except Exception as error:
            raise HalfChanged(f"records were applied and not appended: {error!r}") from error
        self._driver.perform(effects)

    def tell_core(self, event: raft_events.Event) -> None:
        """Give the core an event behind what has gathered, and perform what follows."""
        if self._values:
            self.flush()
        self._driver.tell(event)

    def forget(self) -> None:
        """Leadership is lost: what has gathered is taken back with all else that is not committed.

        The step that ended it may have let the node decide before that was known here: a commit comes first.
        """
        self._values, self._size_bytes = [], 0
        self.decided_end = 0

    def request(self, values: list[bytes], epoch: int, atomic: bool) -> list[raft_effects.Effect]:
        """Append to the log alone; the core's effects, to be performed. Raises Refusal."""
        self._standing.check_may_append()
        end_offset = self.next_offset + len(values)
        effects = self._request(self._new_id(), values, epoch, atomic)
        self._parked.expect(self._append_id, end_offset)
        self.decided_end = end_offset
        return effects

    def _new_id(self) -> int:
        """The id of another append; that of what gathers stays the last until it is flushed."""
        self._append_id += 1
        return self._append_id

    def _request(
        self, append_id: int, values: list[bytes], epoch: int, atomic: bool
    ) -> list[raft_effects.Effect]:
        effects = self._driver.step(raft_events.AppendRequested(append_id, values, epoch, atomic))
        for effect in effects:
            if type(effect) is raft_effects.AppendRefused:
                too_large = effect.error == ErrorCode.RECORD_LIST_TOO_LARGE
                raise Refusal(ErrorCode.POLICY_VIOLATION if too_large else effect.error)
        return effects

    def upgrade_kraft_version(self, level: int, validate_only: bool) -> ErrorCode | None:
        """Have the quorum finalize another kraft.version (KIP-853); why it will not, if it will not."""
        standing = self._standing
        epoch = standing.active_epoch
        assert epoch is not None
        self.flush()
        if standing.active_epoch != epoch:
            return ErrorCode.NOT_CONTROLLER
        event = raft_events.KRaftVersionUpgradeRequested(self._new_id(), level, epoch, validate_only)
        effects = self._driver.step(event)
        self._driver.perform(effects)
        for effect in effects:
            if type(effect) is raft_effects.AppendRefused:
                return effect.error
        return None

    def __repr__(self) -> str:
        return f"<Appends {len(self._values)} records, {self._size_bytes} bytes gathered>"
