"""A simulated broker keeps account of the logs whose directory has failed."""

from __future__ import annotations

from kraftd.log.data.resources import LogResources
from kraftd.log.data.settings import DataLogSettings
from kraftd.log.errors import StorageFailure
from kraftd.log.memory_disk import MemoryDisk
from kraftd.log_dirs.directories import LogDirectory
from kraftd.simulation.brokers.broker_side import DIRECTORIES, WatchedDirectories


def made() -> WatchedDirectories:
    disk = MemoryDisk()
    for path in DIRECTORIES:
        disk.make_directory(path)
    directories = [LogDirectory(path, bytes([at]) * 16) for at, path in enumerate(DIRECTORIES, 1)]
    settings = DataLogSettings()
    return WatchedDirectories(LogResources(disk), directories, lambda topic: settings)


def test_a_loss_of_power_befalls_the_logs_of_a_failed_directory_too() -> None:
    directories = made()
    gone, left = (directories.create("topic", n, bytes(16), 0) for n in range(2))
    directories.fail(gone.parent, StorageFailure("input/output error"))
    directories.fail(gone.parent, StorageFailure("again"))
    assert list(directories.logs.values()) == [left]
    assert directories.all_logs() == [gone, left]


def test_a_log_that_was_made_anew_elsewhere_stands_for_the_failed_one() -> None:
    directories = made()
    gone, left = (directories.create("topic", n, bytes(16), 0) for n in range(2))
    directories.fail(gone.parent, StorageFailure("input/output error"))
    other = directories.id_of(left)
    made_anew = directories.create("topic", 0, bytes(16), 0, directory_id=other)
    assert directories.all_logs() == [made_anew, left]
