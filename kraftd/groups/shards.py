"""A broker's partitions of ``__consumer_offsets``: which of them serve, and how requests reach them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kraftd.acl import AclOperation, AclResourceType
from kraftd.ground.effect import Effect
from kraftd.ground.event import Event
from kraftd.ground.refusal import Refusal
from kraftd.groups.answers import in_version
from kraftd.groups.call import Call, Topics
from kraftd.groups.classic.memory import MemberMemory
from kraftd.groups.config import GroupConfig
from kraftd.groups.effects import PartitionFailed, Respond
from kraftd.groups.errors import answer_to_failed_append
from kraftd.groups.events import (
    AppendFailed,
    HighWatermarkAdvanced,
    LoadingDue,
    PartitionElected,
    PartitionEvent,
    PartitionResigned,
    RecordsAppended,
    RecordsRead,
    TopicsDeleted,
)
from kraftd.groups.java_hashes import partition_for
from kraftd.groups.shard import Refuse, Shard, ShardStatus
from kraftd.groups.state import Counts, Outcome, ShardState
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message


class Shards:
    """All shards of a broker.

    partition_count: of ``__consumer_offsets``. new_uuid makes the random part of member ids.
    """

    def __init__(self, config: GroupConfig, topics: Topics, new_uuid: Callable[[], str]) -> None:
        self.config = config
        self.topics = topics
        self.new_uuid = new_uuid
        self.partition_count = config.offsets_topic_num_partitions
        self.shards: dict[int, Shard] = {}
        self.counts = Counts()
        self.memory = MemberMemory(config.members_max_bytes)
        self.effects: list[Effect] = []

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.shards)} of {self.partition_count} partitions>"

    def partition_for(self, group_id: str) -> int:
        """The partition that holds a group."""
        return partition_for(group_id, self.partition_count)

    # Events and time

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        """Take an event."""
        if isinstance(event, PartitionElected):
            self.elect(event, now_ms)
        elif isinstance(event, TopicsDeleted):
            for shard in self.active(now_ms):
                shard.write(partial(shard.remove_topics, event.topics))
        elif isinstance(event, PartitionEvent) and event.partition in self.shards:
            self.shards[event.partition].state.now_ms = now_ms
            self.step_shard(self.shards[event.partition], event)
        return self.take_effects()

    def step_shard(self, shard: Shard, event: Event) -> None:
        if isinstance(event, HighWatermarkAdvanced):
            shard.commit(event.offset)
        elif isinstance(event, RecordsAppended):
            shard.appended(event.batch_id)
        elif isinstance(event, AppendFailed):
            if shard.append_failed(event.batch_id, event.error) and event.log_end_offset is not None:
                self.load_again(shard, event.log_end_offset)
        elif isinstance(event, PartitionResigned):
            del self.shards[shard.partition]
            shard.unload()
        elif isinstance(event, RecordsRead) and event.leader_epoch == shard.leader_epoch:
            shard.take_read(event)
        elif isinstance(event, LoadingDue) and event.leader_epoch == shard.leader_epoch:
            shard.load_slice()

    def elect(self, event: PartitionElected, now_ms: int) -> None:
        """Load a partition, unless it is loaded for this epoch or a later one already."""
        old = self.shards.get(event.partition)
        if old is not None:
            if old.leader_epoch >= event.leader_epoch and old.status is not ShardStatus.FAILED:
                return
            if old.status is ShardStatus.ACTIVE:
                old.leader_epoch = event.leader_epoch  # this broker leads on: what it knows stays true
                return
            old.unload()
        self.load(event.partition, event.leader_epoch, event.log_start_offset, event.log_end_offset, now_ms)

    def load(
        self, partition: int, leader_epoch: int, start_offset: int, end_offset: int, now_ms: int
    ) -> None:
        state = ShardState(self.config, self.respond, self.new_uuid, self.counts, self.memory)
        state.now_ms = now_ms
        shard = Shard(partition, leader_epoch, state, self.effects)
        self.shards[partition] = shard
        shard.load(start_offset, end_offset)

    def load_again(self, shard: Shard, end_offset: int) -> None:
        """The log holds what this coordinator has not written: what it knows may be wrong."""
        reason = f"the log ends at {end_offset}, not at {shard.batches.next_offset}"
        self.effects.append(PartitionFailed(shard.partition, shard.leader_epoch, reason))
        shard.unload()
        place = (shard.partition, shard.leader_epoch, shard.start_offset, end_offset)
        self.load(*place, shard.state.now_ms)

    def end_transaction(
        self,
        partition: int,
        producer: tuple[int, int],
        coordinator_epoch: int,
        is_commit: bool,
        answer: Callable[[ErrorCode], None],
        now_ms: int,
    ) -> list[Effect]:
        """Write the marker of a transaction's end into a partition; producer is its id and epoch."""
        shard = self.shards.get(partition)
        if shard is None or shard.status is not ShardStatus.ACTIVE:
            is_loading = shard is not None and shard.status is ShardStatus.LOADING
            answer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_loading else ErrorCode.NOT_COORDINATOR)
        else:
            shard.state.now_ms = now_ms
            shard.end_transaction(producer, coordinator_epoch, is_commit, answer)
        return self.take_effects()

    def flush(self, now_ms: int) -> list[Effect]:
        """Append what requests and events have written; call it once an event loop callback."""
        for shard in self.active(now_ms):
            shard.flush()
        return self.take_effects()

    def deadline_ms(self) -> int | None:
        """When `tick` is due at the latest; None while nothing is."""
        due = [shard.deadline_ms() for shard in self.shards.values() if shard.status is ShardStatus.ACTIVE]
        return min((time_ms for time_ms in due if time_ms is not None), default=None)

    def tick(self, now_ms: int) -> list[Effect]:
        """Perform what is due."""
        for shard in self.active(now_ms):
            shard.tick()
        return self.take_effects()

    def active(self, now_ms: int) -> list[Shard]:
        """The shards that serve requests, at a time."""
        shards = [shard for shard in self.shards.values() if shard.status is ShardStatus.ACTIVE]
        for shard in shards:
            shard.state.now_ms = now_ms
        return shards

    def take_effects(self) -> list[Effect]:
        effects = self.effects[:]
        self.effects.clear()  # shards hold the list
        return effects

    def respond(self, call: Call, response: Message) -> None:
        """Answer a call, unless it is answered."""
        if not call.is_answered:
            call.is_answered = True
            self.effects.append(Respond(call.token, in_version(response, call.version)))

    # Finding a group's shard

    def shard_of(self, group_id: str, now_ms: int) -> Shard:
        """The shard of a group; Refusal while it does not serve requests."""
        shard = self.shards.get(self.partition_for(group_id))
        if shard is None or shard.status is ShardStatus.FAILED:
            raise Refusal(ErrorCode.NOT_COORDINATOR)
        if shard.status is ShardStatus.LOADING:
            raise Refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        shard.state.now_ms = now_ms
        return shard

    def write(
        self,
        call: Call,
        group_id: str,
        now_ms: int,
        operation: Callable[[ShardState], Outcome],
        refuse: Refuse,
        allow_empty_id: bool = False,
        producer: tuple[int, int] = (-1, -1),
    ) -> None:
        """Perform an operation in the shard of its group, with errors as a client is answered them."""

        def refuse_mapped(error: ErrorCode) -> Any:
            return refuse(answer_to_failed_append(error))

        if not group_id and not allow_empty_id:
            self.respond(call, refuse(ErrorCode.INVALID_GROUP_ID))
            return
        try:
            shard = self.shard_of(group_id, now_ms)
        except Refusal as error:
            self.respond(call, refuse(error.code))
            return
        shard.write(partial(operation, shard.state), partial(self.respond, call), refuse_mapped, producer)

    def may(self, call: Call, operation: AclOperation, group_id: str) -> bool:
        """Return whether the caller may do this to a group."""
        return call.allows(operation, AclResourceType.GROUP, group_id)

    def permit(self, call: Call, operation: AclOperation, group_id: str, refuse: Refuse) -> bool:
        """Answer a call that may not do this to a group.

        Return whether it may.
        """
        if self.may(call, operation, group_id):
            return True
        self.respond(call, refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED))
        return False
