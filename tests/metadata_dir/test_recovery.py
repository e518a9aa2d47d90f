"""Opening a log after a crash, with damage, and with leftovers of another program."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from kraftd.log.errors import CheckpointMissing, CorruptStorage, DirectoryProblem
from kraftd.log.memory_disk import (
    MemoryDisk,
    MemoryFile,
    SimulatedCrash,
    everything_survives,
    names_survive_without_data,
    nothing_unsynced_survives,
)
from kraftd.log.settings import LogSettings
from kraftd.messages.leader_change_message import LeaderChangeMessage
from kraftd.metadata_dir.files.checkpoint import (
    CheckpointReader,
    CheckpointWriter,
    checkpoint_path,
    list_checkpoints,
)
from kraftd.metadata_dir.metadata_log import MetadataLog
from kraftd.metadata_dir.recovery import open_log
from kraftd.types import OffsetAndEpoch
from kraftd.wire.batch import ControlRecordType, build_control_batch, iter_batches, parse_header
from tests.metadata_dir.logs import DIRECTORY, SMALL_SEGMENTS, batch, content, opened

FIRST = f"{DIRECTORY}/00000000000000000000.log"


def survivors(seeds: range = range(3)) -> list[Callable[[int], int]]:
    """Ways in which unsynced changes may survive a crash."""
    return [
        nothing_unsynced_survives,
        everything_survives,
        names_survive_without_data(),
        *(random.Random(seed).randrange for seed in seeds),
    ]


def write_snapshot(disk: MemoryDisk, snapshot_id: OffsetAndEpoch) -> None:
    CheckpointWriter(disk, DIRECTORY, snapshot_id, last_contained_log_timestamp_ms=5, now_ms=6).freeze()


def overwrite(disk: MemoryDisk, path: str, position: int, data: bytes) -> None:
    file = disk.open(path)
    file.write(position, data)
    file.sync()


class History:
    """The states of a log; a crash may leave any of them since the last sync, or one in between."""

    def __init__(self) -> None:
        self.states: list[list[bytes]] = [[]]
        self.synced = 0

    def now(self, state: list[bytes]) -> None:
        self.states.append(list(state))

    def allows(self, found: list[bytes]) -> bool:
        possible = self.states[self.synced :]
        shortest = min(len(state) for state in possible)
        return len(found) >= shortest and any(state[: len(found)] == found for state in possible)


def run_story(log: MetadataLog, history: History) -> None:
    """Append, roll, truncate across segments, change epochs, and sync."""
    state: list[bytes] = []

    def append(count: int, epoch: int) -> None:
        new = batch(log.log_end, count, epoch)
        log.append(new)
        state.append(new)
        history.now(state)

    def sync() -> None:
        log.sync()
        history.synced = len(history.states) - 1

    def truncate(keep: int) -> None:
        log.truncate_to(sum(int.from_bytes(each[57:61], "big") for each in state[:keep]))
        del state[keep:]
        history.now(state)

    append(2, 1)
    sync()
    for _ in range(12):
        append(5, 1)
    sync()
    append(30, 2)
    append(1, 2)
    truncate(len(state) - 1)
    append(3, 3)
    sync()
    truncate(4)
    append(7, 4)
    append(1, 4)
    sync()
    log.roll()
    append(1, 5)
    log.close()
    history.synced = len(history.states) - 1


def test_a_crash_at_every_operation_loses_no_synced_record() -> None:
    disk, log, _ = opened()
    start = disk.operations
    run_story(log, History())
    total = disk.operations - start
    assert total > 60
    for crash_at in range(1, total + 2):
        for choose in survivors():
            disk, log, _ = opened()
            history = History()
            disk.crash_at = start + crash_at
            try:
                run_story(log, history)
            except SimulatedCrash:
                pass
            disk = disk.after_crash(choose)
            _, again, _ = opened(disk)
            found = content(again)
            assert history.allows(found), (crash_at, len(found))
            again.append(batch(again.log_end, 2, epoch=9))
            again.close()
            _, third, report = opened(disk)
            assert report.truncated_bytes == 0
            assert content(third) == [*found, batch(again.log_end - 2, 2, epoch=9)]


def test_a_crash_at_every_operation_of_recovery_itself_is_recovered_from() -> None:
    disk, log, _ = opened()
    for offset in range(60):
        log.append(batch(offset))
    log.sync()
    log.append(batch(60))
    log.sync()
    last = f"{DIRECTORY}/{[name for name in disk.list_names(DIRECTORY) if name.endswith('.log')][-1]}"
    file = disk.open(last)
    file.truncate(file.size_bytes() - 10)
    file.sync()
    disk.remove(f"{DIRECTORY}/leader-epoch-checkpoint")
    disk.sync_directory(DIRECTORY)
    disk = disk.after_crash(everything_survives)
    for crash_at in range(1, 40):
        crashing = disk.after_crash(everything_survives)
        crashing.crash_at = crash_at
        try:
            opened(crashing)
        except SimulatedCrash:
            pass
        for choose in survivors():
            _, log, _ = opened(crashing.after_crash(choose))
            assert content(log) == [batch(offset) for offset in range(60)]


def test_a_tail_torn_at_any_byte_is_truncated_and_reported() -> None:
    whole = batch(0, 3) + batch(3, 2)
    for cut in range(len(batch(0, 3)), len(whole)):
        disk, log, _ = opened()
        log.append(whole)
        log.sync()
        file = disk.open(FIRST)
        file.truncate(cut)
        if cut % 2:
            file.truncate(cut + 100)  # zeros, which a file system may leave
        file.sync()
        _, log, report = opened(disk)
        assert content(log) == [batch(0, 3)]
        if cut > len(batch(0, 3)) or cut % 2:
            assert report.truncated_bytes > 0
            assert f"(offset 3): the {report.truncated_bytes} bytes" in report.notes[0]


def test_damage_before_a_valid_batch_is_refused_with_path_position_and_remedy() -> None:
    size = len(batch(0, 3))
    for position in range(size, 2 * size, 7):
        disk, log, _ = opened()
        log.append(batch(0, 3) + batch(3, 3) + batch(6, 3))
        log.sync()
        before = disk.read_bytes(FIRST)
        if size + 12 <= position < size + 16:
            continue  # the leader epoch is not covered by the checksum
        overwrite(disk, FIRST, position, bytes([before[position] ^ 0x55]))
        damaged = disk.read_bytes(FIRST)
        with pytest.raises(CorruptStorage) as caught:
            opened(disk)
        assert (caught.value.path, caught.value.position, caught.value.offset) == (FIRST, size, 3)
        assert "catch up from the leader" in str(caught.value)
        assert disk.read_bytes(FIRST) == damaged


def test_damage_in_an_older_segment_is_refused_when_it_is_read() -> None:
    disk, log, _ = opened()
    for offset in range(60):
        log.append(batch(offset))
    log.close()
    file = disk.open(FIRST)
    size = file.size_bytes()
    file.truncate(size - 1)
    file.sync()
    with pytest.raises(CorruptStorage, match="offset"):
        opened(disk)
    disk, log, _ = opened()
    for offset in range(60):
        log.append(batch(offset))
    log.close()
    overwrite(disk, FIRST, 30, b"\xff\xff")  # before the last index entry: a read detects it by the checksum
    with pytest.raises(CorruptStorage, match="checksum"):
        opened(disk)  # it reads what the start must replay
    write_snapshot(disk, OffsetAndEpoch(60, 1))
    _, log, _ = opened(disk)
    with pytest.raises(CorruptStorage, match="checksum"):
        content(log)


@pytest.mark.parametrize(("snapshot_end", "control_count"), [(0, 1), (50, 1), (61, 0)])
def test_records_to_replay_are_read_from_disk_once(
    snapshot_end: int, control_count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, log, _ = opened()
    for offset in range(60):
        log.append(batch(offset))
    leader = LeaderChangeMessage(leader_id=1)
    log.append(build_control_batch([(ControlRecordType.LEADER_CHANGE, leader, 0)], 60, 2, 1_000))
    log.append(batch(61, 19, epoch=2))
    log.close()
    replayed = [each for each in content(log) if parse_header(each).base_offset >= snapshot_end]
    if snapshot_end:
        write_snapshot(disk, OffsetAndEpoch(snapshot_end, 1 if snapshot_end == 50 else 2))
    settings = SMALL_SEGMENTS._replace(replay_bytes=1 << 20)
    log, _, control_batches, *_ = open_log(disk, DIRECTORY, settings)
    assert len(control_batches) == control_count
    monkeypatch.setattr(MemoryFile, "read", _no_read)
    offset, found = snapshot_end, b""
    while offset < log.log_end:
        data = bytes(log.read(offset, 500))
        found += data
        offset = [each.header.next_offset for each in iter_batches(data)][-1]
    assert found == b"".join(replayed)


def _no_read(self: MemoryFile, position: int, size_bytes: int) -> bytes:
    raise AssertionError(f"{self.path} is read again at {position}")


def test_of_a_long_log_the_newest_part_is_kept_in_memory() -> None:
    disk, log, _ = opened()
    for offset in range(60):
        log.append(batch(offset))
    log.close()
    whole = content(log)
    _, log, _ = opened(disk, SMALL_SEGMENTS._replace(replay_bytes=2_000))
    assert content(log) == whole
    assert 0 < log.tail_bytes <= SMALL_SEGMENTS.tail_bytes


def test_a_missing_segment_is_refused() -> None:
    disk, log, _ = opened()
    for offset in range(60):
        log.append(batch(offset))
    log.close()
    middle = [name for name in disk.list_names(DIRECTORY) if name.endswith(".log")][1]
    disk.remove(f"{DIRECTORY}/{middle}")
    with pytest.raises(CorruptStorage, match="the log ends here, the next segment begins with"):
        opened(disk)


def test_bad_or_missing_indexes_and_epochs_are_rebuilt() -> None:
    disk, log, _ = opened()
    for offset in range(60):
        log.append(batch(offset, epoch=1 + offset // 20))
    log.close()
    expected = {name: disk.read_bytes(f"{DIRECTORY}/{name}") for name in disk.list_names(DIRECTORY)}
    for damage in (b"", b"\xff" * 7, b"\xff" * 24, bytes(1000)):
        for name in expected:
            if name.endswith(("index", "checkpoint")):
                file = disk.open(f"{DIRECTORY}/{name}")
                file.truncate(0)
                file.write(0, damage)
        _, log, _ = opened(disk)
        assert content(log) == [batch(offset, epoch=1 + offset // 20) for offset in range(60)]
        assert log.epochs.entries == [(1, 0), (2, 20), (3, 40)]
        log.close()
    assert disk.read_bytes(f"{DIRECTORY}/leader-epoch-checkpoint") == expected["leader-epoch-checkpoint"]


def test_kafkas_preallocated_indexes_are_read_up_to_their_padding() -> None:
    disk, log, _ = opened()
    for offset in range(60):
        log.append(batch(offset))
    log.close()
    for name in disk.list_names(DIRECTORY):
        if name.endswith("index"):
            file = disk.open(f"{DIRECTORY}/{name}")
            file.truncate(file.size_bytes() + 12 * 8 * 100)
    _, log, report = opened(disk)
    assert content(log) == [batch(offset) for offset in range(60)]
    assert report.notes == []


def test_leftovers_are_removed_and_other_files_are_kept() -> None:
    disk, log, _ = opened()
    log.append(batch(0))
    log.close()
    leftovers = [
        "00000000000000000042.index",
        "00000000000000000000.log.deleted",
        "00000000000000000007.timeindex.cleaned",
        "00000000000000000003-0000000001.checkpoint.part",
        "00000000000000000003-0000000001-123456.checkpoint.part",
        "00000000000000000002-0000000001.checkpoint.deleted",
        "quorum-state.tmp",
    ]
    others = ["00000000000000000001.snapshot", "clean-shutdown", "quorum-state"]
    for name in leftovers + others:
        disk.open(f"{DIRECTORY}/{name}", create=True)
    _, log, report = opened(disk)
    names = disk.list_names(DIRECTORY)
    assert not set(leftovers) & set(names)
    assert set(others) <= set(names)
    assert len(report.notes) == len(leftovers)
    assert content(log) == [batch(0)]


def test_an_interrupted_swap_is_finished() -> None:
    disk, log, _ = opened()
    log.append(batch(0, 2))
    log.close()
    disk.rename(FIRST, FIRST + ".swap")
    _, log, _ = opened(disk)
    assert content(log) == [batch(0, 2)]


def test_a_log_that_begins_late_needs_a_checkpoint_for_the_missing_part() -> None:
    disk, log, _ = opened()
    for offset in range(60):
        log.append(batch(offset))
    log.close()
    disk.remove(FIRST)
    with pytest.raises(DirectoryProblem, match="what was before is lost"):
        opened(disk)
    writer = CheckpointWriter(
        disk, DIRECTORY, OffsetAndEpoch(30, 1), last_contained_log_timestamp_ms=0, now_ms=0
    )
    writer.freeze()
    _, log, _ = opened(disk)
    assert (log.log_start, log.log_end) == (30, 60)
    assert content(log) == [batch(offset) for offset in range(30, 60)]


def test_a_directory_of_another_topic_is_refused() -> None:
    disk, log, _ = opened()
    log.close()
    overwrite(disk, f"{DIRECTORY}/partition.metadata", 0, b"version: 0\ntopic_id: J8aAPcfLQt2bqs1JT_rMgQ")
    with pytest.raises(DirectoryProblem, match="no directory of a metadata log"):
        opened(disk)


def snapshots_story(disk: MemoryDisk, log: MetadataLog, reached: list[str]) -> None:
    for offset in range(40):
        log.append(batch(offset))
    log.sync()
    for offset in (20, 35):
        snapshot_id = OffsetAndEpoch(offset, 1)
        writer = CheckpointWriter(disk, DIRECTORY, snapshot_id, last_contained_log_timestamp_ms=5, now_ms=6)
        writer.append([b"one", b"two"])
        writer.freeze()
        log.add_snapshot(snapshot_id)
        reached.append(f"wrote {offset}")
    log.delete_before_snapshot(OffsetAndEpoch(35, 1))
    log.sync()
    reached.append("deleted")
    snapshot_id = OffsetAndEpoch(80, 3)
    CheckpointWriter(disk, DIRECTORY, snapshot_id, last_contained_log_timestamp_ms=5, now_ms=6).freeze()
    reached.append("wrote 80")
    log.add_snapshot(snapshot_id)
    log.reset_to_snapshot(snapshot_id)
    log.append(batch(80, epoch=4))
    log.sync()
    reached.append("appended")


def test_a_crash_during_snapshots_leaves_a_log_that_continues_a_snapshot() -> None:
    disk, log, _ = opened()
    start = disk.operations
    snapshots_story(disk, log, [])
    total = disk.operations - start
    for crash_at in range(1, total + 2):
        for choose in survivors():
            disk, log, _ = opened()
            reached: list[str] = []
            disk.crash_at = start + crash_at
            try:
                snapshots_story(disk, log, reached)
            except SimulatedCrash:
                pass
            disk = disk.after_crash(choose)
            _, log, _ = opened(disk)
            whole, leftovers = list_checkpoints(disk, DIRECTORY)
            assert leftovers == []
            assert not [name for name in disk.list_names(DIRECTORY) if name.endswith(".damaged")]
            assert log.snapshots == whole
            for snapshot_id in whole:
                for _ in CheckpointReader(disk, checkpoint_path(DIRECTORY, snapshot_id)).values():
                    pass
            if "wrote 20" in reached:
                newest = max(int(each.split()[1]) for each in reached if each.startswith("wrote"))
                assert newest <= whole[-1].offset
            if whole and whole[-1].offset == 80:
                assert (log.log_start, log.last_epoch) in ((80, 3), (80, 4))
            elif "wrote 35" in reached:
                assert log.log_start in (0, 20, 35)
                assert log.log_end == 40
            if "appended" in reached:
                assert content(log) == [batch(80, epoch=4)]
            assert log.log_start == 0 or log.log_start in [each.offset for each in whole]
            expected = [batch(offset) for offset in range(log.log_start, 40)]
            if log.log_end <= 40:
                assert content(log) == expected[: len(content(log))]


def stopped_log(batches: int = 8) -> tuple[MemoryDisk, int]:
    """A cleanly stopped log, and the size of its only segment."""
    disk, log, _ = opened(settings=LogSettings(index_interval_bytes=200))
    for at in range(batches):
        log.append(batch(3 * at, 3, timestamp_ms=1_000 + at))
    log.close()
    return disk, disk.open(FIRST).size_bytes()


def cut_segment(disk: MemoryDisk, size_bytes: int) -> None:
    file = disk.open(FIRST)
    file.truncate(size_bytes)
    file.sync()


@pytest.mark.parametrize("kept_share", [0.0, 0.5, 0.9], ids=["all", "half", "a tenth"])
def test_a_log_without_records_that_its_index_proves_synced_is_refused(kept_share: float) -> None:
    disk, size_bytes = stopped_log()
    cut_segment(disk, int(size_bytes * kept_share))
    before = disk.open(FIRST).size_bytes()
    with pytest.raises(CorruptStorage, match="its index knows of offset 23"):
        open_log(disk, DIRECTORY)
    assert disk.open(FIRST).size_bytes() == before, "nothing was changed"


@pytest.mark.parametrize("whole", [0, 1, 5], ids=["none", "one", "those before the last epoch"])
def test_a_killed_nodes_log_without_the_start_of_an_epoch_is_refused(whole: int) -> None:
    """A killed node has written no index; it writes epochs after a sync of their records."""
    disk, log, _ = opened()
    for offset in range(8):
        log.append(batch(offset, epoch=1 if offset < 5 else 3))
    log.sync()
    size_bytes = disk.open(FIRST).size_bytes() // 8
    cut_segment(disk, whole * size_bytes)
    with pytest.raises(CorruptStorage, match=f"{6 - whole} records or more that were synced are gone"):
        open_log(disk, DIRECTORY)
    cut_segment(disk, whole * size_bytes + 3 if whole < 5 else whole * size_bytes - 1)  # torn, too
    before = disk.open(FIRST).size_bytes()
    with pytest.raises(CorruptStorage, match="leader-epoch-checkpoint knows of epoch 3 from offset 5 on"):
        open_log(disk, DIRECTORY)
    assert disk.open(FIRST).size_bytes() == before, "nothing was changed"


def test_rebuilt_epochs_are_written_after_a_sync_of_the_log() -> None:
    """A killed process may have left the records only in the kernel's memory."""
    disk, log, _ = opened()
    log.append(batch(0))
    log.sync()
    disk.remove(f"{DIRECTORY}/leader-epoch-checkpoint")
    done: list[str] = []
    disk.fault = lambda operation, path: done.append(f"{operation} {path.removeprefix(DIRECTORY)[1:]}")
    open_log(disk, DIRECTORY)
    synced = done.index("sync 00000000000000000000.log")
    assert synced < next(at for at, one in enumerate(done) if "leader-epoch-checkpoint" in one)


def test_a_log_whose_epochs_go_back_is_refused() -> None:
    """Such a log was put together of two: a leader never writes behind a later leader."""
    disk, log, _ = opened()
    log.append(batch(0, 3, epoch=4))
    log.close()
    file = disk.open(FIRST)
    position = file.size_bytes()
    file.write(position, batch(3, 2, epoch=3))
    file.sync()
    with pytest.raises(CorruptStorage, match="a batch of epoch 3 is behind one of epoch 4") as refused:
        open_log(disk, DIRECTORY)
    assert (refused.value.path, refused.value.position, refused.value.offset) == (FIRST, position, 3)
    file.truncate(position)
    file.sync()
    assert open_log(disk, DIRECTORY).log.log_end == 3


@pytest.mark.parametrize(("offset", "epoch"), [(6, 3), (9, 3), (5, 4)])
def test_an_epoch_start_within_a_checkpoint_is_not_lost(offset: int, epoch: int) -> None:
    disk, log, _ = opened()
    for at in range(6):
        log.append(batch(at, epoch=1 if at < 5 else 3))
    log.sync()
    write_snapshot(disk, OffsetAndEpoch(offset, epoch))
    cut_segment(disk, 0)
    assert open_log(disk, DIRECTORY).log.log_end == offset


def test_a_padded_index_proves_no_loss_and_leaves_a_note() -> None:
    disk, size_bytes = stopped_log()
    for suffix in (".index", ".timeindex"):
        path = FIRST.replace(".log", suffix)
        file = disk.open(path)
        file.write(file.size_bytes(), bytes(120))
        file.sync()
    cut_segment(disk, size_bytes // 2)
    report = open_log(disk, DIRECTORY).report
    (note,) = (note for note in report.notes if "its index knows of offset 23" in note)
    assert "records or more are gone" in note


def test_a_log_cut_below_a_checkpoint_continues_at_its_end() -> None:
    disk, _ = stopped_log()
    write_snapshot(disk, OffsetAndEpoch(24, 1))
    cut_segment(disk, 0)
    assert open_log(disk, DIRECTORY).log.log_end == 24


def test_a_crash_during_a_truncation_after_a_clean_stop_is_recovered_from() -> None:
    """The indexes of the stop cover more than the log then has, and must not prevent the start."""
    for crash_at in range(1, 30):
        for choose in survivors():
            disk, _ = stopped_log()
            log = open_log(disk, DIRECTORY).log
            log.truncate_to(9)
            log.append(batch(9, 1, epoch=2))
            disk.crash_at = disk.operations + crash_at
            try:
                log.sync()
                log.append(batch(10, 1, epoch=2))
                log.close()
            except SimulatedCrash:
                pass
            again = open_log(disk.after_crash(choose), DIRECTORY).log
            assert again.log_end in (9, 10, 11, 24)


@pytest.mark.parametrize("snapshot_id", [OffsetAndEpoch(15, 4), OffsetAndEpoch(30, 3)])
def test_a_crash_while_a_snapshot_replaces_the_log_is_recovered_from(snapshot_id: OffsetAndEpoch) -> None:
    """This holds even if the log is longer than the snapshot of a later epoch that replaces it."""
    for crash_at in range(1, 40):
        for choose in survivors():
            disk, log, _ = opened()
            for offset in range(24):
                log.append(batch(offset, epoch=1 if offset < 18 else 3))
            log.sync()
            write_snapshot(disk, snapshot_id)
            log.add_snapshot(snapshot_id)
            log.reset_to_snapshot(snapshot_id)
            disk.crash_at = disk.operations + crash_at
            try:
                log.sync()
            except SimulatedCrash:
                pass
            again = open_log(disk.after_crash(choose), DIRECTORY).log
            assert (again.log_start, again.log_end) == (snapshot_id.offset, snapshot_id.offset)


def test_a_missing_checkpoint_at_the_log_start_is_reported_as_such() -> None:
    disk, log, _ = opened()
    for offset in range(60):
        log.append(batch(offset))
    write_snapshot(disk, OffsetAndEpoch(60, 1))
    log.add_snapshot(OffsetAndEpoch(60, 1))
    log.delete_before_snapshot(OffsetAndEpoch(60, 1))
    log.sync()
    assert log.epochs.entries == [(1, 60)]
    disk.remove(checkpoint_path(DIRECTORY, OffsetAndEpoch(60, 1)))
    with pytest.raises(CheckpointMissing, match="no checkpoint at or past it"):
        open_log(disk, DIRECTORY)
