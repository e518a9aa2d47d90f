"""Cleanings of a broker, one after the other, and what ends one: changes of its log, errors, a stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kraftd.host.broker_logs.log_cleaning import GivenUp, LogCleaning
from kraftd.host.ports import Ports
from kraftd.log.data.data_log import DataLog
from kraftd.log.errors import DiskFull, StorageError, StorageFailure
from kraftd.log.offset_checkpoint import CLEANED_TO, TopicPartition, decode_offsets
from kraftd.log.segment import OFFSET_INDEX_SUFFIX
from kraftd.wire.batch import parse_header
from kraftd.wire.producer_snapshot import SnapshotEntry
from kraftd.wire.records import build_records_batch
from tests.broker_node.harness import Lines, ManualTimer, NoThread
from tests.controller_node.harness import ManualClock
from tests.log.data.logs import NOW_MS, append
from tests.log_dirs.test_cleaner import COMPACTED, IDS, UNIQUE, A, B, Place

Work = tuple[Callable[[], Any], Callable[[Any], Any], Callable[[Any], Any]]


class Threads:
    """Work that waits until a test has it done."""

    def __init__(self) -> None:
        self.left: list[Work] = []

    def run(self, work: Callable[[], Any], done: Callable[[Any], Any], failed: Callable[[Any], Any]) -> None:
        self.left.append((work, done, failed))

    def finish(self) -> None:
        """Do one piece of work, and say so."""
        work, done, failed = self.left.pop(0)
        try:
            result = work()
        except Exception as error:
            failed(error)
        else:
            done(result)


class Host(Place):
    """A cleaning of the logs in two directories."""

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        self.clock = ManualClock()
        self.clock.ms = NOW_MS
        self.lines, self.threads = Lines(), Threads()
        self.asked: list[tuple[TopicPartition, int]] = []
        self.expired: list[TopicPartition] = []
        self.broken: list[tuple[TopicPartition, DataLog, StorageError]] = []
        self.looks = 0
        self.producers: list[SnapshotEntry] = []
        ports = Ports(
            ManualTimer(self.clock), NoThread(), NoThread(), self.threads, self.lines, self.unexpected
        )
        self.cleaning = LogCleaning(
            self.directories, self.cleaner.settings, ports, lambda key: 1_000, self.snapshot_of,
            lambda *row: self.broken.append(row), self.look_soon, self.expire,
        )  # fmt: skip
        self.cleaner = self.cleaning.cleaner

    def unexpected(self, error: BaseException) -> None:
        raise error

    def snapshot_of(self, key: TopicPartition, offset: int) -> list[SnapshotEntry]:
        self.asked.append((key, offset))
        return self.producers

    def look_soon(self) -> None:
        self.looks += 1

    def expire(self, key: TopicPartition) -> int:
        self.expired.append(key)
        return 1

    def loaded(self) -> Host:
        self.cleaning.load()
        self.threads.finish()
        return self

    def look(self) -> list[TopicPartition]:
        """Look for a log to clean; returns those that were shortened besides."""
        self.expired.clear()
        for _ in self.cleaning.look():
            pass
        return self.expired

    def finish(self) -> None:
        while self.threads.left:
            self.threads.finish()

    def cleaned_to(self, path: str = A) -> dict[TopicPartition, int]:
        name = f"{path}/{CLEANED_TO}"
        return decode_offsets(self.disk.read_bytes(name)) if self.disk.exists(name) else {}


def told(host: Host) -> list[tuple[str, str]]:
    found = [(level, text) for level, text, _ in host.lines.all]
    host.lines.all.clear()
    return found


def test_one_log_is_cleaned_and_the_others_are_shortened_meanwhile() -> None:
    host = Host().loaded()
    log = host.log("t", 4)
    host.log("other", 1)
    host.log("kept", 1)
    host.settings["kept"] = host.directories.logs["kept", 0].settings = COMPACTED._replace(compacts=False)
    assert host.look() == [("other", 0)]
    assert repr(host.cleaning) == f"<LogCleaning of {log}>"
    assert (host.cleaner.cleans, host.asked) == (("t", 0), [(("t", 0), 4)])
    assert host.look() == [("other", 0)] and len(host.threads.left) == 1, "one at a time"
    host.clock.ms += 70
    host.finish()
    assert (host.cleaner.cleans, host.looks, repr(host.cleaning)) == (None, 1, "<LogCleaning of nothing>")
    assert host.cleaner.stats.elapsed_ms == 70
    size = sum(one.end_position for one in log.segments[:-1])
    assert host.lines.all == [
        ("info", "a log was cleaned",
         {"partition": "t-0", "end_offset": 3, "read_bytes": 2 * size, "written_bytes": size}),
    ]  # fmt: skip
    assert host.cleaned_to() == {("t", 0): 3}
    assert host.look() == [("t", 0), ("other", 0)] and not host.threads.left


def test_without_the_checkpoints_and_after_the_end_nothing_is_cleaned() -> None:
    host = Host()
    log = host.log("t", 4)
    assert host.look() == []
    host.disk.open(f"{A}/{CLEANED_TO}", create=True).write(0, b"7\n0\n")
    host.loaded()
    assert host.cleaner.looked_at_ms == NOW_MS
    ((level, text, fields),) = host.lines.all
    assert (level, text) == ("warning", "recovered") and fields["note"].startswith(f"{A}/{CLEANED_TO}: ")
    other = host.log("other", 1)
    host.log("plain", 1)
    changes: list[Callable[[], object]] = [
        lambda: other.fail(StorageFailure("gone")),
        lambda: host.directories.delete("other", 0, UNIQUE, NOW_MS),
        lambda: host.settings.update(plain=COMPACTED),
        host.cleaning.close,
    ]
    for change in changes:
        host.directories.logs["plain", 0].settings = COMPACTED
        slices = host.cleaning.look()
        next(slices)
        host.directories.logs["plain", 0].settings = COMPACTED._replace(compacts=False)
        change()
        assert list(slices) == [] and host.expired == []
    host.finish()
    assert len(log.segments) == 4 and "a log was cleaned" not in host.lines.texts()
    assert host.look() == [] and not host.threads.left


def test_a_stop_ends_the_work_of_the_thread() -> None:
    host = Host().loaded()
    host.log("t", 4)
    host.look()
    host.cleaning.close()
    with pytest.raises(GivenUp):
        host.threads.left[0][0]()


def delete(host: Host) -> None:
    host.directories.delete("t", 0, UNIQUE, NOW_MS)


def is_compacted_no_more(host: Host) -> None:
    host.settings["t"] = COMPACTED._replace(compacts=False)


def fail(host: Host) -> None:
    host.directories.logs["t", 0].fail(StorageFailure("gone"))


def truncate(host: Host) -> None:
    host.cleaning.truncated(("t", 0), 3)


CHANGES = [
    delete, is_compacted_no_more, fail, truncate,
    lambda host: host.cleaning.pause(("t", 0)),
    lambda host: host.cleaning.close(),
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("steps", [0, 1, 2])
def test_a_cleaning_is_given_up_once_it_does_not_fit(change: Callable[[Host], None], steps: int) -> None:
    """Of its log nothing is replaced, it is not set aside, and what was written for it is removed."""
    host = Host().loaded()
    log = host.log("t", 4)
    host.look()
    work: Work | None = None
    for _ in range(steps):
        work = host.threads.left[0]
        host.threads.finish()
    before = list(log.segments)
    change(host)
    host.finish()
    assert work is not None or not steps
    assert list(log.segments) == before
    assert (host.cleaner.cleans, host.cleaner.uncleanable, host.broken) == (None, {}, [])
    assert not [line for line in told(host) if line[0] == "error"]
    if change is not delete:
        assert not [name for name in host.disk.list_names(log.directory) if "cleaned" in name]


def test_what_becomes_of_one_log_does_not_stop_the_cleaning_of_another() -> None:
    host = Host().loaded()
    host.log("t", 4)
    host.log("u", 1)
    host.look()
    host.cleaning.pause(("u", 0))
    host.cleaning.truncated(("u", 0), 0)
    host.cleaning.truncated(("unknown", 0), 0)
    host.cleaning.forget(("u", 0))
    host.finish()
    assert host.cleaned_to() == {("t", 0): 3}


def test_a_log_that_was_cleaned_may_be_truncated_moved_or_deleted() -> None:
    host = Host().loaded()
    host.log("t", 4)
    host.look()
    host.finish()
    host.cleaning.truncated(("t", 0), 3)
    assert not host.threads.left
    host.cleaning.truncated(("t", 0), 2)
    host.finish()
    assert host.cleaned_to() == {("t", 0): 2}
    host.directories.create("t", 0, b"t" * 16, NOW_MS, directory_id=IDS[B], unique=UNIQUE)
    assert host.look() == [], "it is being copied"
    host.directories.replace_with_future("t", 0, UNIQUE, NOW_MS)
    host.cleaning.moved(("t", 0), [A, B])
    host.finish()
    assert (host.cleaned_to(A), host.cleaned_to(B)) == ({}, {("t", 0): 2})
    host.cleaning.forget(("t", 0))
    host.finish()
    assert host.cleaned_to(B) == {}


def test_a_full_disk_delays_a_cleaning_and_a_failed_one_is_handed_on() -> None:
    host = Host().loaded()
    log = host.log("t", 4)
    for error in (DiskFull("no room"), StorageFailure("gone")):
        host.look()
        host.threads.left.pop(0)[2](error)
        assert (host.cleaner.cleans, host.cleaner.uncleanable) == (None, {})
        assert host.lines.all == (
            [("warning", "a log is cleaned later", {"partition": "t-0", "error": "no room"})]
            if isinstance(error, DiskFull) else []
        )  # fmt: skip
        assert host.broken == ([] if isinstance(error, DiskFull) else [(("t", 0), log, error)])
        host.lines.all.clear()


def test_a_log_that_cannot_be_cleaned_is_set_aside_with_the_reason() -> None:
    host = Host().loaded()
    host.log("t", 4)
    host.look()
    host.threads.left.pop(0)[2](KeyError())
    assert host.cleaner.uncleanable["t", 0].reason == "KeyError()"
    assert host.cleaner.uncleanable["t", 0].dirty_bytes > 0
    assert host.lines.all == [("error", "a log cannot be cleaned", {"partition": "t-0", "error": ""})]
    assert host.look() == [] and not host.threads.left
    host.cleaning.forget(("t", 0))
    host.look()
    host.threads.left.pop(0)[2](ValueError("odd"))
    assert host.cleaner.uncleanable["t", 0].reason == "odd"


def test_a_log_that_cannot_be_judged_is_reported_once() -> None:
    host = Host().loaded()
    log = host.log("t", 4)
    log.flush(NOW_MS)
    log.segments[0]._first_timestamp_ms = None
    host.disk.flip_bit(log.segments[0].path(log.directory), 16, 1)
    for _ in range(2):
        assert host.look() == []
    assert told(host) == [("error", "a log cannot be cleaned")]
    assert host.cleaner.uncleanable["t", 0].dirty_bytes == 0


def test_an_index_that_is_lost_meanwhile_sets_a_log_aside() -> None:
    host = Host().loaded()
    log = host.log("t", 4)
    log.flush(NOW_MS, whole=True)
    host.look()
    host.disk.remove(log.segments[0].path(log.directory, OFFSET_INDEX_SUFFIX))
    log.close_files()
    host.finish()
    assert list(host.cleaner.uncleanable) == [("t", 0)]
    assert host.cleaner.cleans is None


@pytest.mark.parametrize("error", [FileNotFoundError("gone"), StorageFailure("gone")])
def test_a_segment_that_cannot_be_replaced_ends_the_cleaning(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host().loaded()
    log = host.log("t", 4)
    host.look()

    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(DataLog, "replace_segments", refuse)
    host.finish()
    assert host.cleaner.cleans is None
    assert list(host.cleaner.uncleanable) == ([("t", 0)] if isinstance(error, OSError) else [])
    assert host.broken == ([] if isinstance(error, OSError) else [(("t", 0), log, error)])


def test_a_cleaning_is_as_fast_as_its_settings_allow_at_the_time() -> None:
    limits: list[tuple[int, float]] = []
    host = Host(limit=lambda *row: limits.append(row), log_cleaner_io_max_bytes_per_second=5.0).loaded()
    host.log("t", 3)
    host.look()
    host.threads.finish()
    host.cleaner.settings = host.cleaner.settings.changed({"log.cleaner.io.max.bytes.per.second": 7.0})
    host.finish()
    assert {rate for _, rate in limits[:2]} == {5.0} and {rate for _, rate in limits[2:]} == {7.0}
    stats = host.cleaner.stats
    assert sum(size for size, _ in limits) == 2 * stats.copied_bytes + stats.written_bytes


def test_the_last_batch_of_an_active_producer_is_left_by_a_cleaning() -> None:
    host = Host().loaded()
    host.producers = [SnapshotEntry(5, 0, 0, 0, 0, NOW_MS, 0, -1)]
    log = host.log("t", 0)
    for producer_id in (5, -1, -1):
        sequence = -1 if producer_id < 0 else 0
        record = NOW_MS, b"k", b"v", ()
        data = build_records_batch(
            [record], base_offset=log.log_end, producer_id=producer_id, producer_epoch=sequence,
            base_sequence=sequence,
        )  # fmt: skip
        append(log, bytes(data))
    host.look()
    host.finish()
    header = parse_header(host.disk.read_bytes(log.segments[0].path(log.directory)))
    assert (header.base_offset, header.record_count) == (0, 0)


def test_a_checkpoint_that_cannot_be_written_is_reported() -> None:
    host = Host().loaded()
    host.log("t", 3)
    host.look()
    while len(host.threads.left) and not host.looks:
        host.threads.finish()
    host.threads.left.pop(0)[2](DiskFull("no room"))
    assert host.lines.all[1:] == [
        ("error", "a checkpoint was not written", {"path": f"{A}/{CLEANED_TO}", "error": "no room"})
    ]
