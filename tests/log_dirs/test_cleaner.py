"""Which log is cleaned next, to which offset each was cleaned, and what the checkpoints have of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kraftd.ground.pace import at_once
from kraftd.log.data.cleaning import Cleaning
from kraftd.log.data.data_log import DataLog
from kraftd.log.data.resources import LogResources
from kraftd.log.data.settings import DataLogSettings
from kraftd.log.errors import CorruptStorage, StorageError, StorageFailure
from kraftd.log.memory_disk import MemoryDisk
from kraftd.log.offset_checkpoint import CLEANED_TO, TopicPartition, decode_offsets, encode_offsets
from kraftd.log_dirs.cleaner import LEAST_IO_BYTES, Chosen, CleanerSettings, CleanerStats, LogCleaner
from kraftd.log_dirs.directories import LogDirectories, LogDirectory
from kraftd.log_dirs.jobs import WriteJob
from kraftd.wire.compaction import SLOT_BYTES
from kraftd.wire.records import build_records_batch
from tests.log.data.logs import NOW_MS, append

A, B = "/a", "/b"
IDS = {A: b"a" * 16, B: b"b" * 16}
COMPACTED = DataLogSettings(segment_bytes=80, compacts=True, max_compaction_lag_ms=1_000)
UNIQUE = "0123456789abcdef" * 2


class Place:
    """Two directories of compacted logs, and their cleaner."""

    def __init__(self, **values: Any) -> None:
        self.disk = MemoryDisk()
        for path in IDS:
            self.disk.make_directory(path)
        self.settings: dict[str, DataLogSettings] = {}
        self.directories = LogDirectories(
            LogResources(self.disk),
            [LogDirectory(path, directory_id) for path, directory_id in IDS.items()],
            lambda topic: self.settings.get(topic, COMPACTED),
        )
        self.cleaner = LogCleaner(self.directories, CleanerSettings(**values))
        self.failed: list[TopicPartition] = []
        self.unhosted: set[TopicPartition] = set()

    def log(self, topic: str, count: int, path: str = A, at_ms: int = NOW_MS) -> DataLog:
        """A log of so many records, each with a key of its own and in a segment of its own."""
        log = self.directories.create(topic, 0, b"t" * 16, NOW_MS, directory_id=IDS[path])
        for number in range(count):
            record = at_ms, b"%d" % number, b"v", ()
            append(log, bytes(build_records_batch([record], base_offset=number)))
        return log

    def choose(self, now_ms: int = NOW_MS) -> Chosen | None:
        def last_stable_of(key: TopicPartition) -> int | None:
            return None if key in self.unhosted else 1_000

        def failed(key: TopicPartition, log: DataLog, error: StorageError) -> None:
            assert self.directories.logs[key] is log
            assert isinstance(error, CorruptStorage)
            self.failed.append(key)

        return at_once(self.cleaner.choose(last_stable_of, failed, now_ms))

    def topic(self, now_ms: int = NOW_MS) -> str | None:
        """The topic whose log is cleaned next."""
        chosen = self.choose(now_ms)
        return None if chosen is None else chosen.key[0]

    def checkpoint(self, offsets: Mapping[str, int], path: str = A) -> None:
        content = encode_offsets([((topic, 0), offset) for topic, offset in offsets.items()])
        self.disk.open(f"{path}/{CLEANED_TO}", create=True).write(0, content)

    def written(self, job: WriteJob | None, path: str = A) -> dict[str, int]:
        """What a checkpoint has after a job."""
        assert job is not None and job.log_directory == path
        job.run()
        return {
            key[0]: one for key, one in decode_offsets(self.disk.read_bytes(f"{path}/{CLEANED_TO}")).items()
        }

    def begin(self, chosen: Chosen) -> Cleaning:
        return self.cleaner.begin(chosen, [], NOW_MS, lambda _: None)


@pytest.mark.parametrize(
    ("values", "slots", "io_bytes"),
    [
        ({}, (128 << 20) // 24, 256 << 10),
        ({"log.cleaner.threads": 2}, (64 << 20) // 24, 128 << 10),
        ({"log.cleaner.threads": 0}, (128 << 20) // 24, 256 << 10),
        ({"log.cleaner.io.buffer.size": 0}, (128 << 20) // 24, LEAST_IO_BYTES),
        ({"log.cleaner.dedupe.buffer.size": 240, "log.cleaner.threads": 3}, 3, (512 << 10) // 6),
    ],
)
def test_one_cleaning_gets_a_threads_share_of_the_buffers(
    values: dict[str, int], slots: int, io_bytes: int
) -> None:
    settings = CleanerSettings().changed(values)
    assert (settings.slots, settings.io_bytes) == (slots, io_bytes)


def test_the_dirtiest_log_is_next_and_of_equals_the_first() -> None:
    place = Place()
    for topic in ("one", "two", "more"):
        place.log(topic, 5)
    place.checkpoint({"one": 2, "two": 1, "more": 1})
    assert place.cleaner.load() == []
    chosen = place.choose()
    assert chosen is not None
    assert (chosen.key, chosen.log) == (("two", 0), place.directories.logs["two", 0])
    assert (chosen.found.first_dirty, chosen.found.first_uncleanable) == (1, 4)
    assert place.cleaner.stats == CleanerStats(dirtiest_ratio=0.75)
    assert place.cleaner.looked_at_ms == NOW_MS


def test_a_log_that_is_not_dirty_enough_is_chosen_once_it_is_overdue() -> None:
    place = Place()
    place.log("old", 6)
    place.log("new", 6, at_ms=NOW_MS + 100)
    place.checkpoint({"old": 4, "new": 4})
    place.cleaner.load()
    assert place.choose(NOW_MS + 1_000) is None
    assert place.cleaner.stats == CleanerStats(dirtiest_ratio=0.2)
    assert place.topic(NOW_MS + 1_001) == "old"
    assert place.cleaner.stats == CleanerStats(dirtiest_ratio=0.2, overdue_ms=1)
    assert place.topic(NOW_MS + 1_250) == "old"
    assert place.cleaner.stats.overdue_ms == 250
    place.settings["old"] = place.settings["new"] = COMPACTED._replace(min_cleanable_dirty_ratio=0.1)
    assert place.topic() == "old"
    assert place.cleaner.stats.overdue_ms == 0


def test_what_may_not_be_cleaned_now_is_not_chosen() -> None:
    place = Place()
    log = place.log("t", 3)
    assert place.topic() == "t"
    place.unhosted.add(("t", 0))
    assert place.topic() is None
    place.unhosted.clear()
    place.settings["t"] = COMPACTED._replace(compacts=False)
    assert place.topic() is None
    place.settings.clear()
    place.directories.create("t", 0, b"t" * 16, NOW_MS, directory_id=IDS[B], unique=UNIQUE)
    assert place.topic() is None, "it is copied, as it is"
    place.directories.delete("t", 0, UNIQUE, NOW_MS, future=True)
    assert place.topic() == "t"
    log.fail(StorageFailure("gone"))
    assert place.topic() is None
    assert not place.failed


def test_of_a_log_that_is_set_aside_the_dirt_is_reported() -> None:
    place = Place()
    log, other = place.log("t", 3), place.log("other", 3, path=B)
    log.flush(NOW_MS)
    damaged = log.segments[0]
    damaged._first_timestamp_ms = None  # as after a start, which reads no closed segment
    place.disk.flip_bit(damaged.path(log.directory), 16, 1)
    assert place.topic() == "other"
    assert place.failed == [("t", 0)]
    cleaner = place.cleaner
    cleaner.set_aside(("other", 0), "for this test", 7)
    cleaner.set_aside(("gone", 0), "for this test", 9)
    assert place.topic() is None
    size = sum(one.end_position for one in other.segments[:2])
    assert cleaner.uncleanable["other", 0] == ("for this test", size)
    assert [cleaner.uncleanable_of(path) for path in (A, B)] == [(0, 0), (1, size)]
    assert cleaner.stats.dirtiest_ratio == 0
    assert cleaner.forget(("other", 0)) is None
    assert list(cleaner.uncleanable) == [("gone", 0)]


def test_a_checkpoint_beyond_the_log_is_reset_and_an_unreadable_one_reported() -> None:
    place = Place()
    place.log("t", 3)
    place.checkpoint({"t": 9})
    place.disk.open(f"{B}/{CLEANED_TO}", create=True).write(0, b"0\n2\nt 0 1\n")
    (note,) = place.cleaner.load()
    assert note.startswith(f"{B}/{CLEANED_TO}: ")
    assert place.cleaner.cleaned_to(("t", 0)) == 9
    place.log("u", 3)
    place.choose()
    assert (place.cleaner.cleaned_to(("t", 0)), place.cleaner.cleaned_to(("u", 0))) == (0, 0)
    assert place.written(place.cleaner.truncated(("t", 0), place.directories.logs["t", 0], -1)) == {"t": -1}


def test_a_log_of_one_segment_is_looked_at_only_if_something_is_known_of_it() -> None:
    place = Place()
    log = place.log("t", 3)
    place.log("known", 1)
    place.checkpoint({"known": 9})
    place.cleaner.load()
    log.truncate_to(0, NOW_MS)
    assert log in place.directories.resources.rolled
    assert place.choose() is None
    assert log not in place.directories.resources.rolled
    assert place.cleaner.cleaned_to(("known", 0)) == 0


def test_the_table_of_keys_limits_a_cleaning_and_is_no_larger_than_it_needs() -> None:
    place = Place(log_cleaner_dedupe_buffer_size=10 * 24, log_cleaner_io_buffer_load_factor=0.5)
    place.log("t", 9)
    chosen = place.choose()
    assert chosen is not None
    cleaning = place.begin(chosen)
    cleaning.note_keys()
    assert cleaning.end_offset == cleaning.key_count == 5
    assert len(cleaning._keys._slots) == 10 * SLOT_BYTES
    place.cleaner.settings = CleanerSettings(log_cleaner_io_buffer_load_factor=0.5)
    cleaning = place.begin(chosen)
    assert len(cleaning._keys._slots) == (2 * 8 + 1) * SLOT_BYTES
    cleaning.note_keys()
    assert cleaning.end_offset == 8
    cleaning = place.begin(chosen._replace(found=chosen.found._replace(first_dirty=4)))
    assert len(cleaning._keys._slots) == (2 * 4 + 1) * SLOT_BYTES


def test_a_cleaning_that_ended_is_measured_and_checkpointed_in_its_directory() -> None:
    place = Place(log_cleaner_dedupe_buffer_size=40 * 24)
    place.log("t", 3, path=B)
    place.log("u", 3, path=B)
    place.log("elsewhere", 3)
    place.checkpoint({"u": 2}, B)
    place.checkpoint({"elsewhere": 2, "deleted": 1})
    place.cleaner.load()
    chosen = place.choose()
    assert chosen is not None and chosen.key == ("t", 0)
    cleaning = place.begin(chosen)
    cleaning.note_keys()
    cleaning.begin()
    assert chosen.log.replace_segments(
        chosen.log.segments[:1], cleaning.clean(chosen.log.segments[:1]), NOW_MS
    )
    size = chosen.log.segments[0].end_position
    assert place.written(place.cleaner.cleaned(chosen, cleaning, 12), B) == {"u": 2, "t": 2}
    assert place.cleaner.stats == CleanerStats(1.0, 0, size, size, 12, 2 / 40)
    assert place.cleaner.truncated(chosen.key, chosen.log, 2) is None
    assert place.written(place.cleaner.truncated(chosen.key, chosen.log, 1), B) == {"u": 2, "t": 1}
    jobs = place.cleaner.moved(chosen.key, [A, B])
    assert [place.written(job, path) for job, path in zip(jobs, (A, B), strict=True)] == [
        {"elsewhere": 2}, {"u": 2, "t": 1}
    ]  # fmt: skip
    assert place.cleaner.moved(("unknown", 0), [A, B]) == []
    assert place.cleaner.truncated(("unknown", 0), chosen.log, 0) is None
    assert place.written(place.cleaner.forget(("u", 0)), B) == {"t": 1}
    assert place.cleaner.forget(("u", 0)) is None
    assert place.cleaner.forget(("deleted", 0)) is None
    assert place.cleaner.cleaned_to(("deleted", 0)) == 0


def test_a_table_of_one_key_is_full_with_it() -> None:
    place = Place(log_cleaner_dedupe_buffer_size=24, log_cleaner_io_buffer_load_factor=1.0)
    place.log("t", 3)
    chosen = place.choose()
    assert chosen is not None
    cleaning = place.begin(chosen)
    cleaning.note_keys()
    place.cleaner.cleaned(chosen, cleaning, 0)
    assert (cleaning.end_offset, place.cleaner.stats.buffer_utilization) == (1, 1.0)
