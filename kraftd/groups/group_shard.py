"""The coordinator of the groups of one partition of ``__consumer_offsets``."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

from kraftd.ground.effect import Effect
from kraftd.groups.batches import Producer
from kraftd.groups.classic.group import ClassicGroup
from kraftd.groups.classic.membership import unload
from kraftd.groups.classic.rebalance import heard, prepare
from kraftd.groups.consumer.gathering import Gathering
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.sessions import watch
from kraftd.groups.effects import ScheduleLoading
from kraftd.groups.errors import answer_to_failed_append
from kraftd.groups.group import Group
from kraftd.groups.offsets.loading import Names, apply_offsets
from kraftd.groups.offsets.removal import expire_offsets, remove_topics
from kraftd.groups.outcome import Outcome
from kraftd.groups.records import (
    CoordinatorRecord,
    UnknownRecordType,
    decode_offset,
    decode_record,
    is_offset_key,
)
from kraftd.groups.replay import replay, replay_offset
from kraftd.groups.shard import Answer, Limits, Shard
from kraftd.groups.share.group import ShareGroup
from kraftd.groups.share.sessions import watch as watch_share_group
from kraftd.groups.share.topics import remove_state_of_topics
from kraftd.groups.state import ShardState
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.records import Record

EXPIRATION = "expiration"
GROUPS_A_SLICE = 200  # whose members or offsets one event loop callback looks through


class GroupShard(Shard):
    """One partition's groups."""

    def __init__(self, partition: int, leader_epoch: int, state: ShardState, effects: list[Effect]) -> None:
        config = state.config
        limits = Limits(
            config.max_batch_bytes,
            config.offsets_load_buffer_size,
            config.offsets_commit_timeout_ms,
            compresses=bool(config.offsets_topic_compression_codec),
        )
        super().__init__(partition, leader_epoch, limits, effects)
        self.state: ShardState = state
        self.arming: Iterator[Group] = iter(())  # groups of a loaded partition, whose members are not watched
        self.armed_count = 0
        self.names: Names = {}  # of offsets, while they are loaded
        self.gatherings: dict[str, Gathering] = {}  # by group

    def limit_batches(self, max_bytes: int) -> None:
        super().limit_batches(max_bytes)
        self.state.max_batch_bytes = max_bytes

    # Loading

    def on_record(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        replay(self.state, record, offset, producer_id)

    def on_loaded_record(self, record: Record, producer_id: int) -> None:
        if is_offset_key(record.key):
            self.state.timeline.offset = record.offset
            key, value = decode_offset(record.key, record.value)
            replay_offset(self.state, key, value, record.offset, producer_id)
            return
        try:
            _, decoded = decode_record(record.key, record.value)
        except UnknownRecordType:
            return  # of a newer release that was in use here once
        replay(self.state, decoded, record.offset, producer_id)

    def on_loaded_in_a_row(self, records: Sequence[tuple[Any, ...]]) -> int:
        return apply_offsets(self.state, records, self.names)

    def on_transaction_end(self, producer_id: int, is_commit: bool) -> None:
        self.state.offsets.end_transaction(producer_id, is_commit)

    def on_loaded(self) -> None:
        """Watch the members, which get a whole session timeout, and serve."""
        self.names.clear()
        self.on_settled()
        self.arming = iter(list(self.state.groups.values()))
        self.on_slice()

    def on_slice(self) -> None:
        """Watch the members of some groups; after the last one, serve requests."""
        state = self.state
        for group in islice(self.arming, GROUPS_A_SLICE):
            if isinstance(group, ConsumerGroup):
                watch(state, group)
            elif isinstance(group, ShareGroup):
                watch_share_group(state, group)
            elif isinstance(group, ClassicGroup):
                for member in group.members.values():
                    heard(state, group, member)
                if len(group.members) > state.config.group_max_size:
                    self.write(partial(prepare, state, group))
            self.armed_count += 1
        if self.armed_count < len(state.groups):
            self.effects.append(ScheduleLoading(self.partition, self.leader_epoch))
            return
        self.schedule_expiration()
        self.serve(self.armed_count)

    def on_settled(self) -> None:
        self.state.offsets.sweep()

    def on_unload(self) -> None:
        for gathering in self.gatherings.values():
            gathering.refuse(ErrorCode.NOT_COORDINATOR)
        self.gatherings.clear()
        for group in self.state.groups.values():
            if isinstance(group, ClassicGroup):
                unload(self.state, group)

    # Transactions

    def end_transaction(
        self,
        producer: Producer,
        coordinator_epoch: int,
        is_commit: bool,
        transaction_version: int,
        answer: Answer,
    ) -> None:
        """Apply and append the marker of a transaction's end (WriteTxnMarkers); answer with an error code."""
        self.unsent[self.partition] = self
        batch = self.batches.begin(producer)
        batch.marker = (coordinator_epoch, is_commit, transaction_version)
        self.state.timeline.offset = self.batches.next_offset
        self.on_transaction_end(producer[0], is_commit)
        self.batches.next_offset += 1
        self.submit(Outcome(response=ErrorCode.NONE), answer, answer_to_failed_append)

    # Time

    def schedule_expiration(self) -> None:
        due_ms = self.state.now_ms + self.state.config.offsets_retention_check_interval_ms
        self.state.deadlines.schedule(EXPIRATION, due_ms, self.expire)

    def expire(self) -> Outcome:
        """Remove expired offsets, and groups that are empty without them."""
        self.schedule_expiration()
        return self.in_slices("expiring", partial(expire_offsets, self.state), list(self.state.groups))

    def remove_state_of_topics(self, topic_ids: frozenset[bytes]) -> Outcome:
        """Forget which partitions of deleted topics share groups have read."""
        remove = partial(remove_state_of_topics, self.state, topic_ids)
        groups = [one.group_id for one in self.state.groups.values() if isinstance(one, ShareGroup)]
        return self.in_slices(("removing state", *topic_ids), remove, groups)

    def remove_topics(self, topics: dict[str, bytes]) -> Outcome:
        """Remove the offsets of deleted topics."""
        remove = partial(remove_topics, self.state, topics)
        groups = dict.fromkeys([*self.state.offsets.by_group, *self.state.offsets.open_producers])
        return self.in_slices(("removing", *topics), remove, list(groups))

    def in_slices(
        self, key: Hashable, operation: Callable[[list[str]], Outcome], groups: list[str]
    ) -> Outcome:
        """Perform an operation on some groups, and on the others in later event loop callbacks."""
        if len(groups) > GROUPS_A_SLICE:
            rest = partial(self.in_slices, key, operation, groups[GROUPS_A_SLICE:])
            self.state.deadlines.schedule(key, self.state.now_ms + 1, rest)
        return operation(groups[:GROUPS_A_SLICE])
