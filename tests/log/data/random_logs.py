"""Random logs that are cleaned here and by Kafka's cleaner: equal segments and indexes."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Protocol

from kraftd.host.broker_logs.replayed_producers import ReplayedProducers
from kraftd.log.data.cleanable import Cleanable, cleanable
from kraftd.log.data.cleaning import DEFAULT_IO_BYTES, Cleaning
from kraftd.log.data.data_log import DataLog
from kraftd.log.data.opening import create_data_log
from kraftd.log.data.resources import LogResources
from kraftd.log.data.settings import DataLogSettings
from kraftd.log.disk import Disk
from kraftd.partition.config import PartitionConfig
from kraftd.wire.batch import Batch, iter_batches, read_batch
from kraftd.wire.compaction import SLOT_BYTES, KeyOffsets
from kraftd.wire.end_marker import build_end_marker
from kraftd.wire.records import build_records_batch, decode_records

START_MS = 1_700_000_000_000
TRANSACTIONAL = 16
APPEND_TIME = 8


class Cleaner(Protocol):
    """Kafka's cleaner, or what it made once."""

    def clean(self, log: DataLog, is_plain: bool, *words: object) -> list[str]:
        """Clean a copy of a log; returns the numbers of the cleaning, and what the files hold then."""
        ...


class Recorder:
    """Notes what Kafka's cleaner makes."""

    def __init__(self, kafka: Cleaner) -> None:
        self.kafka = kafka
        self.text = ""

    def clean(self, log: DataLog, is_plain: bool, *words: object) -> list[str]:
        answer = self.kafka.clean(log, is_plain, *words)
        self.text += "\n".join(answer) + "\n\n"
        return answer


class Recorded:
    """Answers as Kafka's cleaner did."""

    def __init__(self, path: Path) -> None:
        self.left = path.read_text().split("\n\n")[:-1]

    def clean(self, log: DataLog, is_plain: bool, *words: object) -> list[str]:
        return self.left.pop(0).splitlines()


def recorded() -> list[Path]:
    """What Kafka's cleaner made of some logs, whose seeds are the names."""
    return sorted(Path(__file__).with_name("recorded_cleanings").glob("*.txt"))


class Writer:
    """Appends random batches to a log: several producers, transactions, tombstones, gaps."""

    def __init__(self, random: Random, log: DataLog) -> None:
        self.random = random
        self.log = log
        self.producers = ReplayedProducers(PartitionConfig(), START_MS)
        self.sequences: dict[int, int] = {}
        self.epochs: dict[int, int] = {}
        self.open: dict[int, int] = {}  # a producer's transaction, from which offset on
        self.now_ms = START_MS
        self.codec = random.choice([0, 0, 1, 2, 3, 4, -1])
        self.wide = random.random() < 0.3
        self.bumps = random.random() < 0.5

    def append(self, data: bytearray, leader_epoch: int = 3) -> None:
        gap = self.random.choice([0, 0, 0, 0, 2])
        if self.wide and self.random.random() < 0.04:
            gap = self.random.choice([1 << 20, 1 << 30, (1 << 31) - 3, 1 << 32])
        data[:8] = (self.log.log_end + gap).to_bytes(8, "big")
        data[12:16] = leader_epoch.to_bytes(4, "big")
        batch: Batch = read_batch(bytes(data))
        aborted = self.producers.replay(batch)
        some = [] if aborted is None else [aborted]
        self.log.append([batch.view], [batch.header], self.now_ms, self.producers.entries, some)
        self.now_ms += self.random.choice([0, 10, 1000])

    def write(self) -> None:
        random = self.random
        act = random.random()
        if act < 0.15 and self.open:
            producer = random.choice(sorted(self.open))
            del self.open[producer]
            self.end(producer)
            return
        if act < 0.18:
            producer = random.choice([1, 2, 3, 4])
            if producer not in self.open:
                self.end(producer)
                return
        producer = random.choice([-1, -1, 1, 2, 3, 4])
        attributes, sequence, epoch = 0, -1, -1
        if random.random() < 0.1:
            attributes |= APPEND_TIME
        attributes |= random.choice([0, 1, 2, 3, 4]) if self.codec < 0 else self.codec
        count = random.choice([1, 1, 2, 3, 8])
        if producer >= 0:
            epoch = self.epochs.setdefault(producer, random.randrange(3))
            sequence = self.sequences.get(producer, 0)
            self.sequences[producer] = sequence + count
            if producer in self.open or (producer > 2 and random.random() < 0.7):
                attributes |= TRANSACTIONAL
        self.append(
            build_records_batch(
                [self.record() for _ in range(count)],
                attributes=attributes,
                producer_id=producer,
                producer_epoch=epoch,
                base_sequence=sequence,
            )
        )
        if attributes & TRANSACTIONAL:
            self.open.setdefault(producer, self.log.log_end - count)

    def end(self, producer: int) -> None:
        """A marker, of the next epoch where transactions bump it (KIP-890)."""
        epoch = self.epochs.setdefault(producer, self.random.randrange(3))
        if self.bumps:
            epoch = self.epochs[producer] = epoch + 1
            self.sequences[producer] = 0
        self.append(
            build_end_marker(
                producer,
                epoch,
                is_commit=self.random.random() < 0.5,
                coordinator_epoch=0,
                timestamp_ms=self.now_ms,
            )
        )

    @property
    def last_stable_offset(self) -> int:
        return min(self.open.values(), default=self.log.log_end)

    def record(self) -> tuple[int, bytes | None, bytes | None, tuple[tuple[bytes, bytes | None], ...]]:
        random = self.random
        key = random.choice([b"", b"key", b"%d" % random.randrange(12), b"long".ljust(40, b".")] * 6 + [None])
        value = None if random.random() < 0.25 else random.randbytes(random.choice([0, 3, 80]))
        headers = ((b"h", random.choice([None, b"x"])),) if random.random() < 0.1 else ()
        return self.now_ms + random.choice([0, -500, 700]), key, value, headers


def clean(log: DataLog, found: Cleanable, writer: Writer, map_bytes: int, now_ms: int) -> int:
    slots = map_bytes // SLOT_BYTES
    keys = KeyOffsets(int(slots * 0.9), slots, b"s" * 16)
    io_bytes = writer.random.choice([DEFAULT_IO_BYTES, 700])
    cleaning = Cleaning(log, found, keys, writer.producers.entries(), now_ms, lambda _: None, io_bytes)
    cleaning.note_keys()
    cleaning.begin()
    while (group := cleaning.next_group()) is not None:
        assert log.replace_segments(group, cleaning.clean(group), now_ms)
    return cleaning.end_offset


def files(disk: Disk, directory: str, is_plain: bool) -> list[str]:
    """What the files of a log hold. Compressed batches have other sizes, and indexes other positions."""
    suffixes = (".log", ".txnindex", *((".index", ".timeindex") if is_plain else ()))
    found = {
        name: disk.read_bytes(f"{directory}/{name}")
        for name in disk.list_names(directory)
        if name.endswith(suffixes)
    }
    # Kafka makes each transaction index, empty ones too, and keeps room in the last segment's indexes.
    last = max(name for name in found if name.endswith(".log"))[:20]
    kept = sorted((name, data) for name, data in found.items() if data and not name.startswith(last))
    return [
        f"{name} {shown(data if is_plain or name.endswith('.txnindex') else batches(data))}"
        for name, data in kept
    ]


def shown(content: bytes | list[object]) -> str:
    data = content if isinstance(content, bytes) else repr(content).encode()
    return sha256(data).hexdigest()[:16]


def batches(data: bytes) -> list[object]:
    """The headers and records of a segment."""
    return [
        (batch.header._replace(length_bytes=0, crc=0), decode_records(batch)) for batch in iter_batches(data)
    ]


def drive(disk: Disk, parent: str, kafka: Cleaner, seed: int) -> None:
    """Write a log and have it cleaned, up to three times."""
    random = Random(seed)
    settings = DataLogSettings(
        segment_bytes=random.choice([1000, 1500, 4000]),
        index_interval_bytes=random.choice([1, 300]),
        segment_index_bytes=random.choice([10 << 20, 10 << 20, 1600]),
        delete_retention_ms=random.choice([0, 5_000, 1 << 40]),
        min_compaction_lag_ms=random.choice([0, 0, 20_000]),
        compacts=True,
    )
    log = create_data_log(LogResources(disk), parent, "t", 0, settings, now_ms=START_MS, topic_id=None)
    writer = Writer(random, log)
    cleaned_to = -1
    for _ in range(random.choice([1, 2, 3])):
        for _ in range(random.choice([20, 60])):
            writer.write()
        log.close(writer.now_ms, writer.producers.entries)
        now_ms = writer.now_ms + random.choice([0, 10_000])
        map_bytes = random.choice([1 << 12, 24 * 9])
        found = cleanable(log, None if cleaned_to < 0 else cleaned_to, writer.last_stable_offset, now_ms)
        if not found.dirty_bytes:
            continue
        is_plain = not writer.codec
        theirs = kafka.clean(
            log, is_plain, now_ms, cleaned_to, log.log_end, map_bytes, settings.segment_bytes,
            settings.index_interval_bytes, settings.delete_retention_ms, settings.min_compaction_lag_ms,
            settings.segment_index_bytes,
        )  # fmt: skip
        end = clean(log, found, writer, map_bytes, now_ms)
        mine = [found.first_dirty, found.first_uncleanable, found.dirty_bytes, round(found.ratio * 1000), end]
        assert [" ".join(map(str, mine)), *files(disk, log.directory, is_plain)] == theirs
        cleaned_to = end
