"""A coordinator with a log in memory, a clock, and one caller after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kraftd.ground.effect import Effect
from kraftd.ground.event import Event
from kraftd.groups.call import Call
from kraftd.groups.config import GroupConfig
from kraftd.groups.consumer.gathering import ALONE_MS
from kraftd.groups.consumer.metadata_hash import topic_hash
from kraftd.groups.coordinator import GroupCoordinator
from kraftd.groups.effects import (
    AppendMarker,
    AppendRecords,
    PartitionFailed,
    PartitionLoaded,
    ReadRecords,
    Respond,
    RespondAgain,
    ScheduleLoading,
)
from kraftd.groups.events import (
    AppendFailed,
    HighWatermarkAdvanced,
    LoadingDue,
    PartitionElected,
    RecordsAppended,
    RecordsRead,
)
from kraftd.groups.records import KeyAndValue, decode_record
from kraftd.groups.share.effects import AskShareCoordinators, FindLatestOffsets
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kraftd.messages.heartbeat_request import HeartbeatRequest
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from testkit.keyed_batches import keyed_batch, marker_batch

# A record in a log: its key and value, or the end of a transaction; and its producer id.
Logged = tuple[KeyAndValue | bool, int]
# A request in its version and by its client, with its answer, and what takes it again.
Repeatable = tuple[tuple[Message, int, str], Message, Callable[[int], bool]]


class KnownTopics:
    """Topics by name, with an id made of the name and a number of partitions."""

    def __init__(self, **partitions: int) -> None:
        self.partitions = partitions
        self.image_version = self.newest_version = 1
        self.configs: dict[str, dict[str, str]] = {}
        self.of_brokers: dict[str, str] = {}  # dynamic ones

    def topic_id(self, name: str) -> bytes | None:
        return name.encode().rjust(16, b"\1") if name in self.partitions else None

    def topic_name(self, topic_id: bytes) -> str | None:
        likely = topic_id.lstrip(b"\1").decode(errors="replace")
        if self.topic_id(likely) == topic_id:
            return likely
        return next((name for name in self.partitions if self.topic_id(name) == topic_id), None)

    def has_partition(self, name: str, index: int) -> bool:
        return 0 <= index < self.partitions.get(name, 0)

    # What consumer groups need besides

    def version(self) -> int:
        return self.image_version

    def hashes_version(self) -> int:
        return self.image_version

    def names_version(self) -> int:
        return self.newest_version

    def names(self) -> list[str]:
        return list(self.partitions)

    def partition_count(self, topic_id: bytes) -> int:
        return self.partitions.get(self.topic_name(topic_id) or "", 0)

    def topic_hash(self, name: str) -> int | None:
        topic_id = self.topic_id(name)
        return None if topic_id is None else topic_hash(topic_id, name, ((),) * self.partitions[name], {})

    def group_configs(self, group_id: str) -> dict[str, str]:
        return self.configs.get(group_id, {})

    def dynamic_config(self, name: str) -> str | None:
        return self.of_brokers.get(name)

    def change(self, name: str, count: int | None) -> None:
        """Create a topic, or give it another number of partitions; None deletes it."""
        self.image_version += 1
        if count is None:
            del self.partitions[name]
            return
        if name not in self.partitions:
            self.newest_version = self.image_version
        self.partitions[name] = count

    def configure(self, group_id: str, configs: dict[str, str]) -> None:
        """Set the configs of a group."""
        self.image_version += 1
        self.configs[group_id] = configs


class Desk:
    """Performs effects at once, unless `is_held` keeps high watermarks back, or `failure` refuses appends.

    A request that could be taken again without being handled is handled all the same: its answer must be the
    one that it had, and nothing may be written.
    """

    def __init__(self, config: GroupConfig | None = None, partition_count: int = 1, **topics: int) -> None:
        self.config = config or GroupConfig()
        self.topics = KnownTopics(**(topics or {"orders": 4, "audit": 2}))
        self.now_ms = 1_000_000
        self.logs: dict[int, list[Logged]] = {number: [] for number in range(partition_count)}
        self.committed: dict[int, int] = dict.fromkeys(self.logs, 0)
        self.answers: dict[int, Any] = {}  # None: that of the request before
        self.varied: Any = None  # what takes the last commit with other offsets
        self.notes: list[Effect] = []
        self.asked: list[AskShareCoordinators | FindLatestOffsets] = []  # not answered yet
        self.is_held = False
        self.failure: ErrorCode | None = None
        self.calls = 0
        self.last: dict[tuple[type, str, str], Repeatable] = {}
        self.repeatable: dict[int, Callable[[int], bool]] = {}  # what takes a request again, by its number
        self.repeated_count = 0
        self.run_slice: Callable[[Iterator[None]], None] = next
        self.uuids: Callable[[], str] = self._next_uuid
        self.uuid_count = 0
        self.coordinator = self.new_coordinator()
        self.load()

    def _next_uuid(self) -> str:
        self.uuid_count += 1
        return f"{self.uuid_count:04d}"

    def new_coordinator(self) -> GroupCoordinator:
        coordinator = GroupCoordinator(self.config, self.topics, lambda: self.uuids())
        coordinator.partition_count = len(self.logs)
        return coordinator

    def load(self, epoch: int = 1) -> None:
        for number, log in self.logs.items():
            self.step(PartitionElected(number, epoch, 0, len(log)))

    def reload(self) -> None:
        """Begin again with what is in the logs, as another broker would."""
        self.last.clear()
        self.coordinator = self.new_coordinator()
        self.load()

    # What a broker does

    def step(self, event: Event) -> None:
        self.perform(self.coordinator.step(event, self.now_ms))

    def flush(self) -> None:
        self.perform(self.coordinator.flush(self.now_ms))

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Respond):
                assert effect.token not in self.answers, f"{effect!r} is the second answer"
                self.answers[effect.token] = effect.response
                self.varied = effect.varied or self.varied
                if effect.again is not None:
                    self.repeatable[effect.token] = effect.again
            elif isinstance(effect, RespondAgain):
                assert effect.token not in self.answers, f"{effect!r} is the second answer"
                self.answers[effect.token] = None
            elif isinstance(effect, AppendRecords | AppendMarker):
                self.append(effect)
            elif isinstance(effect, ReadRecords):
                data = self.batches(effect.partition, effect.offset)
                number, epoch = effect.partition, effect.leader_epoch
                self.step(RecordsRead(number, epoch, data, self.committed[number]))
            elif isinstance(effect, AskShareCoordinators | FindLatestOffsets):
                self.asked.append(effect)
            elif isinstance(effect, ScheduleLoading):
                self.step(LoadingDue(effect.partition, effect.leader_epoch))
            else:
                assert isinstance(effect, PartitionFailed | PartitionLoaded)
                self.notes.append(effect)

    def append(self, effect: AppendRecords | AppendMarker) -> None:
        number, log = effect.partition, self.logs[effect.partition]
        if self.failure is not None or effect.base_offset != len(log):
            error = self.failure or ErrorCode.NOT_COORDINATOR
            end = len(log) if effect.base_offset != len(log) else None
            self.step(AppendFailed(number, effect.batch_id, error, end))
            return
        if isinstance(effect, AppendMarker):
            log.append((effect.is_commit, effect.producer_id))
        else:
            log += [(record, effect.producer_id) for record in effect.records]
        self.step(RecordsAppended(number, effect.batch_id))
        if not self.is_held:
            self.commit(number)

    def commit(self, number: int = 0) -> None:
        """The high watermark reaches the log's end."""
        self.committed[number] = len(self.logs[number])
        self.step(HighWatermarkAdvanced(number, self.committed[number]))

    def release(self) -> None:
        self.is_held = False
        for number in self.logs:
            self.commit(number)

    def batches(self, number: int, offset: int, most: int = 1000) -> bytes:
        """A batch or two of the log from an offset on."""
        parts = []
        for start in range(offset, min(offset + most, len(self.logs[number]))):
            what, producer_id = self.logs[number][start]
            if isinstance(what, bool):
                parts.append(marker_batch(start, producer_id, 0, what))
            else:
                parts.append(keyed_batch([what], start, 1, self.now_ms, producer_id))
        return b"".join(parts)

    # What tests ask

    def send(self, request: Message, version: int, client_id: str = "client") -> int:
        """Send a request; return its number, by which its answer will be found."""
        self.calls += 1
        call = Call(self.calls, version, client_id, "/127.0.0.1")
        whole, former = (request, version, client_id), self.last_of(request)
        expected = former[1] if former and former[0] == whole and former[2](self.now_ms) else None
        ends = {number: len(log) for number, log in self.logs.items()}
        call.divided = self.divide(call, request)
        self.perform(self.coordinator.handle(call, request, self.now_ms))
        self.flush()
        if expected is not None:
            self.repeated_count += 1
            assert self.answers.get(call.token) == expected, f"{request!r} is answered otherwise"
            assert ends == {number: len(log) for number, log in self.logs.items()}
        again = self.repeatable.pop(call.token, None)
        if again is not None:
            self.last[self.sender(request)] = whole, self.answers[call.token], again
        return call.token  # type: ignore[no-any-return]

    def sender(self, request: Any) -> tuple[type, str, str]:
        return type(request), request.group_id, request.member_id

    def last_of(self, request: Any) -> Repeatable | None:
        """The last heartbeat of a member that can be taken again."""
        is_heartbeat = isinstance(request, HeartbeatRequest | ConsumerGroupHeartbeatRequest)
        return self.last.get(self.sender(request)) if is_heartbeat else None

    def divide(self, call: Call, request: Message) -> object:
        """What a heartbeat needs first, by slices."""
        if not isinstance(self.coordinator, GroupCoordinator):
            return None
        for _ in self.coordinator.hash_first(request) or ():
            pass
        slices = self.coordinator.divide_first(call, request)
        while slices is not None:
            try:
                self.run_slice(slices)
            except StopIteration as end:
                return end.value
        return None

    def ask(self, request: Message, version: int, client_id: str = "client") -> Any:
        """Send a request and return its answer, which must have come; a member may wait for others."""
        number = self.send(request, version, client_id)
        if number not in self.answers and isinstance(request, ConsumerGroupHeartbeatRequest):
            self.wait(ALONE_MS)
        assert number in self.answers, f"{request!r} has no answer yet"
        return self.answers[number]

    def wait(self, time_ms: int) -> None:
        """Let time pass, with everything that becomes due."""
        end_ms = self.now_ms + time_ms
        self.check_alarm()
        while (due_ms := self.coordinator.deadline_ms()) is not None and due_ms <= end_ms:
            self.now_ms = max(self.now_ms, due_ms)
            self.perform(self.coordinator.tick(self.now_ms))
            self.flush()
        self.now_ms = end_ms

    def check_alarm(self) -> None:
        """The coordinator knows the first deadline of its shards, or an earlier time."""
        alarm_ms = self.coordinator.deadline_ms()
        for shard in self.coordinator.active(self.now_ms):
            due_ms = shard.deadline_ms()
            assert due_ms is None or (alarm_ms is not None and alarm_ms <= due_ms), (alarm_ms, shard)

    def records(self, number: int = 0) -> list[Any]:
        """The records of a log, decoded."""
        return [what if isinstance(what, bool) else decode_record(*what)[1] for what, _ in self.logs[number]]
