"""The logs of a broker: work in threads, whose logs may be deleted meanwhile, and work in slices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from kraftd.broker_node.effects import DeleteLog, OpenLog
from kraftd.broker_node.events import LogsLoaded
from kraftd.ground import pace
from kraftd.ground.event import Event
from kraftd.host.broker_logs.broker_logs import EXPIRY_LOOK_US, LOGS_OPENED_AT_ONCE, BrokerLogs
from kraftd.host.broker_logs.replayed_producers import ReplayedProducers
from kraftd.host.ports import Ports
from kraftd.log.data.resources import LogResources
from kraftd.log.disk import RealDisk
from kraftd.log.errors import DirectoryProblem
from kraftd.log_dirs.directories import LogDirectories, LogDirectory
from kraftd.log_dirs.log_loader import LogLoader
from kraftd.log_dirs.offset_checkpoint import TopicPartition
from kraftd.partition.config import PartitionConfig
from tests.log.data.logs import NOW_MS, append, batch
from tests.log_dirs.test_log_directories import ID_A, SETTINGS, TOPIC_ID, UNIQUE


class Loop:
    """All ports of BrokerLogs: what is to be called soon is called at once, and threads run when told to."""

    def __init__(self) -> None:
        self.jobs: list[Callable[[], None]] = []
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
            try:
                result = job()
            except Exception as error:
                failed(error)
            else:
                done(result)

        self.jobs.append(act)


def broker_logs(loop: Loop, directories: LogDirectories, marks: dict[TopicPartition, int]) -> BrokerLogs:
    return BrokerLogs(
        directories,
        {},
        loop.ports,
        loop.events.append,
        lambda: UNIQUE,
        lambda key, at: (),
        lambda key: ReplayedProducers(PartitionConfig(), NOW_MS),
        lambda: iter(list(marks.items())),
    )


def directories_at(path: Path) -> LogDirectories:
    directory = LogDirectory(str(path), ID_A)
    return LogDirectories(LogResources(RealDisk()), [directory], lambda topic: SETTINGS)


def test_a_flush_whose_log_is_deleted_meanwhile_fails_no_directory(tmp_path: Path) -> None:
    loop, directories = Loop(), directories_at(tmp_path)
    logs = broker_logs(loop, directories, {})
    log = directories.create("t", 0, TOPIC_ID, NOW_MS)
    append(log, batch(0, 1))
    logs.flush()
    logs.delete(DeleteLog("t", 0))
    assert len(loop.jobs) > 1, "the flush is still under way"
    for job in loop.jobs:
        job()
    assert loop.errors == [] and len(directories.online) == 1


def test_a_round_of_the_event_loop_makes_one_log_and_deletes_one(tmp_path: Path) -> None:
    class Rounds(Loop):
        def __init__(self) -> None:
            self.soon: list[Callable[[], None]] = []
            super().__init__()

        def call_soon(self, act: Callable[..., None], *arguments: Any) -> None:
            self.soon.append(partial(act, *arguments))

        def round(self) -> None:
            due, self.soon = self.soon, []
            for act in due:
                act()

    loop, directories = Rounds(), directories_at(tmp_path)
    logs = broker_logs(loop, directories, {})
    for index in range(3):
        logs.open(OpenLog("t", index, TOPIC_ID, bytes(16), True))
    logs.delete(DeleteLog("t", 2))
    counts = []
    for _ in range(4):
        loop.round()
        counts.append(len(directories.logs))
    assert counts == [1, 2, 3, 2] and loop.errors == []


def test_logs_are_found_and_opened_by_threads(tmp_path: Path) -> None:
    before = directories_at(tmp_path)
    for number in range(LOGS_OPENED_AT_ONCE + 1):
        before.create("t", number, TOPIC_ID, NOW_MS)
    loop, directories = Loop(), directories_at(tmp_path)
    loader = LogLoader(directories, NOW_MS)
    broker_logs(loop, directories, {}).load(loader)
    assert loader.remaining == {} and len(loop.jobs) == 1, "the event loop reads no directory"
    while loop.jobs:
        loop.jobs.pop(0)()
    (loaded,) = loop.events
    assert isinstance(loaded, LogsLoaded) and set(loaded.topic_ids) == set(directories.logs)
    assert len(directories.logs) == LOGS_OPENED_AT_ONCE + 1 and loop.errors == []


def test_a_directory_of_no_partition_ends_the_start(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    loop, directories = Loop(), directories_at(tmp_path)
    broker_logs(loop, directories, {}).load(LogLoader(directories, NOW_MS))
    loop.jobs.pop()()
    assert loop.jobs == [] and [type(error) for error in loop.errors] == [DirectoryProblem]


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
