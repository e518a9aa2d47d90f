"""The logs of a broker: work in threads, whose logs may be deleted meanwhile, and work in slices."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from shutil import copytree
from typing import Any, cast
from unittest.mock import Mock
from weakref import WeakSet

import pytest

from kraftd.broker_node.effects import DeleteLog, OpenLog
from kraftd.broker_node.events import LogNotOpened, LogsLoaded, LogsOpened
from kraftd.ground import pace
from kraftd.ground.event import Event
from kraftd.ground.pace import at_once
from kraftd.host.broker_logs.broker_logs import EXPIRY_LOOK_US, LOGS_A_JOB, LOGS_OPENED_AT_ONCE, BrokerLogs
from kraftd.host.broker_logs.log_changes import MADE_AT_ONCE, OPENED_US
from kraftd.host.broker_logs.replayed_producers import ReplayedProducers
from kraftd.host.ports import Ports
from kraftd.log.data.resources import LogResources
from kraftd.log.disk import RealDisk, RealFile
from kraftd.log.errors import DirectoryProblem, DiskFull, StorageFailure
from kraftd.log.offset_checkpoint import TopicPartition
from kraftd.log_dirs.directories import LogDirectories, LogDirectory
from kraftd.log_dirs.log_loader import LogLoader
from kraftd.log_dirs.log_opening import LogOpening
from kraftd.partition.config import PartitionConfig
from tests.log.data.logs import NOW_MS, append, batch
from tests.log_dirs.test_log_directories import ID_A, ID_B, SETTINGS, TOPIC_ID, UNIQUE


class Loop:
    """All ports of BrokerLogs: what is to be called soon is called at once, and threads run when told to."""

    def __init__(self) -> None:
        self.jobs: list[Callable[[], None]] = []
        self.is_in_thread = False
        self.events: list[Event] = []
        self.errors: list[BaseException | str] = []
        self.ports = Ports(*[cast(Any, self)] * 5, self.errors.append)

    def now_ms(self) -> int:
        return NOW_MS

    def wall_ahead_ms(self) -> int:
        return 0

    def call_soon(self, act: Callable[..., None], *arguments: Any) -> None:
        act(*arguments)

    def error(self, text: str, **fields: Any) -> None:
        self.errors.append(text)

    def run(
        self, job: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[Exception], None]
    ) -> None:
        def act() -> None:
            self.is_in_thread = True
            try:
                result = job()
            except Exception as error:
                failed(error)
            else:
                self.is_in_thread = False
                done(result)
            self.is_in_thread = False

        self.jobs.append(act)

    def run_jobs(self) -> None:
        jobs, self.jobs = self.jobs, []
        for job in jobs:
            job()


def broker_logs(loop: Loop, directories: LogDirectories, marks: dict[TopicPartition, int]) -> BrokerLogs:
    return BrokerLogs(
        directories,
        {},
        loop.ports,
        loop.events.append,
        lambda: UNIQUE,
        lambda key, at: (),
        lambda key: ReplayedProducers(PartitionConfig(), NOW_MS),
        marks.get,
    )


def directories_at(path: Path, disk: RealDisk | None = None) -> LogDirectories:
    directory = LogDirectory(str(path), ID_A)
    return LogDirectories(LogResources(disk or RealDisk()), [directory], lambda topic: SETTINGS)


def loaded_directories_at(path: Path) -> LogDirectories:
    directories = directories_at(path)
    LogLoader(directories, NOW_MS).load()
    return directories


def test_a_flush_whose_log_is_deleted_meanwhile_fails_no_directory(tmp_path: Path) -> None:
    loop, directories = Loop(), loaded_directories_at(tmp_path)
    logs = broker_logs(loop, directories, {})
    log = directories.create("t", 0, TOPIC_ID, NOW_MS)
    append(log, batch(0, 1))
    logs.flush()
    logs.changes.delete(DeleteLog("t", 0))
    assert len(loop.jobs) > 1, "the flush is still under way"
    for job in loop.jobs:
        job()
    assert loop.errors == [] and len(directories.online) == 1


class Rounds(Loop):
    """What is to be called soon is called in the next round, and a thread does one job between two rounds."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []
        super().__init__()

    def call_soon(self, act: Callable[..., None], *arguments: Any) -> None:
        self.soon.append(partial(act, *arguments))

    def round(self) -> None:
        due, self.soon = self.soon, []
        for act in due:
            act()


class WatchedDisk(RealDisk):
    """The disk, with the paths of what the event loop made or read."""

    def __init__(self, loop: Loop) -> None:
        self.by_loop: list[str] = []
        self._loop = loop

    def make_directory(self, path: str, *, durably: bool = True) -> None:
        self._note(path)
        super().make_directory(path, durably=durably)

    def open(self, path: str, *, create: bool = False) -> RealFile:
        if create:
            self._note(path)
        return super().open(path, create=create)

    def read_bytes(self, path: str) -> bytes:
        self._note(path)
        return super().read_bytes(path)

    def _note(self, path: str) -> None:
        if not self._loop.is_in_thread:
            self.by_loop.append(path)


def test_a_thread_makes_some_logs_at_a_time_and_a_deletion_waits_for_them(tmp_path: Path) -> None:
    loop = Rounds()
    disk = WatchedDisk(loop)
    directories = directories_at(tmp_path, disk)
    logs = broker_logs(loop, directories, {})
    count = MADE_AT_ONCE + 2
    for index in range(count):
        logs.changes.open(OpenLog("t", index, TOPIC_ID, bytes(16), True))
    logs.changes.delete(DeleteLog("t", 2))
    logs.changes.open(OpenLog("t", 2, ID_B, bytes(16), True))
    seen = []
    for _ in range(8):
        loop.round()
        loop.run_jobs()
        seen.append(len(directories.logs))
    a_callback = pace.MAX_SLICE_WORK_US // OPENED_US
    assert [one for one, _ in groupby(seen)] == [a_callback, MADE_AT_ONCE, count, count - 1, count]
    assert loop.errors == [] and disk.by_loop == [] and len(directories.logs) == count
    opened = [event.logs for event in loop.events if isinstance(event, LogsOpened)]
    assert len(opened) == len(loop.events) < count, "each event asks every part of the node when it is due"
    assert [one.partition for logs in opened for one in logs] == [*range(count), 2]
    assert directories.logs["t", 2].topic_id == ID_B
    append(directories.logs["t", 1], batch(0, 1))
    assert directories.logs["t", 1].log_end == 1


def test_a_stop_waits_for_the_log_that_is_being_made(tmp_path: Path) -> None:
    loop, directories = Rounds(), directories_at(tmp_path)
    LogLoader(directories, NOW_MS).load()
    logs = broker_logs(loop, directories, {})
    logs.changes.open(OpenLog("t", 0, TOPIC_ID, bytes(16), True))
    logs.changes.open(OpenLog("t", 1, TOPIC_ID, bytes(16), True))
    loop.round()
    logs.close(1)
    assert loop.events == [], "a node that has stopped is notified of nothing"
    after = directories_at(tmp_path)
    loader = LogLoader(after, NOW_MS).load()
    assert loader.broker_epoch == 1 and loader.notes == [] and set(after.logs) == {("t", 0), ("t", 1)}
    loop.jobs.pop()()
    loop.round()
    assert not loop.jobs and loop.events == []


def test_a_log_whose_directory_fails_while_it_is_made_is_in_no_other_one(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in "ab"]
    rows = [LogDirectory(path, own_id) for path, own_id in zip(paths, (ID_A, ID_B), strict=True)]
    for path in paths:
        RealDisk().make_directory(path)
    loop, directories = Rounds(), LogDirectories(LogResources(RealDisk()), rows, lambda topic: SETTINGS)
    logs = broker_logs(loop, directories, {})
    logs.changes.open(OpenLog("t", 0, TOPIC_ID, ID_A, True))
    loop.round()
    directories.fail(paths[0], StorageFailure("the disk is gone"))
    loop.jobs.pop()()
    assert isinstance(loop.events[0], LogNotOpened) and directories.logs == {}
    assert not RealDisk().exists(f"{paths[1]}/t-0")


def test_a_log_without_room_that_is_deleted_meanwhile_is_not_made_again(tmp_path: Path) -> None:
    class FullDisk(RealDisk):
        def make_directory(self, path: str, *, durably: bool = True) -> None:
            raise DiskFull(f"no room for {path}")

    loop, directories = Rounds(), directories_at(tmp_path, FullDisk())
    logs = broker_logs(loop, directories, {})
    logs.changes.open(OpenLog("t", 0, TOPIC_ID, bytes(16), True))
    loop.round()
    logs.changes.delete(DeleteLog("t", 0))
    loop.jobs.pop()()
    loop.round()
    for _ in logs.changes.open_waiting():
        pass
    loop.round()
    assert not loop.jobs and isinstance(loop.events[0], LogNotOpened)


def test_logs_are_found_and_opened_by_threads(tmp_path: Path) -> None:
    before = directories_at(tmp_path)
    LogLoader(before, NOW_MS).load()
    for number in range(LOGS_OPENED_AT_ONCE + 1):
        before.create("t", number, TOPIC_ID, NOW_MS)
    at_once(before.close(NOW_MS, 1, lambda key: None))
    loop = Loop()
    disk = WatchedDisk(loop)
    directories = directories_at(tmp_path, disk)
    loader = LogLoader(directories, NOW_MS)
    broker_logs(loop, directories, {}).load(loader)
    assert loader.remaining == {} and len(loop.jobs) == 1, "the event loop reads no directory"
    while loop.jobs:
        loop.jobs.pop(0)()
    (loaded,) = loop.events
    assert isinstance(loaded, LogsLoaded) and set(loaded.topic_ids) == set(directories.logs)
    assert len(directories.logs) == LOGS_OPENED_AT_ONCE + 1 and loop.errors == []
    disk.by_loop.clear()
    assert all(log.epochs.entries == [] for log in directories.logs.values())
    assert disk.by_loop == [], "a thread has read the leader epochs, too"


def test_openings_are_let_go_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = directories_at(tmp_path)
    for number in range(3):
        before.create("t", number, TOPIC_ID, NOW_MS)
    loop, directories = Loop(), directories_at(tmp_path)
    loader, known = LogLoader(directories, NOW_MS), WeakSet[LogOpening]()
    openings = loader.openings()

    def watched() -> Iterator[LogOpening]:
        for one in openings:
            known.add(one)
            yield one

    monkeypatch.setattr(loader, "openings", watched)
    broker_logs(loop, directories, {}).load(loader)
    gc.disable()
    try:
        counts = []
        while loop.jobs:
            loop.jobs.pop(0)()
            counts.append(len(known))
    finally:
        gc.enable()
    assert len(directories.logs) == 3 and counts[-1] == 0, "no collection of garbage is needed"


def test_no_more_openings_are_there_than_are_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory that a start needs for a moment stays with the process, between what it keeps."""
    before, count = directories_at(tmp_path), 20 * LOGS_OPENED_AT_ONCE
    for number in range(count):
        before.create("t", number, TOPIC_ID, NOW_MS)
    loop, directories = Loop(), directories_at(tmp_path)
    loader, known = LogLoader(directories, NOW_MS), WeakSet[LogOpening]()
    openings = loader.openings()

    def watched() -> Iterator[LogOpening]:
        for one in openings:
            known.add(one)
            yield one

    monkeypatch.setattr(loader, "openings", watched)
    broker_logs(loop, directories, {}).load(loader)
    most = 0
    while loop.jobs:
        loop.jobs.pop(0)()
        most = max(most, len(known))
    assert len(directories.logs) == count and most <= count // 2 + 1


def test_logs_of_a_slice_share_the_time_at_which_they_were_made(tmp_path: Path) -> None:
    loop, directories = Rounds(), directories_at(tmp_path)
    logs = broker_logs(loop, directories, {})
    for index in range(5):
        logs.changes.open(OpenLog("t", index, TOPIC_ID, bytes(16), True))
    for _ in range(3):
        loop.round()
        loop.run_jobs()
    assert len(directories.logs) == 5
    assert len({id(log.flushed_ms) for log in directories.logs.values()}) == 1


def test_a_thread_opens_many_small_logs_at_a_time_and_the_last_ones_one_by_one(tmp_path: Path) -> None:
    before, count = directories_at(tmp_path), 3 * LOGS_A_JOB
    for number in range(count):
        before.create("t", number, TOPIC_ID, NOW_MS)
    loop, directories = Loop(), directories_at(tmp_path)
    broker_logs(loop, directories, {}).load(LogLoader(directories, NOW_MS))
    loop.jobs.pop(0)()
    sizes = []
    while loop.jobs:
        there = len(directories.logs)
        loop.jobs.pop(0)()
        sizes.append(len(directories.logs) - there)
    assert sum(sizes) == count and sizes[0] > 1 and sizes[-1] == 1 and max(sizes) <= LOGS_A_JOB


def stopped_with_marks(path: Path) -> dict[str, list[bytes]]:
    """The checkpoints of a directory that was cleanly stopped, of logs with deleted records."""
    directories = loaded_directories_at(path)
    keys = [("t", number) for number in range(3)]
    for key in keys:
        log = directories.create(*key, TOPIC_ID, NOW_MS)
        append(log, batch(0, 5))
        log.increment_log_start(3)
    broker_logs(Loop(), directories, dict.fromkeys(keys, 4)).close(7)
    return checkpoints_in(path)


def checkpoints_in(path: Path) -> dict[str, list[bytes]]:
    found = {one.name: sorted(one.read_bytes().splitlines()) for one in path.glob("*-offset-checkpoint")}
    assert len(found) == 3
    return found


def test_a_directory_of_no_partition_ends_the_start_and_costs_no_checkpoint(tmp_path: Path) -> None:
    before = stopped_with_marks(tmp_path)
    (tmp_path / "photos").mkdir()
    loop, directories = Loop(), directories_at(tmp_path)
    logs = broker_logs(loop, directories, {})
    logs.load(LogLoader(directories, NOW_MS))
    loop.jobs.pop()()
    assert loop.jobs == [] and [type(error) for error in loop.errors] == [DirectoryProblem]
    logs.close(-1)
    assert checkpoints_in(tmp_path) == before


def test_a_log_in_two_directories_ends_the_start(tmp_path: Path) -> None:
    before = directories_at(tmp_path / "a")
    for number in range(3):
        before.create("t", number, TOPIC_ID, NOW_MS)
    copytree(tmp_path / "a", tmp_path / "b")
    rows = [LogDirectory(str(tmp_path / "a"), ID_A), LogDirectory(str(tmp_path / "b"), ID_B)]
    loop, directories = Loop(), LogDirectories(LogResources(RealDisk()), rows, lambda topic: SETTINGS)
    broker_logs(loop, directories, {}).load(LogLoader(directories, NOW_MS))
    while loop.jobs:
        loop.jobs.pop(0)()
    assert {type(error) for error in loop.errors} == {DirectoryProblem}
    assert loop.events == []


def test_a_stop_while_logs_are_opened_keeps_what_is_known_of_the_others(tmp_path: Path) -> None:
    before = stopped_with_marks(tmp_path)
    loop, directories = Loop(), directories_at(tmp_path)
    logs = broker_logs(loop, directories, {})
    logs.load(LogLoader(directories, NOW_MS))
    for _ in range(2):
        loop.jobs.pop(0)()
    assert 0 < len(directories.logs) < 3
    opening, loop.jobs = loop.jobs, []
    list(logs.checkpoint())
    list(logs.checkpoint_high_watermarks(list(directories.logs)))
    logs.flush()
    assert loop.jobs == []
    logs.close(-1)
    assert opening and checkpoints_in(tmp_path) == before
    assert not (tmp_path / ".kafka_cleanshutdown").exists()


def test_a_stop_before_the_metadata_is_known_keeps_the_high_watermarks(tmp_path: Path) -> None:
    before = stopped_with_marks(tmp_path)
    loop = Loop()
    logs = broker_logs(loop, loaded_directories_at(tmp_path), {("t", 1): 4})
    list(logs.checkpoint_high_watermarks([("t", 1)]))
    loop.run_jobs()
    assert checkpoints_in(tmp_path) == before
    logs.close(8)
    assert checkpoints_in(tmp_path) == before


def test_what_is_done_again_and_again_leaves_idle_logs_alone(tmp_path: Path) -> None:
    loop, directories = Loop(), loaded_directories_at(tmp_path)
    logs = broker_logs(loop, directories, {("t", number): 1 for number in range(3)})
    for number in range(3):
        directories.create("t", number, TOPIC_ID, NOW_MS)
    used = directories.logs["t", 0]
    append(used, batch(0, 1))

    def written() -> int:
        list(logs.checkpoint())
        count = len(loop.jobs)
        loop.run_jobs()
        return count

    assert [written(), written()] == [2, 0], "with the first logs, and not again"
    used.flush(NOW_MS)
    assert [written(), written()] == [2, 0], "the recovery point moved"
    used.increment_log_start(1)
    assert [written(), written()] == [2, 0]
    directories.delete("t", 1, UNIQUE, NOW_MS)
    assert [written(), written()] == [2, 0]
    asked: list[str] = []
    directories.settings_of = lambda topic: asked.append(topic) or SETTINGS  # type: ignore[func-returns-value]
    list(logs.remove_expired())
    assert asked == ["t"], "of the log that has records"


def test_a_checkpoint_that_a_full_disk_did_not_take_is_written_later(tmp_path: Path) -> None:
    loop, directories = Loop(), loaded_directories_at(tmp_path)
    logs = broker_logs(loop, directories, {})
    directories.create("t", 0, TOPIC_ID, NOW_MS)
    disk: Any = directories.resources.disk
    disk.open = Mock(side_effect=DiskFull("no room"))
    list(logs.checkpoint())
    loop.run_jobs()
    del disk.open
    list(logs.checkpoint())
    assert len(loop.jobs) == 2
    loop.run_jobs()
    assert (tmp_path / "recovery-point-offset-checkpoint").exists()


def test_retention_takes_high_watermarks_and_logs_in_slices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "MAX_SLICE_WORK_US", 2 * EXPIRY_LOOK_US)
    loop, directories = Loop(), directories_at(tmp_path)
    for number in range(10):
        append(directories.create("t", number, TOPIC_ID, NOW_MS), batch(0, 1))
    marks = dict.fromkeys(directories.logs, 1)
    slices = broker_logs(loop, directories, marks).remove_expired()
    next(slices)
    directories.delete("t", 9, UNIQUE, NOW_MS)
    assert 1 + sum(1 for _ in slices) == 4 and loop.errors == []
