"""The coordinator of the share partitions of one partition of ``__share_group_state``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from kraftd.ground.effect import Effect
from kraftd.groups.outcome import Outcome
from kraftd.groups.records import CoordinatorRecord, UnknownRecordType, decode_share_record
from kraftd.groups.shard import CoordinatorState, Limits, Shard
from kraftd.groups.share_state.config import ShareStateConfig
from kraftd.groups.share_state.effects import PruneRecords
from kraftd.groups.share_state.key import SharePartitionKey
from kraftd.groups.share_state.partition_state import SharePartitionState
from kraftd.groups.share_state.records import (
    after_snapshot,
    after_update,
    snapshot_record,
    tombstone_record,
)
from kraftd.messages.share_snapshot_key import ShareSnapshotKey
from kraftd.messages.share_snapshot_value import ShareSnapshotValue
from kraftd.messages.share_update_key import ShareUpdateKey
from kraftd.messages.share_update_value import ShareUpdateValue
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.records import Record

PRUNING, COLD = "pruning", "cold"
KEYS_A_SLICE = 200  # that one event loop callback writes of
LATEST = ""  # the one key of `tombstones`


class ShareStateShard(Shard):
    """One partition's share partitions. `is_enabled`: the cluster has share groups."""

    def __init__(
        self,
        partition: int,
        leader_epoch: int,
        config: ShareStateConfig,
        is_enabled: Callable[[], bool],
        effects: list[Effect],
    ) -> None:
        load_bytes = config.share_coordinator_load_buffer_size
        limits = Limits(
            config.max_batch_bytes,
            load_bytes,
            config.share_coordinator_write_timeout_ms,
            compresses=bool(config.share_coordinator_state_topic_compression_codec),
        )
        super().__init__(partition, leader_epoch, limits, effects)
        self.state = CoordinatorState()
        self.config = config
        self.is_enabled = is_enabled
        self.states: dict[SharePartitionKey, SharePartitionState] = {}
        # The offset of the newest snapshot of each, and of the newest tombstone.
        self.snapshots: dict[SharePartitionKey, int] = {}
        self.tombstones: dict[str, int] = {}
        self.pruned_offset = -1

    # Records

    def on_loaded_record(self, record: Record, producer_id: int) -> None:
        try:
            decoded = decode_share_record(record.key, record.value)
        except UnknownRecordType:
            return  # of a newer release that was in use here once
        self.on_record(decoded, record.offset, producer_id)

    def on_record(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        timeline, key, value = self.state.timeline, record.key, record.value
        timeline.offset = offset
        assert isinstance(key, ShareSnapshotKey | ShareUpdateKey)
        place = SharePartitionKey(key.group_id, key.topic_id, key.partition)
        former = self.states.get(place)
        if isinstance(value, ShareUpdateValue):
            timeline.put(self.states, place, after_update(former, value))
        elif isinstance(value, ShareSnapshotValue):
            limit = self.config.share_coordinator_snapshot_update_records_per_snapshot
            timeline.put(self.states, place, after_snapshot(former, value, limit))
            timeline.put(self.snapshots, place, offset)
        elif isinstance(key, ShareSnapshotKey):
            timeline.remove(self.states, place)
            timeline.remove(self.snapshots, place)
            timeline.put(self.tombstones, LATEST, offset)

    def on_loaded(self) -> None:
        self.schedule(PRUNING)
        self.schedule(COLD)
        self.serve(len(self.states))

    # Time

    def schedule(self, what: str) -> None:
        config = self.config
        if what == PRUNING:
            interval_ms, action = config.share_coordinator_state_topic_prune_interval_ms, self.prune
        else:
            interval_ms = config.share_coordinator_cold_partition_snapshot_interval_ms
            action = self.snapshot_cold
        self.state.deadlines.schedule(what, self.state.now_ms + interval_ms, action)

    def redundant_before(self) -> int | None:
        """The records before this offset tell nothing that later ones do not; None if none are known."""
        latest = self.tombstones.get(LATEST)
        offset = min(self.snapshots.values()) if self.snapshots else latest
        return offset if offset is not None and offset > 0 else None

    def prune(self) -> Outcome:
        """Have the redundant records deleted, once what makes them redundant is committed."""
        self.schedule(PRUNING)
        offset = self.redundant_before()
        if not self.is_enabled() or offset is None or offset == self.pruned_offset:
            return Outcome()

        def after(error: ErrorCode | None) -> None:
            if error is None:
                self.pruned_offset = offset
                self.effects.append(PruneRecords(self.partition, self.leader_epoch, offset))

        return Outcome(after=after)

    def snapshot_cold(self) -> Outcome:
        """Repeat the snapshots of share partitions that change rarely: an old one keeps what is after it from
        being deleted.
        """
        self.schedule(COLD)
        states = self.states.values()
        if not self.is_enabled() or all(state.create_ms != state.write_ms for state in states):
            return Outcome()  # nothing has changed since all were repeated
        return self._repeat(list(self.states))

    def _repeat(self, keys: list[SharePartitionKey]) -> Outcome:
        now_ms = self.state.now_ms
        oldest_ms = now_ms - self.config.share_coordinator_cold_partition_snapshot_interval_ms
        if len(keys) > KEYS_A_SLICE:
            rest = partial(self._repeat, keys[KEYS_A_SLICE:])
            self.state.deadlines.schedule("cold on", now_ms + 1, rest)
        records = []
        for key in keys[:KEYS_A_SLICE]:
            state = self.states.get(key)
            if state is not None and state.write_ms <= oldest_ms:
                again = replace(state, snapshot_epoch=state.snapshot_epoch + 1, write_ms=now_ms)
                records.append(snapshot_record(key, again))
        return Outcome(records, atomic=False)

    def remove_topics(self, topic_ids: frozenset[bytes]) -> Outcome:
        """Remove the share partitions of deleted topics."""
        return self._remove([key for key in self.states if key.topic_id in topic_ids])

    def _remove(self, keys: list[SharePartitionKey]) -> Outcome:
        if len(keys) > KEYS_A_SLICE:
            rest = keys[KEYS_A_SLICE:]
            self.state.deadlines.schedule(
                ("removing", rest[0]), self.state.now_ms, partial(self._remove, rest)
            )
        records = [tombstone_record(key) for key in keys[:KEYS_A_SLICE] if key in self.states]
        return Outcome(records, atomic=False)
