"""A clean stop of many logs, by syncs of their whole file systems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from kraftd.log import whole_sync
from kraftd.log.data import flushing
from kraftd.log.disk import RealDisk
from kraftd.log.errors import StorageError, StorageFailure
from kraftd.log.memory_disk import MemoryDisk, SimulatedCrash, nothing_unsynced_survives
from kraftd.log_dirs.directories import LogDirectories
from kraftd.log_dirs.jobs import attempt
from tests.log.data.logs import NOW_MS, append, batch, content
from tests.log_dirs.test_log_directories import TOPIC_ID, A, B, started

MARK = ".kafka_cleanshutdown"
COUNT = 6


def run_none(jobs: Sequence[Callable[[], None]]) -> list[StorageError | None]:
    assert jobs == [], "no log is flushed by itself"
    return []


def close(directories: LogDirectories, run_all: flushing.RunAll = run_none) -> None:
    for _ in directories.close(NOW_MS, 7, lambda key: lambda: (), run_all):
        pass


@pytest.fixture
def filled(monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[MemoryDisk, LogDirectories]]:
    """Two directories with logs of two epochs each."""
    monkeypatch.setattr(flushing, "WHOLE_SYNC_FROM", 3)

    def fill() -> tuple[MemoryDisk, LogDirectories]:
        disk, directories, _ = started()
        for number in range(COUNT):
            log = directories.create("t", number, TOPIC_ID, NOW_MS)
            for epoch in (0, 1):
                log.assign_epoch(epoch, log.log_end)
                append(log, batch(epoch, epoch=epoch))
        return disk, directories

    return fill


def test_a_power_loss_in_a_clean_stop_leaves_no_mark_without_its_logs(
    filled: Callable[[], tuple[MemoryDisk, LogDirectories]],
) -> None:
    disk, directories = filled()
    before = disk.operations
    close(directories)
    marked = 0
    for at in range(before, disk.operations + 1):
        crashed, directories = filled()
        crashed.crash_at = at
        with suppress(SimulatedCrash):
            close(directories)
        after = crashed.after_crash(nothing_unsynced_survives)
        clean = [path for path in (A, B) if after.exists(f"{path}/{MARK}")]
        marked += len(clean)
        _, directories, _ = started(after)
        for path in clean:
            logs = [log for log in directories.logs.values() if log.parent == path]
            assert len(logs) == COUNT / 2
            for log in logs:
                assert content(log) == [batch(0, epoch=0), batch(1, epoch=1)]
                assert list(log.epochs.entries) == [(0, 0), (1, 1)]
    assert marked > 2


def test_each_log_is_flushed_by_itself_if_the_sync_of_all_fails(
    filled: Callable[[], tuple[MemoryDisk, LogDirectories]], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, directories = filled()

    def fail(path: str) -> None:
        raise StorageFailure("input/output error")

    monkeypatch.setattr(disk, "sync_whole", fail)
    alone: list[int] = []

    def run_all(jobs: Sequence[Callable[[], None]]) -> list[StorageError | None]:
        alone.append(len(jobs))
        return [attempt(job) for job in jobs]

    close(directories, run_all)
    assert alone == [COUNT] and directories.online == [A, B]
    _, directories, loader = started(disk.after_crash(nothing_unsynced_survives))
    assert loader.broker_epoch == 7 and len(directories.logs) == COUNT


def test_the_real_disk_syncs_a_whole_file_system_if_it_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, path = RealDisk(), str(tmp_path)
    if disk.has_whole_sync(path):
        disk.sync_whole(path)
        with pytest.raises(StorageFailure, match=r"cannot sync the file system of .*/gone: No such file"):
            disk.sync_whole(f"{path}/gone")
    assert not disk.has_whole_sync("/proc") and not disk.has_whole_sync(f"{path}/gone")
    assert whole_sync.kind("/proc") == "proc"
    monkeypatch.setattr(whole_sync, "KINDS", {whole_sync.kind(path)})
    monkeypatch.setattr(whole_sync, "SINCE", (99, 0))
    whole_sync._syncfs.cache_clear()
    assert not disk.has_whole_sync(path)
    whole_sync._syncfs.cache_clear()
