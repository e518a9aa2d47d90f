"""Several log directories: placing, checkpoints, clean and unclean stops, failures, deletion, moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import ClassVar, NoReturn

import pytest

from kraftd.ground import pace
from kraftd.ground.pace import Slices, at_once
from kraftd.log.data.resources import LogResources
from kraftd.log.data.settings import DataLogSettings
from kraftd.log.disk import write_whole
from kraftd.log.errors import CorruptStorage, DirectoryProblem, DiskFull, StorageError, StorageFailure
from kraftd.log.memory_disk import MemoryDisk, SimulatedCrash, everything_survives, nothing_unsynced_survives
from kraftd.log.offset_checkpoint import (
    TopicPartition,
    decode_offsets,
    encode_offsets,
    offsets_but_zeros,
)
from kraftd.log_dirs import cleaner
from kraftd.log_dirs.clean_shutdown import decode_clean_shutdown, encode_clean_shutdown
from kraftd.log_dirs.cleaner import CleanerSettings, LogCleaner
from kraftd.log_dirs.directories import LogDirectories, LogDirectory
from kraftd.log_dirs.high_watermarks import HighWatermarks
from kraftd.log_dirs.jobs import WriteJob, attempt
from kraftd.log_dirs.log_loader import LogLoader
from kraftd.log_dirs.log_making import LogMaking
from kraftd.log_dirs.log_table import GROUP_SIZE, LogTable
from kraftd.log_dirs.names import FUTURE_SUFFIX, PartitionDirectory, parse_name, suffixed_name
from kraftd.types import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED
from kraftd.wire.producer_snapshot import SnapshotEntry
from tests.log.data.logs import NOW_MS, append, batch, content

A, B = "/a", "/b"
ID_A, ID_B = b"a" * 16, b"b" * 16
TOPIC_ID = bytes(range(16))
UNIQUE = "0123456789abcdef" * 2
SETTINGS = DataLogSettings(segment_bytes=500, file_delete_delay_ms=10)


def made(disk: MemoryDisk) -> LogDirectories:
    disk.make_directory(A)
    disk.make_directory(B)
    directories = [LogDirectory(A, ID_A), LogDirectory(B, ID_B)]
    return LogDirectories(LogResources(disk), directories, lambda topic: SETTINGS)


def started(disk: MemoryDisk | None = None) -> tuple[MemoryDisk, LogDirectories, LogLoader]:
    disk = disk or MemoryDisk()
    directories = made(disk)
    return disk, directories, LogLoader(directories, NOW_MS).load()


def stopped(disk: MemoryDisk, directories: LogDirectories, broker_epoch: int = 7) -> MemoryDisk:
    for _ in directories.close(NOW_MS, broker_epoch, lambda key: lambda: ()):
        pass
    return disk.after_crash(everything_survives)


class Uncopied(LogTable):
    """A table of logs that may be looked at by key, and whose keys may be listed."""

    def values(self) -> NoReturn:
        raise AssertionError("all logs are looked at in one go")

    items = values


def uncopied(directories: LogDirectories) -> None:
    """From now on, let a look at all logs in one go fail."""
    logs, directories.logs = directories.logs, Uncopied(Counter(), set())
    for key in list(logs):
        directories.logs[key] = logs[key]


def all_checkpoints(directories: LogDirectories) -> list[WriteJob]:
    return [job for path in directories.online for job in directories.checkpoints_of(path)]


def test_a_new_log_goes_to_the_directory_with_the_fewest() -> None:
    _, directories, _ = started()
    parents = [directories.create("t", each, TOPIC_ID, NOW_MS).parent for each in range(5)]
    assert parents == [A, B, A, B, A]
    directories.cordoned = frozenset({B})
    assert directories.create("u", 0, TOPIC_ID, NOW_MS).parent == A
    assert directories.create("u", 1, TOPIC_ID, NOW_MS, directory_id=ID_B).parent == B
    directories.cordoned = frozenset({A, B})
    of_replaced_disk = b"c" * 16
    for number, unknown in enumerate(
        (DIRECTORY_UNASSIGNED, DIRECTORY_MIGRATING, DIRECTORY_LOST, of_replaced_disk)
    ):
        assert directories.create("v", number, TOPIC_ID, NOW_MS, directory_id=unknown).parent == A


def test_logs_that_are_being_made_count_for_the_choice_of_a_directory() -> None:
    _, directories, _ = started()
    makings = [directories.begin_create("t", each, TOPIC_ID, NOW_MS) for each in range(4)]
    assert all(isinstance(one, LogMaking) for one in makings)
    assert [one.directory for one in makings] == [f"{A}/t-0", f"{B}/t-1", f"{A}/t-2", f"{B}/t-3"]
    for one in makings[:3]:
        assert isinstance(one, LogMaking)
        one.run()
        directories.end_create(one)
    assert directories.by_fewest_logs() == [A, B]
    makings[3].error = DiskFull("no room")  # type: ignore[union-attr]
    with pytest.raises(DiskFull):
        directories.end_create(makings[3])  # type: ignore[arg-type]
    assert directories.by_fewest_logs() == [B, A]


def test_the_choice_of_a_directory_looks_at_no_log() -> None:
    _, directories, _ = started()
    directories.create("t", 0, TOPIC_ID, NOW_MS, directory_id=ID_A)
    uncopied(directories)
    assert directories.by_fewest_logs() == [B, A]


def test_logs_are_counted_through_every_change_of_a_table() -> None:
    """Moves, deletions, logs that are set aside and a directory that fails."""
    _, directories, _ = started()
    for number in range(4):
        directories.create("t", number, TOPIC_ID, NOW_MS, directory_id=ID_A)
    assert directories.by_fewest_logs() == [B, A]
    for number in range(3):
        directories.create("t", number, TOPIC_ID, NOW_MS, directory_id=ID_B, unique=UNIQUE)
    directories.replace_with_future("t", 0, UNIQUE, NOW_MS)  # 3 in A; 1 in B, and 2 future ones
    directories.delete("t", 1, UNIQUE, NOW_MS, future=True)
    assert directories.by_fewest_logs() == [B, A]
    directories.delete("t", 3, UNIQUE, NOW_MS)
    directories.delete("t", 3, UNIQUE, NOW_MS)
    directories.create("u", 0, TOPIC_ID, NOW_MS, directory_id=ID_B)
    assert directories.by_fewest_logs() == [A, B]  # 2 and 3
    directories.keep_one("u", 0, b"n" * 16, lambda: UNIQUE)
    directories.delete("t", 2, UNIQUE, NOW_MS, future=True)
    assert directories.by_fewest_logs() == [B, A]  # 1 and 2
    directories.fail(B, StorageFailure("the disk is gone"))
    assert directories.by_fewest_logs() == [A]


def test_a_checkpoint_copies_no_list_of_all_logs_and_takes_each_as_it_is_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pace, "MAX_SLICE_WORK_US", pace.ROW_US)
    _, directories, _ = started()
    for number in range(4):
        directories.create("t", number, TOPIC_ID, NOW_MS, directory_id=ID_A)
    directories.create("t", 3, TOPIC_ID, NOW_MS, directory_id=ID_B, unique=UNIQUE)
    uncopied(directories)
    slices = directories.checkpoints_in_slices(A)
    next(slices)
    directories.delete("t", 2, UNIQUE, NOW_MS)
    directories.replace_with_future("t", 3, UNIQUE, NOW_MS)
    assert "".join(at_once(slices)[0].rows) == "t 0 0\nt 1 0\n"
    monkeypatch.undo()
    assert directories.checkpoints_of(A)[0].rows == ["t 0 0\nt 1 0\n"]  # one text a slice, not one a log


def test_a_look_for_a_log_to_clean_copies_no_list_of_all_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaner, "LOGS_PER_SLICE", 1)
    _, directories, _ = started()
    directories.settings_of = lambda topic: SETTINGS._replace(compacts=True)
    for number in range(4):
        log = directories.create("t", number, TOPIC_ID, NOW_MS, directory_id=ID_A)
        if number < 3:
            append(log, batch(0))
            log.roll(NOW_MS)
    uncopied(directories)
    looked: list[tuple[str, int]] = []

    def last_stable_of(key: tuple[str, int]) -> int | None:
        looked.append(key)
        return 0

    def failed(*_: object) -> NoReturn:
        raise AssertionError("a log cannot be judged")

    slices = LogCleaner(directories, CleanerSettings()).choose(last_stable_of, failed, NOW_MS)
    next(slices)
    directories.delete("t", 1, UNIQUE, NOW_MS)
    assert at_once(slices) is None
    assert looked == [("t", 0), ("t", 2)], "the last one has nothing that could be cleaned"


def test_no_other_directory_takes_a_log_whose_directory_is_offline() -> None:
    _, directories, _ = started()
    directories.fail(B, StorageFailure("input/output error"))
    with pytest.raises(StorageFailure, match="no log directory takes u-3"):
        directories.create("u", 3, TOPIC_ID, NOW_MS, directory_id=ID_B)


def test_a_log_that_a_full_disk_does_not_take_leaves_nothing() -> None:
    """Else the next start would find the partition twice, or would not find what is written to it later."""
    disk, directories, _ = started()
    for room_bytes in (0, 1, 20):
        total, usable = disk.space_bytes(A)
        disk.capacity_bytes = total - usable + room_bytes
        with pytest.raises(DiskFull):
            directories.create("t", 0, TOPIC_ID, NOW_MS)
        disk.capacity_bytes = None
        assert not disk.exists(f"{A}/t-0")
    log = directories.create("t", 0, TOPIC_ID, NOW_MS)
    assert log.parent == A
    append(log, batch(0))
    log.flush(NOW_MS)
    _, directories, _ = started(disk.after_crash(everything_survives))
    assert content(directories.logs["t", 0]) == content(log) != b""


def test_a_clean_stop_is_marked_and_the_next_start_reads_no_batch_of_it() -> None:
    disk, directories, _ = started()
    log = directories.create("t", 0, TOPIC_ID, NOW_MS)
    for offset in range(30):
        append(log, batch(offset))
    log.increment_log_start(3)
    disk = stopped(disk, directories)
    assert disk.read_bytes(f"{A}/.kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":7}'
    assert disk.read_bytes(f"{A}/recovery-point-offset-checkpoint") == b"0\n1\nt 0 30\n"
    assert disk.read_bytes(f"{A}/log-start-offset-checkpoint") == b"0\n1\nt 0 3\n"
    assert disk.read_bytes(f"{B}/recovery-point-offset-checkpoint") == b"0\n0\n"
    assert disk.durable_bytes(log.segments[-1].path(log.directory))
    disk, directories, loader = started(disk)
    assert loader.broker_epoch == 7 and loader.notes == []
    assert not disk.exists(f"{A}/.kafka_cleanshutdown"), "until the next clean stop"
    again = directories.logs["t", 0]
    assert (again.log_start, again.log_end, again.recovery_point, again.topic_id) == (3, 30, 30, TOPIC_ID)
    assert len(content(again)) == 27


def test_a_clean_stop_flushes_many_logs_together() -> None:
    """One flush after the other takes minutes for ten thousand logs."""
    disk, directories, _ = started()
    for number in range(10):
        append(directories.create("t", number, TOPIC_ID, NOW_MS), batch(0))
    under_way = directories.logs["t", 4].begin_flush()  # nothing will call its end_flush
    assert under_way is not None
    together: list[int] = []

    def run_all(jobs: Sequence[Callable[[], None]]) -> list[StorageError | None]:
        together.append(len(jobs))
        return [
            StorageFailure("no such device") if number == 1 else attempt(job)
            for number, job in enumerate(jobs)
        ]

    for _ in directories.close(NOW_MS, 7, lambda key: lambda: (), run_all):
        pass
    assert together == [10]
    assert list(directories.offline) == [B]
    after = disk.after_crash(nothing_unsynced_survives)
    assert after.exists(f"{A}/.kafka_cleanshutdown") and not after.exists(f"{B}/.kafka_cleanshutdown")
    for number in range(0, 10, 2):
        for suffix in ("log", "snapshot"):
            offset = 0 if suffix == "log" else 1
            assert after.read_bytes(f"{A}/t-{number}/{offset:020}.{suffix}"), (number, suffix)


def test_marks_of_different_epochs_or_a_missing_one_name_no_broker_epoch() -> None:
    disk, directories, _ = started()
    disk = stopped(disk, directories)
    file = disk.open(f"{B}/.kafka_cleanshutdown")
    file.write(0, encode_clean_shutdown(8))
    assert LogLoader(made(disk), NOW_MS).broker_epoch is None
    disk.remove(f"{B}/.kafka_cleanshutdown")
    assert LogLoader(made(disk), NOW_MS).broker_epoch is None


def test_after_a_kill_all_that_was_appended_is_there() -> None:
    disk, directories, _ = started()
    log = directories.create("t", 0, TOPIC_ID, NOW_MS)
    for offset in range(30):
        append(log, batch(offset))
        if offset == 20:
            log.flush(NOW_MS)
            for job in all_checkpoints(directories):
                job.run()
    _, directories, loader = started(disk.after_crash(everything_survives))
    again = directories.logs["t", 0]
    assert loader.broker_epoch is None
    assert (again.log_end, again.recovery_point) == (30, 21)
    assert content(again) == content(log)


def test_a_directory_that_fails_goes_offline_with_its_partitions() -> None:
    disk, directories, _ = started()
    logs = [directories.create("t", each, TOPIC_ID, NOW_MS) for each in range(4)]

    def fault(operation: str, path: str) -> None:
        if path.startswith(f"{A}/"):
            raise StorageFailure(f"cannot write to {path}: Input/output error")

    disk.fault = fault
    with pytest.raises(StorageFailure) as failure:
        append(logs[0], batch(0))
    lost = directories.fail(A, failure.value)
    assert lost == [("t", 0), ("t", 2)]
    assert directories.fail(A, failure.value) == []
    assert (directories.online, sorted(directories.logs)) == ([B], [("t", 1), ("t", 3)])
    append(logs[1], batch(0))
    with pytest.raises(StorageFailure, match="failed before"):
        append(logs[2], batch(0))
    assert directories.path_of(ID_A) is None and directories.path_of(ID_B) == B
    assert directories.create("u", 0, TOPIC_ID, NOW_MS).parent == B
    with pytest.raises(StorageFailure, match="may be in /a, offline"):
        directories.create("t", 0, TOPIC_ID, NOW_MS, is_new=False)
    with pytest.raises(StorageFailure, match="may be in /a, offline"):  # though metadata takes it for new
        directories.create("t", 2, TOPIC_ID, NOW_MS)
    assert directories.create("t", 2, TOPIC_ID[::-1], NOW_MS).parent == B
    disk = stopped(disk, directories)
    assert disk.exists(f"{B}/.kafka_cleanshutdown") and not disk.exists(f"{A}/.kafka_cleanshutdown")


def test_an_unreadable_directory_is_offline_from_the_start() -> None:
    disk = MemoryDisk()
    for path in (A, B):
        disk.make_directory(path)
    problem = StorageFailure("cannot read /b/meta.properties: Input/output error")
    both = [LogDirectory(A, ID_A), LogDirectory(B, None)]
    directories = LogDirectories(LogResources(disk), both, lambda topic: SETTINGS, {B: problem})
    loader = LogLoader(directories, NOW_MS).load()
    assert (directories.online, directories.offline, loader.broker_epoch) == ([A], {B: problem}, None)
    with pytest.raises(StorageFailure, match="may be in /b, offline"):
        directories.create("t", 0, TOPIC_ID, NOW_MS, directory_id=ID_B, is_new=False)
    with pytest.raises(StorageFailure, match="may be in /b, offline"):
        directories.create("t", 0, TOPIC_ID, NOW_MS, directory_id=ID_B)
    # The metadata says that it is in a directory that works, so it is not in the other.
    assert directories.create("t", 1, TOPIC_ID, NOW_MS, directory_id=ID_A, is_new=False).parent == A


def test_a_log_is_made_elsewhere_when_its_directory_fails() -> None:
    disk, directories, _ = started()

    def fault(operation: str, path: str) -> None:
        if path.startswith(f"{A}/"):
            raise StorageFailure(f"cannot write to {path}: Input/output error")

    disk.fault = fault
    assert directories.create("t", 0, TOPIC_ID, NOW_MS).parent == B
    assert list(directories.offline) == [A]


def test_a_damaged_log_stays_offline_and_its_checkpoint_is_kept() -> None:
    disk, directories, _ = started()
    damaged = directories.create("t", 0, TOPIC_ID, NOW_MS)
    other = directories.create("t", 2, TOPIC_ID, NOW_MS, directory_id=ID_A)
    for log in (damaged, other):
        append(log, batch(0, 3))
        log.flush(NOW_MS)
    for job in all_checkpoints(directories):
        job.run()
    disk = disk.after_crash(everything_survives)
    path = f"{A}/t-0/00000000000000000000.log"
    disk.flip_bit(path, 80, 1)
    for _ in range(2):
        disk, directories, loader = started(disk)
        assert sorted(directories.logs) == [("t", 2)]
        error = directories.damaged["t", 0].error
        assert isinstance(error, CorruptStorage) and (error.path, error.position, error.offset) == (
            path,
            0,
            0,
        )
        assert any(path in note for note in loader.notes)
        with pytest.raises(CorruptStorage):
            directories.create("t", 0, TOPIC_ID, NOW_MS)
        for job in all_checkpoints(directories):
            job.run()
        checkpoint = decode_offsets(disk.read_bytes(f"{A}/recovery-point-offset-checkpoint"))
        assert checkpoint == {("t", 2): 3, ("t", 0): 3}


def test_a_damaged_log_without_a_topic_id_stays_offline_and_ends_no_start() -> None:
    disk, directories, _ = started()
    log = directories.create("t", 0, TOPIC_ID, NOW_MS)
    append(log, batch(0, 3))
    log.flush(NOW_MS)
    for job in all_checkpoints(directories):
        job.run()
    disk = disk.after_crash(everything_survives)
    disk.flip_bit(f"{A}/t-0/00000000000000000000.log", 80, 1)
    disk.remove(f"{A}/t-0/partition.metadata")
    _, directories, _ = started(disk)
    assert directories.damaged["t", 0].topic_id is None and directories.topic_ids() == {}
    assert not directories.is_contested("t", 0, TOPIC_ID)


def test_a_deleted_topic_leaves_after_its_delay() -> None:
    disk, directories, _ = started()
    log = directories.create("t", 0, TOPIC_ID, NOW_MS)
    append(log, batch(0))
    directories.delete("t", 0, UNIQUE, NOW_MS)
    renamed = f"{A}/t-0.{UNIQUE}-delete"
    assert disk.list_names(renamed) and not disk.list_names(f"{A}/t-0")
    assert directories.deletions(NOW_MS + 9) == []
    with pytest.raises(StorageFailure, match="t-0 was deleted"):
        append(log, batch(1))
    again = directories.create("t", 0, b"n" * 16, NOW_MS)
    assert again.log_end == 0
    for job in directories.deletions(NOW_MS + 10):
        job.run()
    assert not disk.exists(renamed) and disk.list_names(f"{A}/t-0")
    assert directories.delete("t", 9, UNIQUE, NOW_MS) is None


def test_a_deletion_that_a_stop_interrupted_goes_on() -> None:
    disk, directories, _ = started()
    directories.create("t", 0, TOPIC_ID, NOW_MS)
    directories.delete("t", 0, UNIQUE, NOW_MS)
    disk, directories, _ = started(stopped(disk, directories))
    assert directories.logs == {}
    for job in directories.deletions(NOW_MS + 10):
        job.run()
    assert disk.list_others(A) == {}


def test_the_disk_in_memory_lists_directories_in_order__whatever_their_names_hash_to() -> None:
    disk = MemoryDisk()
    for number in (3, 1, 8, 0, 9, 4, 7, 2, 6, 5):
        disk.make_directory(f"/logs/t-{number}")
    assert list(disk.list_others("/logs")) == [f"t-{number}" for number in range(10)]


def test_a_future_log_replaces_the_one_in_another_directory() -> None:
    disk, directories, _ = started()
    log = directories.create("t", 0, TOPIC_ID, NOW_MS)
    future = directories.create("t", 0, TOPIC_ID, NOW_MS, directory_id=ID_B, unique=UNIQUE)
    append(log, batch(0, 2))
    append(future, batch(0, 2))
    assert disk.list_others(B) == {f"t-0.{UNIQUE}-future": "a directory"}
    disk, directories, _ = started(stopped(disk, directories))
    assert directories.futures["t", 0].log_end == 2
    directories.replace_with_future("t", 0, UNIQUE, NOW_MS)
    log = directories.logs["t", 0]
    assert (log.directory, directories.futures) == (f"{B}/t-0", {})
    append(log, batch(2))
    assert content(log) == [batch(0, 2), batch(2)]
    assert list(disk.list_others(A)) == [f"t-0.{UNIQUE}-delete"]


def test_a_log_that_the_cluster_does_not_know_is_set_aside() -> None:
    disk, directories, _ = started()
    append(directories.create("t", 0, TOPIC_ID, NOW_MS), batch(0))
    assert directories.keep_one("t", 0, None, lambda: UNIQUE) is None
    disk, directories, loader = started(stopped(disk, directories))
    assert directories.logs == {} and directories.strays == [f"{A}/t-0.{UNIQUE}-stray"]
    assert "did not know that partition" in loader.notes[0]


def test_a_partition_in_two_directories_refuses_the_start() -> None:
    disk, directories, _ = started()
    directories.create("t", 0, TOPIC_ID, NOW_MS)
    del directories.logs["t", 0]
    directories.create("t", 0, TOPIC_ID, NOW_MS, directory_id=ID_B)
    with pytest.raises(DirectoryProblem, match="t-0 is in /a/t-0 and in /b/t-0"):
        started(disk.after_crash(everything_survives))


@pytest.mark.parametrize("at_former", [A, B])
def test_of_two_logs_of_a_partition_that_of_the_present_topic_is_kept(at_former: str) -> None:
    """A directory was offline while its topic was deleted and made again."""
    disk, directories, _ = started()
    ids = {A: ID_A, B: ID_B}
    at_present = B if at_former == A else A
    append(directories.create("t", 0, b"f" * 16, NOW_MS, directory_id=ids[at_former]), batch(0))
    del directories.logs["t", 0]
    append(directories.create("t", 0, TOPIC_ID, NOW_MS, directory_id=ids[at_present]), batch(0, 2))
    _, directories, _ = started(disk.after_crash(everything_survives))
    kept = directories.keep_one("t", 0, TOPIC_ID, lambda: UNIQUE)
    assert kept is not None and kept.log is directories.logs["t", 0]
    assert (kept.log.directory, kept.log.log_end) == (f"{at_present}/t-0", 2)
    assert directories.strays == [f"{at_former}/t-0.{UNIQUE}-stray"] and not directories.rivals


def test_of_two_logs_without_topic_ids_none_is_kept() -> None:
    """A power loss took what `partition.metadata` held, which is synced before the first append."""
    disk, directories, _ = started()
    for path, directory_id in ((A, ID_A), (B, ID_B)):
        directories.create("t", 0, TOPIC_ID, NOW_MS, directory_id=directory_id)
        directories.logs.clear()
        write_whole(disk, f"{path}/t-0/partition.metadata", bytes(43))
    _, directories, _ = started(disk.after_crash(everything_survives))
    assert directories.topic_ids() == {("t", 0): None}
    assert directories.keep_one("t", 0, TOPIC_ID, lambda: UNIQUE) is None
    assert sorted(directories.strays) == [f"{path}/t-0.{UNIQUE}-stray" for path in (A, B)]
    assert directories.create("t", 0, TOPIC_ID, NOW_MS).topic_id == TOPIC_ID


def test_a_log_that_was_left_half_made_is_removed_if_another_directory_has_it() -> None:
    disk, directories, _ = started()
    append(directories.create("t", 0, TOPIC_ID, NOW_MS, directory_id=ID_B), batch(0, 3))
    disk.make_directory("/a/t-0")
    disk.open("/a/t-0/00000000000000000000.log", create=True)
    disk = disk.after_crash(everything_survives)
    _, directories, loading = started(disk)
    assert directories.logs["t", 0].directory == "/b/t-0" and directories.logs["t", 0].log_end == 3
    assert not disk.exists("/a/t-0/00000000000000000000.log")
    assert loading.notes == ["/a/t-0 was left half made, without records: it was removed"]


def test_a_checkpoint_is_not_replaced_by_an_older_one() -> None:
    disk, directories, _ = started()
    log = directories.create("t", 0, TOPIC_ID, NOW_MS)
    append(log, batch(0, 3))
    log.flush(NOW_MS)
    older = directories.checkpoints_of(A)
    log.truncate_to(0, NOW_MS)
    newer = directories.checkpoints_after_truncations()
    assert len(newer) == 2 and directories.checkpoints_after_truncations() == []
    for job in (*newer, *older):
        job.run()
    assert disk.read_bytes(f"{A}/recovery-point-offset-checkpoint") == b"0\n1\nt 0 0\n"


def collected(slices: Slices[list[WriteJob]]) -> tuple[list[WriteJob], int]:
    """The jobs, and in how many slices they were collected."""
    for count in range(100):
        try:
            next(slices)
        except StopIteration as ended:
            return ended.value, count
    raise AssertionError("more than 100 slices")


def test_a_checkpoint_is_made_in_slices_and_not_of_logs_that_have_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pace, "MAX_SLICE_WORK_US", 2)
    disk, directories, _ = started()
    for number in range(10):
        directories.create("t", number, TOPIC_ID, NOW_MS, directory_id=ID_A)
    slices = directories.checkpoints_in_slices(A)
    next(slices)
    directories.delete("t", 9, UNIQUE, NOW_MS)
    jobs, count = collected(slices)
    assert 1 + count == 5
    for job in jobs:
        job.run()
    written = decode_offsets(disk.read_bytes(f"{A}/recovery-point-offset-checkpoint"))
    assert list(written) == [("t", number) for number in range(9)]


def test_logs_to_flush_by_time_are_looked_for_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first look, 30 s after a start, held the event loop for 70 ms with 100,000 logs."""
    monkeypatch.setattr(pace, "MAX_SLICE_WORK_US", 2)
    _, directories, _ = started()
    directories.settings_of = lambda topic: SETTINGS._replace(flush_ms=0)
    for number in range(10):
        append(directories.create("t", number, TOPIC_ID, NOW_MS), batch(0))
    looked = directories.flushes_by_time(NOW_MS)
    next(looked)
    directories.delete("t", 3, UNIQUE, NOW_MS)
    flushes, count = collected(looked)  # type: ignore[arg-type]
    assert 1 + count == 5
    assert [log.partition for log, _ in flushes] == [0, 1, 2, 4, 5, 6, 7, 8, 9]  # type: ignore[misc, union-attr]


def test_high_watermarks_are_collected_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "MAX_SLICE_WORK_US", 6)
    disk, directories, _ = started()
    for number in range(10):
        directories.create("t", GROUP_SIZE * number, TOPIC_ID, NOW_MS, directory_id=ID_A)
    marks = {("t", GROUP_SIZE * number): number for number in range(10)}
    high_watermarks = HighWatermarks(directories, marks.get)
    jobs, count = collected(high_watermarks.checkpoints(marks))
    assert count == 11
    for job in jobs:
        job.run()
    assert decode_offsets(disk.read_bytes(f"{A}/replication-offset-checkpoint")) == marks


def test_high_watermarks_of_groups_without_a_change_are_not_looked_at_again() -> None:
    """One of very many partitions is written to: the rows of the others are those of the last checkpoint."""
    disk, directories, _ = started()
    for number in range(200):
        directories.create("t", number, TOPIC_ID, NOW_MS, directory_id=ID_B if number == 70 else ID_A)
    marks: dict[TopicPartition, int | None] = {("t", number): number for number in range(200)}
    looked: list[TopicPartition] = []

    def mark_of(key: TopicPartition) -> int | None:
        looked.append(key)
        return marks[key]

    def written(changed: list[TopicPartition]) -> dict[TopicPartition, int]:
        looked.clear()
        for job in at_once(high_watermarks.checkpoints(changed)):
            job.run()
        found: dict[TopicPartition, int] = {}
        for path in directories.online:
            found |= decode_offsets(disk.read_bytes(f"{path}/replication-offset-checkpoint"))
        return found

    high_watermarks = HighWatermarks(directories, mark_of)
    assert written(list(marks)) == marks and len(looked) == 200
    marks["t", 70], marks["t", 71] = 700, None  # whose log is not open any more
    directories.delete("t", 65, UNIQUE, NOW_MS)
    found = written([("t", 70), ("t", 65), ("t", 71)])
    assert sorted(looked) == [("t", number) for number in range(64, 128) if number != 65]
    assert found == {key: mark for key, mark in marks.items() if key not in (("t", 65), ("t", 71))}
    assert at_once(high_watermarks.checkpoints([]))[1].rows == ["t 70 700\n"]


def test_a_walk_through_logs_bears_changes_and_makes_no_list_of_all() -> None:
    _, directories, _ = started()
    for number in range(200):
        directories.create("t", number, TOPIC_ID, NOW_MS, directory_id=ID_A)
    walk = directories.logs.walk()
    first = [next(walk) for _ in range(64)]
    for number in (0, 100, 199):
        directories.delete("t", number, UNIQUE, NOW_MS)
    directories.create("u", 0, bytes(16), NOW_MS, directory_id=ID_A)
    rest = list(walk)
    assert first == [("t", number) for number in range(64)]
    assert rest == [("t", number) for number in range(64, 200) if number not in (100, 199)]
    assert sorted(directories.logs.walk()) == sorted(directories.logs)
    directories.logs.clear()
    assert list(directories.logs.walk()) == []


def test_a_checkpoint_that_is_begun_later_replaces_one_in_slices() -> None:
    disk, directories, _ = started()
    log = directories.create("t", 0, TOPIC_ID, NOW_MS, directory_id=ID_A)
    append(log, batch(0, 3))
    log.flush(NOW_MS)
    slow = directories.checkpoints_in_slices(A)
    directories.create("t", 1, TOPIC_ID, NOW_MS, directory_id=ID_A)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pace, "MAX_SLICE_WORK_US", 2)
        next(slow)
    log.truncate_to(0, NOW_MS)
    newer = directories.checkpoints_after_truncations()
    older = at_once(slow)
    for job in (*newer, *older):
        job.run()
    written = decode_offsets(disk.read_bytes(f"{A}/recovery-point-offset-checkpoint"))
    assert written["t", 0] == 0


def test_names_of_directories_are_kafkas() -> None:
    long = "x" * 249
    assert parse_name("a-b-12", A) == PartitionDirectory("a-b", 12)
    assert parse_name(f"a.b-1.{UNIQUE}-delete", A) == PartitionDirectory("a.b", 1, "-delete")
    assert len(suffixed_name(long, 10_000, UNIQUE, "-stray")) == 255
    assert parse_name(suffixed_name(long, 7, UNIQUE, "-delete"), A).partition == 7
    assert suffixed_name("t", 0, UNIQUE, FUTURE_SUFFIX) == f"t-0.{UNIQUE}-future"
    for name in ("t", "t-", "-1", "t-x", "t-0-delete", "lost+found", f"t.{UNIQUE}-delete"):
        with pytest.raises(DirectoryProblem, match="is no partition's directory"):
            parse_name(name, A)


def test_a_stranger_in_a_log_directory_refuses_the_start_and_metadata_is_left_alone() -> None:
    disk = MemoryDisk()
    disk.make_directory(f"{A}/__cluster_metadata-0")
    disk.make_directory(f"{A}/remote-log-index-cache")
    _, directories, _ = started(disk)
    assert directories.logs == {}
    disk.make_directory(f"{A}/lost+found")
    with pytest.raises(DirectoryProblem, match=r"/a/lost\+found is no partition's directory"):
        started(disk)


def test_a_malformed_checkpoint_counts_as_empty() -> None:
    disk, directories, _ = started()
    append(directories.create("t", 0, TOPIC_ID, NOW_MS), batch(0, 3))
    disk = stopped(disk, directories)
    disk.open(f"{A}/recovery-point-offset-checkpoint").write(0, b"1")
    _, directories, loader = started(disk)
    assert "recovery-point-offset-checkpoint: version '1', not 0" in loader.notes[0]
    assert directories.logs["t", 0].log_end == 3


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("1\n0\n", "version"),
        ("0\n2\nt 0 1\n", "2 entries are announced"),
        ("0\n1\nt 0\n", "line 3"),
        ("0\nx\n", "x entries"),
        ("0\n1\nt zero 1\n", "line 3"),
    ],
)
def test_malformed_checkpoints_are_named(text: str, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        decode_offsets(text.encode())


def test_checkpoints_and_marks_are_read_as_they_are_written() -> None:
    offsets = {("t", 0): 5, ("a.b", 12): 1 << 40}
    assert decode_offsets(encode_offsets(offsets.items())) == offsets
    assert decode_offsets(b"") == {}
    rows = [(("t", number), number % 2) for number in range(4)]
    assert offsets_but_zeros(encode_offsets(rows)) == {("t", 1): 1, ("t", 3): 1}
    assert decode_clean_shutdown(encode_clean_shutdown(12)) == 12
    assert decode_clean_shutdown(b'{"version":1,"brokerEpoch":3,"more":1}') == 3
    for other in (b"", b"[]", b"{}", b'{"brokerEpoch":true}'):
        assert decode_clean_shutdown(other) is None


def history(disk: MemoryDisk, acknowledged: list[bytes]) -> None:
    """A start, appends with rolls and flushes, a truncation, a deletion, a clean stop and a start."""
    _, directories, _ = started(disk)
    log = directories.create("t", 0, TOPIC_ID, NOW_MS)
    directories.create("u", 0, TOPIC_ID, NOW_MS)
    for offset in range(14):
        append(log, batch(offset))
        acknowledged.append(batch(offset))
        if offset == 6:
            log.flush(NOW_MS)
            for job in all_checkpoints(directories):
                job.run()
    log.flush(NOW_MS)
    for job in all_checkpoints(directories):
        job.run()
    directories.delete("u", 0, UNIQUE, NOW_MS)
    for job in directories.deletions(NOW_MS + 10):
        job.run()
    for _ in directories.close(NOW_MS, 3, lambda key: lambda: ()):
        pass
    _, directories, _ = started(disk)
    append(directories.logs["t", 0], batch(14))
    acknowledged.append(batch(14))


def test_a_kill_before_any_change_of_the_disk_loses_nothing() -> None:
    disk = MemoryDisk()
    history(disk, [])
    operations = disk.operations
    assert operations > 60
    for crash_at in range(1, operations + 1):
        disk = MemoryDisk()
        disk.crash_at = crash_at
        acknowledged: list[bytes] = []
        try:
            history(disk, acknowledged)
        except SimulatedCrash:
            pass
        _, directories, loader = started(disk.after_crash(everything_survives))
        assert directories.damaged == {}, crash_at
        log = directories.logs.get(("t", 0))
        found = [] if log is None else content(log)
        # The append that was killed may be there, and is not acknowledged.
        assert found[: len(acknowledged)] == acknowledged and len(found) <= len(acknowledged) + 1, crash_at
        assert all("was cut" not in note for note in loader.notes)


class NoProducers:
    """Producers of a log that has none."""

    made: ClassVar[list[NoProducers]] = []

    def __init__(self) -> None:
        self.made.append(self)
        self.is_empty = True

    def load(self, entries: object, offset: int) -> None: ...
    def replay(self, batch: object) -> None: ...
    def expire(self) -> None: ...
    def entries(self) -> list[SnapshotEntry]:
        return []


def test_a_start_keeps_of_an_empty_log_only_the_log() -> None:
    """A broker may have a hundred thousand of them: what each leaves behind would be tens of MiB."""
    disk, directories, _ = started()
    for number in range(4):
        directories.create("t", number, TOPIC_ID, NOW_MS, directory_id=ID_A)
    (job, _) = at_once(HighWatermarks(directories, lambda _: 0).checkpoints(directories.logs.walk()))
    job.run()
    disk = stopped(disk, directories)
    directories = made(disk)
    NoProducers.made.clear()
    loader = LogLoader(directories, NOW_MS, lambda topic, partition: NoProducers())
    openings = list(loader.openings())
    assert not NoProducers.made  # each when its log is opened, not all of them before
    assert len({id(one.found) for one in openings}) == len({id(one.parsed.topic) for one in openings}) == 1
    for one in openings:
        one.run()
        loader.add(one)
    assert len(NoProducers.made) == 4 and loader.producers == {} and directories.high_watermarks == {}
    assert len({id(log.topic_id) for log in directories.logs.values()}) == 1
    for log in directories.logs.values():
        log.assign_topic_id(TOPIC_ID)
        assert log.topic_id is TOPIC_ID  # which the metadata has, too
