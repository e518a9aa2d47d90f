"""The share partitions of the partitions that this broker leads: found, loaded, driven and dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Protocol

from kraftd.broker_node.coordination.coordination import CoordinatingNode
from kraftd.broker_node.effects import LogLookup
from kraftd.broker_node.share_groups.settings import GroupSettings, ShareConfig, settings_of
from kraftd.broker_node.share_groups.share_counts import NS_PER_MS, GroupCounts, PartitionCounts, ShareCounts
from kraftd.broker_node.share_groups.share_states import ShareStates
from kraftd.controller.configs.resources import ResourceType
from kraftd.ground.effect import Effect
from kraftd.groups.deadlines import Deadlines
from kraftd.groups.share_state.key import SharePartitionKey
from kraftd.partition.reading import ListedOffset, TimestampLookup, list_offset
from kraftd.partition.share.acknowledging import Acknowledgement, expire
from kraftd.partition.share.effects import Change, WriteState
from kraftd.partition.share.share_partition import SharePartition, error_for_members
from kraftd.partition.share.states import RecordState
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.broker_node.directories.log_questions import LogQuestions
    from kraftd.broker_node.events import Found
    from kraftd.broker_node.partitions.replicas import Hosted
    from kraftd.messages.read_share_group_state_response import PartitionResult
    from kraftd.requests.call import Call

NO_OFFSET = -1
LIST_OFFSETS_VERSION = 10  # whose rules hold for the first offset
# After one of these the state here may not be that of the coordinator any more.
FENCING = frozenset(
    (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_STATE_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )
)

Failed = Callable[[ErrorCode], None]
Place = tuple[str, int]


class LeadingNode(CoordinatingNode, Protocol):
    """What share partitions use of the node."""

    @property
    def log_questions(self) -> LogQuestions: ...
    def missing_partition(self, topic: str, index: int) -> ErrorCode: ...


class LedSharePartition:
    """One share partition. `reader` is the fetch that reads for it now: there is one at a time."""

    __slots__ = (
        "counts",
        "effects",
        "is_active",
        "is_gone",
        "key",
        "leader_epoch",
        "reader",
        "share",
        "since_ms",
        "topic",
    )

    def __init__(
        self, key: SharePartitionKey, topic: str, leader_epoch: int, settings: GroupSettings, now_ms: int
    ) -> None:
        self.key = key
        self.topic = topic
        self.leader_epoch = leader_epoch
        self.effects: list[Effect] = []
        self.share = SharePartition(settings.limits, self.effects)
        self.is_active = False  # it is loaded
        self.is_gone = False
        self.reader: object = None
        self.since_ms = now_ms  # it is loaded since
        self.counts = PartitionCounts()

    def begin_reading(self, reader: object, now_ms: int) -> None:
        """Let a fetch read, and no other one until it is done."""
        self.reader = reader
        self.counts.reading(now_ms)

    def end_reading(self, now_ms: int) -> None:
        self.reader = None
        self.counts.has_read(now_ms)

    @property
    def place(self) -> Place:
        return self.topic, self.key.partition

    def __repr__(self) -> str:
        return f"<LedSharePartition {self.key.group_id} of {self.topic}-{self.key.partition}: {self.share!r}>"


class LedSharePartitions:
    """By their keys. `wake` is called when fetches for one may find records."""

    def __init__(
        self,
        node: LeadingNode,
        config: ShareConfig,
        states: ShareStates,
        wake: Callable[[SharePartitionKey], None],
    ) -> None:
        self._node = node
        self._config = config
        self._states = states
        self._wake = wake
        self._led: dict[SharePartitionKey, LedSharePartition] = {}
        self._by_place: dict[Place, set[SharePartitionKey]] = {}
        self._by_group: dict[str, set[SharePartitionKey]] = {}
        self._locks = Deadlines()
        self.counts = ShareCounts()

    def __iter__(self) -> Iterator[LedSharePartition]:
        """Those there are now, whatever changes meanwhile."""
        return iter(list(self._led.values()))

    def __len__(self) -> int:
        return len(self._led)

    def __repr__(self) -> str:
        return f"<LedSharePartitions {len(self)}>"

    def settings(self, group_id: str) -> GroupSettings:
        """The settings of a group, as they are now."""
        return settings_of(self._config, self._node.view.image.config(ResourceType.GROUP, group_id))

    def counts_of(self, group_id: str) -> GroupCounts:
        """The counts of a group, which go with its last share partition."""
        return self.counts.of(group_id) if group_id in self._by_group else GroupCounts()

    # -- finding

    def get(self, key: SharePartitionKey) -> LedSharePartition | None:
        """A share partition, with the settings of now; None if nothing was read of it yet."""
        led = self._led.get(key)
        if led is not None:
            led.share.limits = self.settings(key.group_id).limits
        return led

    def get_or_load(
        self, key: SharePartitionKey, topic: str, call: Call, failed: Failed
    ) -> LedSharePartition | ErrorCode:
        """A share partition, which may not be loaded yet, or why there is none.

        If this is the request that it is loaded for, `failed` gets the error.
        """
        led = self.get(key)
        if led is not None:
            return led
        hosted = self._node.replicas.get(topic, key.partition)
        if hosted is None or hosted.partition is None:
            return self._node.missing_partition(topic, key.partition)
        if not hosted.partition.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        settings, epoch = self.settings(key.group_id), hosted.partition.leader_epoch
        led = LedSharePartition(key, topic, epoch, settings, self._node.now_ms)
        self._led[key] = led
        self._by_place.setdefault(led.place, set()).add(key)
        self._by_group.setdefault(key.group_id, set()).add(key)
        self._states.read(key, led.leader_epoch, partial(self._loaded, led, call, failed))
        return led

    # -- loading

    def _loaded(
        self, led: LedSharePartition, call: Call, failed: Failed, found: PartitionResult | ErrorCode
    ) -> None:
        if led.is_gone:
            return

        def begin(start_offset: int | ErrorCode) -> None:
            if isinstance(start_offset, ErrorCode):
                self.remove(led.key)
                failed(start_offset)
            elif not led.is_gone:
                self._begin(led, found, start_offset, failed)

        if isinstance(found, ErrorCode):
            begin(error_for_members(found))
        elif found.start_offset != NO_OFFSET:
            begin(found.start_offset)
        else:
            self._find_start(led, call, begin)

    def _begin(
        self,
        led: LedSharePartition,
        found: PartitionResult | ErrorCode,
        start_offset: int,
        failed: Failed,
    ) -> None:
        assert not isinstance(found, ErrorCode)
        try:
            batches = [
                Change(one.first_offset, one.last_offset, RecordState(one.delivery_state), one.delivery_count)
                for one in found.state_batches
            ]
            led.share.load(start_offset, found.state_epoch, batches)
        except ValueError as error:
            where = {"group": led.key.group_id, "partition": f"{led.topic}-{led.key.partition}"}
            self._node.outbox.log(
                "error", "the state of a share partition is damaged", **where, why=str(error)
            )
            self.remove(led.key)
            failed(ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        led.is_active = True
        self.counts.load_times.note((self._node.now_ms - led.since_ms) * NS_PER_MS)
        self.settle(led)
        self._wake(led.key)

    def _find_start(
        self, led: LedSharePartition, call: Call, begin: Callable[[int | ErrorCode], None]
    ) -> None:
        """Find where a group that has read nothing yet begins."""
        hosted = self._node.replicas.get(*led.place)
        if hosted is None or hosted.partition is None:
            begin(self._node.missing_partition(*led.place))
            return
        target_ms = self.settings(led.key.group_id).start_timestamp_ms(self._node.wall_ms)
        epoch = led.leader_epoch
        listed = list_offset(hosted.partition, target_ms, LIST_OFFSETS_VERSION, current_leader_epoch=epoch)
        if not isinstance(listed, TimestampLookup):
            begin(offset_of(listed))
            return
        lookup: TimestampLookup = listed

        def found(results: tuple[Found | ErrorCode | None, ...]) -> None:
            (one,) = results
            begin(one if isinstance(one, ErrorCode) else offset_of(lookup.answer(one)))

        end_offset = hosted.partition.log_end_offset
        where = LogLookup(*led.place, lookup.target_ms, lookup.wants_maximum, end_offset)
        self._node.log_questions.find_offsets(call, (where,), found)

    # -- driving

    def settle(self, led: LedSharePartition) -> None:
        """Perform what a share partition wants, after each change of it."""
        has_more = False
        while led.effects:
            effect = led.effects.pop(0)
            if isinstance(effect, WriteState):
                self._states.write(
                    led.key, led.leader_epoch, effect, partial(self._written, led, effect.write_id)
                )
            else:
                has_more = True
        due_ms = None if led.is_gone else led.share.deadline_ms()
        if due_ms is None:
            self._locks.cancel(led.key)
        else:
            self._locks.schedule(led.key, due_ms, partial(self._expire, led))
        if has_more:
            self._wake(led.key)

    def _written(self, led: LedSharePartition, write_id: int, error: ErrorCode) -> None:
        led.share.written(write_id, error)
        if error:
            where = {"group": led.key.group_id, "partition": f"{led.topic}-{led.key.partition}"}
            self._node.outbox.log("warning", "share group state was not kept", **where, error=error.name)
        self.settle(led)

    def count(self, rows: Iterable[Acknowledgement]) -> None:
        """Count acknowledgements that are kept; one type stands for all of its records."""
        counted = self.counts.acknowledgements
        for one in rows:
            if len(one.types) == 1:
                counted[one.types[0]] += one.last_offset - one.first_offset + 1
            else:
                counted.update(one.types)

    def acknowledged(self, led: LedSharePartition, error: ErrorCode) -> None:
        """A member is answered: a share partition that another leader or epoch has taken over is dropped."""
        if error in FENCING and self._led.get(led.key) is led:
            self.remove(led.key)

    def deadline_ms(self) -> int | None:
        """When `run_due` has work; None for never."""
        return self._locks.next_ms()

    def run_due(self, now_ms: int) -> None:
        """Release the records whose locks end."""
        while (release := self._locks.take(now_ms)) is not None:
            release()

    def _expire(self, led: LedSharePartition) -> None:
        led.share.limits = self.settings(led.key.group_id).limits
        expire(led.share, self._node.now_ms)
        self.settle(led)

    # -- dropping

    def remove(self, key: SharePartitionKey) -> None:
        """Drop a share partition; the next fetch loads it again."""
        led = self._led.pop(key, None)
        if led is None:
            return
        led.is_active, led.is_gone = False, True
        self._locks.cancel(key)
        for index, name in ((self._by_place, led.place), (self._by_group, key.group_id)):
            keys = index[name]  # type: ignore[index]
            keys.discard(key)
            if not keys:
                del index[name]  # type: ignore[arg-type]
        if key.group_id not in self._by_group:
            self.counts.by_group.pop(key.group_id, None)
        self._wake(key)

    def remove_group(self, group_id: str) -> None:
        """Drop the share partitions of a group without members."""
        for key in list(self._by_group.get(group_id, ())):
            self.remove(key)

    def clear(self) -> None:
        """Drop all."""
        for key in list(self._led):
            self.remove(key)

    def leadership_changed(self, changed: Hosted, hosted: Hosted | None) -> None:
        """A partition may have another leader, or be gone."""
        partition = None if hosted is None else hosted.partition
        is_led = partition is not None and partition.is_leader
        for key in list(self._by_place.get((changed.topic, changed.index), ())):
            if not is_led or key.topic_id != changed.topic_id:
                self.remove(key)


def offset_of(listed: ListedOffset | ErrorCode) -> int | ErrorCode:
    if isinstance(listed, ErrorCode):
        return listed
    return ErrorCode.OFFSET_NOT_AVAILABLE if listed.offset == NO_OFFSET else listed.offset
