"""A broker's partitions of a coordinator's topic: which of them serve, and how requests reach them."""

from __future__ import annotations

from typing import Generic, TypeVar

from kraftd.ground.effect import Effect
from kraftd.ground.event import Event
from kraftd.ground.java_hashes import partition_for
from kraftd.ground.refusal import Refusal
from kraftd.groups.call import Call
from kraftd.groups.deadlines import Alarm
from kraftd.groups.effects import PartitionFailed, Respond
from kraftd.groups.events import (
    AppendFailed,
    HighWatermarkAdvanced,
    LoadingDue,
    PartitionElected,
    PartitionEvent,
    PartitionResigned,
    RecordsAppended,
    RecordsRead,
)
from kraftd.groups.shard import Shard, ShardStatus
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

S = TypeVar("S", bound=Shard)


class Shards(Generic[S]):
    """All shards of a broker; `partition_count` is that of the topic."""

    def __init__(self, partition_count: int) -> None:
        self.partition_count = partition_count
        self._max_batch_bytes: int | None = None  # until it is known
        self.shards: dict[int, S] = {}
        self.effects: list[Effect] = []
        self.unsent: dict[int, S] = {}  # with records to append
        self.alarm = Alarm()  # of the shards that serve: to look at each at every request takes too long

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.shards)} of {self.partition_count} partitions>"

    def new_shard(self, partition: int, leader_epoch: int) -> S:
        """A shard that is not loaded yet."""
        raise NotImplementedError

    def in_version(self, response: Message, version: int) -> Message:
        """An answer in the form of its version, where fields alone do not make the difference."""
        return response

    def partition_for(self, key: str) -> int:
        """The partition that holds a group or a transactional id."""
        return partition_for(key, self.partition_count)

    def limit_batches(self, max_bytes: int) -> None:
        """From now on a batch takes at most so many bytes: max.message.bytes of the topic."""
        if max_bytes != self._max_batch_bytes:
            self._max_batch_bytes = max_bytes
            for shard in self.shards.values():
                shard.limit_batches(max_bytes)

    # Events and time

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        """Take an event."""
        if isinstance(event, PartitionElected):
            self.elect(event, now_ms)
        elif isinstance(event, PartitionEvent) and event.partition in self.shards:
            self.shards[event.partition].state.now_ms = now_ms
            self.step_shard(self.shards[event.partition], event)
        return self.take_effects()

    def step_shard(self, shard: S, event: Event) -> None:
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
        shard = self.new_shard(partition, leader_epoch)
        shard.state.now_ms = now_ms
        shard.unsent = self.unsent
        shard.state.deadlines.alarm = self.alarm
        if self._max_batch_bytes is not None:
            shard.limit_batches(self._max_batch_bytes)
        self.shards[partition] = shard
        shard.load(start_offset, end_offset)

    def load_again(self, shard: S, end_offset: int) -> None:
        """The log holds what this coordinator has not written: what it knows may be wrong."""
        reason = f"the log ends at {end_offset}, not at {shard.batches.next_offset}"
        self.effects.append(PartitionFailed(shard.partition, shard.leader_epoch, reason))
        shard.unload()
        place = (shard.partition, shard.leader_epoch, shard.start_offset, end_offset)
        self.load(*place, shard.state.now_ms)

    def flush(self, now_ms: int) -> list[Effect]:
        """Append what requests and events have written; call it once an event loop callback."""
        unsent = list(self.unsent.values())
        self.unsent.clear()
        for shard in unsent:
            if shard.status is ShardStatus.ACTIVE:
                shard.state.now_ms = now_ms
                shard.flush()
        return self.take_effects()

    def deadline_ms(self) -> int | None:
        """When `tick` is to be called, which may be too early; None while nothing is due."""
        return self.alarm.due_ms

    def set_alarm(self) -> None:
        """Find out when the first shard is due."""
        self.alarm.due_ms = None
        for shard in self.shards.values():
            if shard.status is ShardStatus.ACTIVE:
                self.alarm.lower(shard.deadline_ms())

    def clock_moved(self, moved_ms: int) -> None:
        """The wall clock was set: the times of requests and ticks jump from now on."""
        for shard in self.shards.values():
            shard.clock_moved(moved_ms)
        self.set_alarm()

    def tick(self, now_ms: int) -> list[Effect]:
        """Perform what is due."""
        for shard in self.active(now_ms):
            shard.tick()
        self.set_alarm()
        return self.take_effects()

    def active(self, now_ms: int) -> list[S]:
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
            shown = self.in_version(response, call.version)
            self.effects.append(Respond(call.token, shown, call.again, call.varied))

    # Finding a shard

    def shard_of(self, key: str, now_ms: int) -> S:
        """The shard of a group or a transactional id; Refusal while it does not serve requests."""
        shard = self.shards.get(self.partition_for(key))
        if shard is None or shard.status is ShardStatus.FAILED:
            raise Refusal(ErrorCode.NOT_COORDINATOR)
        if shard.status is ShardStatus.LOADING:
            raise Refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        shard.state.now_ms = now_ms
        return shard
