"""Kafka's UnifiedLog beside a partition and a log of kraftd's, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from kraftd.ground.effect import Effect
from kraftd.host.broker_logs.appending import append_batches
from kraftd.host.broker_logs.producer_reload import ProducerReload
from kraftd.host.broker_logs.replayed_producers import ReplayedProducers
from kraftd.log.data.data_log import DataLog
from kraftd.log.data.opening import Found, finish, open_data_log
from kraftd.log.data.reading import run_cold
from kraftd.log.data.resources import LogResources
from kraftd.log.data.retention import remove_expired
from kraftd.log.data.settings import DataLogSettings
from kraftd.log.data.time_search import max_timestamp, offset_for_timestamp
from kraftd.log.memory_disk import MemoryDisk
from kraftd.log.segment import LOG_SUFFIX, PRODUCER_SNAPSHOT_SUFFIX, offset_of_name, segment_name
from kraftd.log_dirs.names import parse_name
from kraftd.partition.config import PRODUCERS_CODEC, PartitionConfig
from kraftd.partition.effects import AppendBatches, LogStartMoved, StartLogAt
from kraftd.partition.partition import FOLLOWER, LEADER, Partition, Produced
from kraftd.partition.producers import NO_GUARD
from kraftd.partition.reading import Isolation, ListedOffset, delete_records, judge_fetch, list_offset
from kraftd.partition.replication import fetched_from_leader
from kraftd.partition.validation import ProduceRefusal
from kraftd.wire.batch import iter_batches
from kraftd.wire.error_code import ErrorCode
from tests.kafkas_tests.agent import Columns
from tests.kafkas_tests.producers import data_header, shown
from tests.kafkas_tests.validation import CODECS, FORMAT_V2
from tests.partition.places import Brokers

PARENT = "/logs"
_MAGIC_AT, _OVERHEAD_BYTES = 16, 17
ISOLATIONS = {
    "LOG_END": Isolation.LOG_END,
    "HIGH_WATERMARK": Isolation.HIGH_WATERMARK,
    "TXN_COMMITTED": Isolation.LAST_STABLE,
}
NEWEST_LIST_OFFSETS = 11


class Unasked(Exception):
    """A step that kraftd has no counterpart of: the log is not compared any further."""


class AtOnce:
    """Threads whose work is done at once."""

    def run(
        self, work: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[Exception], None]
    ) -> None:
        try:
            result = work()
        except Exception as error:
            failed(error)
        else:
            done(result)


def settings_of(text: str) -> tuple[DataLogSettings, PartitionConfig]:
    """What the agent writes of a log's config."""
    columns = text.split(" ")
    numbers = [int(each) for each in columns[:10]]
    deletes, compacts = columns[10] == "true", columns[11] == "true"
    segment_bytes, segment_ms, jitter_ms, index_bytes, interval, flush, flush_ms, size, time_ms, delay_ms = (
        numbers
    )
    lag_ms = int(columns[15])
    settings = DataLogSettings(
        segment_bytes=segment_bytes,
        segment_ms=min(segment_ms, lag_ms) if compacts else segment_ms,
        segment_jitter_ms=jitter_ms,
        segment_index_bytes=index_bytes,
        index_interval_bytes=interval,
        flush_messages=flush,
        flush_ms=flush_ms,
        retention_bytes=size,
        retention_ms=time_ms,
        file_delete_delay_ms=delay_ms,
        deletes=deletes,
        compacts=compacts,
    )
    codec = columns[20]
    config = PartitionConfig(
        is_compacted=compacts,
        is_deleted=deletes,
        max_message_bytes=int(columns[16]),
        segment_bytes=segment_bytes,
        sets_append_time=columns[17] == "LogAppendTime",
        timestamp_before_max_ms=int(columns[18]),
        timestamp_after_max_ms=int(columns[19]),
        compression=PRODUCERS_CODEC
        if codec == "producer"
        else CODECS.index(codec.replace("uncompressed", "none")),
    )
    return settings, config


def without_times(shape: str) -> str:
    return " ".join(each.rpartition(":")[0] for each in shape.split())


def brief(entries: Iterable[str]) -> str:
    """Producers with their last batch alone: a recovery of kraftd's knows more of them, and its timestamp."""
    found = []
    for entry in entries:
        head, _, batches = entry.rpartition(":")
        found.append(f"{head}:{batches.rpartition(';')[2].rpartition(',')[0]}")
    return " ".join(sorted(found))


def of_segments(snapshots: Iterable[int], bases: list[int]) -> str:
    """The snapshots with which segments begin. Kafka writes others where it truncates."""
    return " ".join(str(each) for each in sorted(snapshots) if each in bases[1:])


class KraftdsLog:
    """A partition and its log, opened from the files that Kafka has found."""

    def __init__(self, columns: Columns) -> None:
        name, now_ms, config, start, point, clean, expiration_ms, verifies, timeout_ms, _, files = columns
        self.settings, partition_config = settings_of(config)
        self.config = msgspec.structs.replace(
            partition_config,
            producer_id_expiration_ms=int(expiration_ms),
            verifies_transactions=verifies == "true",
            transaction_max_timeout_ms=int(timeout_ms),
        )
        self.disk = MemoryDisk()
        topic, index, suffix = parse_name(name, PARENT)
        self.directory = f"{PARENT}/{name}"
        self.now_ms = int(now_ms)
        self._write(files)
        resources = LogResources(self.disk)
        producers = ReplayedProducers(self.config, self.now_ms)
        found = Found(int(start), int(point), clean == "true")
        opening = open_data_log(
            resources,
            PARENT,
            topic,
            index,
            self.settings,
            found,
            now_ms=self.now_ms,
            producers=producers,
            name=name if suffix else None,
        )
        self.log: DataLog = finish(opening).log
        self.partition = Partition(
            topic, index, 1, self.config, Brokers(), self.log.epochs, log_start_offset=self.log.log_start,
            log_end_offset=self.log.log_end, producers=producers.states,
        )  # fmt: skip
        self.partition.role = LEADER
        self.guards: dict[str, int] = {"none": NO_GUARD}
        self.is_new = True
        self.has_successor = False  # another one of this directory, which Kafka's shares
        self.not_here: set[int] = set()  # snapshots of Kafka's that kraftd does not write

    def _write(self, files: str) -> None:
        self.disk.make_directory(self.directory)
        for each in filter(None, files.split(" ")):
            name, modified, content = each.split("=", 2)
            if content == "large":
                raise Unasked("a large file")
            size, _, data = content.partition("=")
            path = f"{self.directory}/{name}"
            file = self.disk.open(path, create=True)
            if int(size):
                file.write(0, bytes.fromhex(data).ljust(int(size), b"\0"))
            self.disk.modified[path] = int(modified)

    # --- state ---

    def follow_test(self, shape: str, epochs: str, snapshots: list[str], verifies: bool) -> None:
        """Do what a test has done beside the log. Raises Unasked if it changed segments."""
        if shape.split() and without_times(shape) != self.shape():
            raise Unasked("segments that the test has changed")
        for offset in set(self.snapshots()) - set(map(int, snapshots)):
            self.disk.remove(self.log.files.snapshot_path(offset))
        self.not_here = set(map(int, snapshots)) - set(self.snapshots())
        self.follow_epochs(epochs)
        if verifies != self.config.verifies_transactions:
            self.config = msgspec.structs.replace(self.config, verifies_transactions=verifies)
            self.partition.config = self.config

    def follow_epochs(self, epochs: str) -> None:
        """Know the epochs that leaders have begun."""
        for epoch, start in (each.split(":") for each in epochs.split()):
            self.log.assign_epoch(int(epoch), int(start))

    def shape(self) -> str:
        return " ".join(f"{each.base_offset}:{each.end_position}" for each in self.log.segments)

    def differs(self, state: Columns) -> str | None:
        """How the state differs from Kafka's; None if it does not."""
        if len(state) < 2:
            raise Unasked("a log that cannot be read")
        log, partition = self.log, self.partition
        if self.is_new:  # Kafka's opening writes some that kraftd's does not need
            self.not_here = set(map(int, state[7].split())) - set(self.snapshots())
            self.is_new = False
        bases = [each.base_offset for each in log.segments]
        for each in state[4].split():
            base, _, modified = each.split(":")
            self.disk.modified[f"{self.directory}/{segment_name(int(base), LOG_SUFFIX)}"] = int(modified)
        ours = {
            "start": (str(log.log_start), state[0]),
            "partition's start": (str(partition.log_start_offset), state[0]),
            "end": (str(log.log_end), state[1]),
            "partition's end": (str(partition.log_end_offset), state[1]),
            "segments": (self.shape(), without_times(state[4])),
            "high watermark": (str(partition.high_watermark), state[2]),
            "last stable offset": (str(partition.last_stable_offset), state[3]),
            "epochs": (" ".join(f"{epoch}:{start}" for epoch, start in log.epochs.entries), state[5]),
            "producers": (brief(map(shown, partition.producers)), brief(state[6].split())),
            "snapshots": (
                of_segments(self.snapshots(), bases),
                of_segments(set(map(int, state[7].split())) - self.not_here, bases),
            ),
        }
        found = [f"{name} {each[0]!r} for {each[1]!r}" for name, each in ours.items() if each[0] != each[1]]
        return "; ".join(found) or None

    def snapshots(self) -> list[int]:
        names = self.disk.list_names(self.directory)
        return sorted(offset_of_name(name) or 0 for name in names if name.endswith(PRODUCER_SNAPSHOT_SUFFIX))

    # --- steps: each gives its result as the agent writes it, None if it is not to be compared ---

    def perform(self, effects: Iterable[Effect]) -> None:
        """Do what effects other than appends say."""
        for effect in effects:
            if isinstance(effect, LogStartMoved):
                self.log.increment_log_start(effect.log_start_offset)
            elif isinstance(effect, StartLogAt):
                start = effect.log_start_offset
                self.log.truncate_fully_and_start_at(effect.offset, self.now_ms, start)

    def written(self, append: AppendBatches) -> None:
        partition = self.partition
        base = append.base_offset
        append_batches(self.log, append, self.now_ms, lambda: partition.snapshot_before(base))
        role, partition.role = partition.role, FOLLOWER  # the test moves the high watermark
        partition.appended(append.end_offset, self.now_ms)
        partition.role = role

    def append_as_leader(self, columns: Columns) -> str:
        data, epoch, *rest = columns
        origin = rest[0] if rest else "CLIENT"
        guard = rest[2] if len(rest) > 2 else "none"
        version = max(int(rest[3]), 0) if len(rest) > 3 else 0
        batch = bytearray.fromhex(data)
        if not batch:
            return "-1 -1 -1"  # a Produce without a batch is refused before it comes to a log
        if origin == "COORDINATOR" and rest[3:] == ["-1"]:
            raise Unasked("a marker of no transaction.version")
        is_old = len(batch) > _MAGIC_AT and batch[_MAGIC_AT] < FORMAT_V2
        if is_old or origin not in ("CLIENT", "COORDINATOR"):
            raise Unasked("an old format, or records of a quorum")
        partition = self.partition
        partition.role, partition.leader_epoch = LEADER, int(epoch)
        if origin == "CLIENT":
            found = partition.produce(batch, 12, 1, self.now_ms, guard=self.guards[guard])
        else:
            found = partition.append_own(
                batch, 1, self.now_ms, transaction_version=version, guard=self.guards[guard]
            )
        if isinstance(found, ProduceRefusal):
            return f"failed {found.error.name}"
        assert isinstance(found, Produced)
        if found.append is not None:
            self.written(found.append)
        return f"{found.base_offset} {found.required_offset - 1} {found.append_time_ms}"

    def append_as_follower(self, columns: Columns) -> str | None:
        data, epoch = bytes.fromhex(columns[0]), int(columns[1])
        if len(data) > _MAGIC_AT and data[_MAGIC_AT] in (0, 1):
            raise Unasked("an old format")
        partition = self.partition
        partition.role, partition.leader_epoch = FOLLOWER, epoch
        effects = fetched_from_leader(partition, data, epoch)
        if isinstance(effects, ErrorCode):
            return f"failed {effects.name}"
        for effect in effects:
            if isinstance(effect, AppendBatches):
                self.written(effect)
            else:
                self.perform([effect])
        return None

    def truncated_to(self, offset: int) -> bool:
        done = self.log.truncate_to(offset, self.now_ms)
        producers: list[ReplayedProducers] = []

        def failed(error: Exception) -> None:
            raise error

        states = ReplayedProducers(self.config, self.now_ms)
        ProducerReload(self.log, states, self.disk, run_cold, AtOnce(), producers.append, failed).start()  # type: ignore[arg-type]
        self.partition.truncated(self.log.log_start, self.log.log_end, producers[0].states)
        return done

    def truncate_to(self, columns: Columns) -> str:
        self.partition.next_offset = min(self.partition.next_offset, int(columns[0]))
        return str(self.truncated_to(int(columns[0]))).lower()

    def truncate_fully(self, columns: Columns) -> None:
        offset = int(columns[0])
        start = offset if columns[1] == "none" else int(columns[1])
        if start != offset:
            raise Unasked("a log that begins in tiered storage")
        self.log.truncate_fully_and_start_at(offset, self.now_ms, start)
        self.partition.producers.load((), offset, self.config, self.now_ms)
        self.partition.truncated(start, offset)

    def move_high_watermark(self, columns: Columns) -> None:
        self.partition.move_high_watermark(int(columns[0]))

    def increment_high_watermark(self, columns: Columns) -> str | None:
        offset = int(columns[0])
        if offset > self.partition.log_end_offset:
            return "failed UNKNOWN_SERVER_ERROR"
        if offset > self.partition.high_watermark:
            self.partition.move_high_watermark(offset)
        return None

    def increment_log_start(self, columns: Columns) -> str:
        before = self.partition.log_start_offset
        role, self.partition.role = self.partition.role, LEADER
        config, self.partition.config = self.partition.config, PartitionConfig()
        found = delete_records(self.partition, int(columns[0]))
        self.partition.role, self.partition.config = role, config
        if isinstance(found, ErrorCode):
            return f"failed {found.name}"
        self.perform(found.effects)
        return str(self.partition.log_start_offset > before).lower()

    def delete_old(self, _: Columns) -> str:
        producers = lambda: self.partition.snapshot_before(self.log.log_end)  # noqa: E731
        count = remove_expired(self.log, self.now_ms, self.partition.high_watermark, producers)
        self.partition.move_log_start(self.log.log_start)
        return str(count)

    def roll(self, columns: Columns) -> str:
        base = int(columns[0]) if columns and columns[0] not in ("", "none") else None
        self.log.roll(self.now_ms, lambda: self.partition.snapshot_before(self.log.log_end), base)
        return str(self.log.segments[-1].base_offset)

    def offset_by_timestamp(self, columns: Columns) -> str:
        partition = self.partition
        partition.role = LEADER
        latest = partition.epochs.latest
        partition.leader_epoch = -1 if latest is None else latest
        found = list_offset(partition, int(columns[0]), NEWEST_LIST_OFFSETS, isolation=Isolation.LOG_END)
        if isinstance(found, ErrorCode):
            return f"failed {found.name}"
        if not isinstance(found, ListedOffset):
            record = (
                max_timestamp(self.log)
                if found.wants_maximum
                else offset_for_timestamp(self.log, found.target_ms)
            )
            answer = found.answer(
                None if record is None else (record.offset, record.timestamp_ms, record.leader_epoch)
            )
            if isinstance(answer, ErrorCode):
                return f"failed {answer.name}"
            if answer == ListedOffset():
                return "none"
            found = answer
        return f"{found.timestamp_ms} {found.offset} {found.leader_epoch}"

    def read(self, columns: Columns) -> str | None:
        offset, most, isolation, at_least_one = int(columns[0]), int(columns[1]), columns[2], columns[3]
        self.partition.role = LEADER
        verdict = judge_fetch(self.partition, offset, ISOLATIONS[isolation])
        if isinstance(verdict, ErrorCode):
            return f"failed {verdict.name}"
        data = b"" if verdict.is_empty else self.log.read(offset, most, verdict.end_offset)
        assert data is not None
        found = [each.header for each in iter_batches(bytes(data))]
        if at_least_one == "false" and found and found[0].size_bytes > most:
            return None
        return " ".join(f"{each.base_offset},{each.last_offset},{each.size_bytes}" for each in found)

    def aborted(self, columns: Columns) -> str:
        found = self.log.aborted_transactions(int(columns[0]), int(columns[1]))
        return " ".join(",".join(map(str, each)) for each in found)

    def end_of_epoch(self, columns: Columns) -> str:
        found = self.partition.epochs.end_offset_for(int(columns[0]), self.log.log_end)
        return "none" if found is None else f"{found.offset} {found.epoch}"

    def verify(self, columns: Columns) -> str | None:
        producer_id, sequence, epoch, bump = columns
        header = data_header([epoch, sequence, "0", "0", "0", "0", "true"])._replace(
            producer_id=int(producer_id)
        )
        self.partition.role = LEADER
        found = self.partition.start_verification(header, self.now_ms, supports_epoch_bump=bump == "true")
        if isinstance(found, ErrorCode):
            return f"failed {found.name}"
        self.last_guard = found
        return "none" if found == NO_GUARD else None

    def expire(self, columns: Columns) -> None:
        self.partition.expire_producers(int(columns[0]))

    def configure(self, columns: Columns) -> None:
        self.settings, config = settings_of(columns[0])
        self.log.settings = self.settings
        self.partition.config = self.config = msgspec.structs.replace(
            config,
            producer_id_expiration_ms=self.config.producer_id_expiration_ms,
            verifies_transactions=self.config.verifies_transactions,
            transaction_max_timeout_ms=self.config.transaction_max_timeout_ms,
        )

    def close(self, _: Columns) -> str | None:
        """The indexes that it leaves."""
        self.log.close(self.now_ms, lambda: self.partition.snapshot_before(self.log.log_end))
        if self.has_successor:
            return None
        names = sorted(name for name in self.disk.list_names(self.directory) if name.endswith("index"))
        found = {name: self.disk.read_bytes(f"{self.directory}/{name}").rstrip(bytes(1)) for name in names}
        return " ".join(f"{name}={data.hex()}" for name, data in found.items() if data)

    def snapshot(self, _: Columns) -> None:
        raise Unasked("a snapshot between batches")

    def assign_epoch(self, columns: Columns) -> None:
        self.log.assign_epoch(int(columns[0]), int(columns[1]))

    def late(self, columns: Columns) -> str:
        return str(self.partition.has_late_transaction(int(columns[0]))).lower()

    def ongoing(self, columns: Columns) -> str:
        return str(self.partition.producers.has_ongoing_transaction(int(columns[0]), int(columns[1]))).lower()
