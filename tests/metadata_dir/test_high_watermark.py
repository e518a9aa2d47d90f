"""The high watermark on the disk: written whole, checked at each opening."""

from __future__ import annotations

import pytest

from kraftd.log.errors import CorruptStorage, DirectoryProblem
from kraftd.log.memory_disk import MemoryDisk, SimulatedCrash
from kraftd.metadata_dir.files.high_watermark import (
    HighWatermarkFile,
    Mark,
    Refusal,
    decode_mark,
    encode_mark,
    read_mark,
)
from kraftd.metadata_dir.recovery import open_log
from kraftd.types import OffsetAndEpoch
from tests.metadata_dir.logs import DIRECTORY, batch, opened
from tests.metadata_dir.test_recovery import cut_segment, survivors, write_snapshot

PATH = f"{DIRECTORY}/high-watermark"
REFUSED = Mark(9, 3, Refusal(2, 7, 4, 12))


def with_log(mark: Mark, end: int = 10, epoch: int = 1) -> MemoryDisk:
    """A disk with a log of one record a batch, and the mark."""
    disk, log, _ = opened()
    for offset in range(end):
        log.append(batch(offset, epoch=epoch))
    log.close()
    HighWatermarkFile(disk, DIRECTORY, Mark()).write(mark)
    return disk


def test_a_mark_is_one_line_of_json() -> None:
    assert encode_mark(Mark(9, 3)) == b'{"highWatermark":9,"epoch":3,"refused":null,"data_version":0}'
    assert decode_mark(encode_mark(REFUSED)) == REFUSED
    assert decode_mark(encode_mark(Mark())) == Mark()


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "it is empty"),
        (b"{", "Input data was truncated"),
        (b"[]", "Expected `object`, got `array`"),
        (b'{"highWatermark":"9","epoch":3,"data_version":0}', "Expected `int`, got `str`"),
        (b'{"highWatermark":9,"epoch":3}', "data_version is missing"),
        (b'{"highWatermark":9,"epoch":3,"data_version":4}', "data_version is 4; 0 is known"),
        (b'{"highWatermark":-9,"epoch":3,"data_version":0}', "high watermark -9 of epoch 3"),
    ],
)
def test_a_mark_that_cannot_be_read_is_refused_with_its_path(data: bytes, fault: str) -> None:
    disk = with_log(Mark(5, 1))
    file = disk.open(PATH)
    file.truncate(0)
    file.write(0, data)
    with pytest.raises(DirectoryProblem, match=f"{PATH} cannot be read: .*{fault}.*move it aside"):
        open_log(disk, DIRECTORY)


def test_a_mark_never_goes_back_and_a_later_one_ends_a_refusal() -> None:
    disk = MemoryDisk()
    file = HighWatermarkFile(disk, DIRECTORY, REFUSED)
    file.advance(9, 3)
    file.advance(4, 2)
    assert not disk.exists(PATH) and file.mark == REFUSED
    file.advance(10, 8)
    assert read_mark(disk, DIRECTORY) == file.mark == Mark(10, 8)


def test_a_kill_at_any_operation_leaves_the_old_mark_or_the_new_one() -> None:
    for crash_at in range(1, 8):
        for choose in survivors():
            disk = with_log(Mark(5, 1))
            disk.crash_at = disk.operations + crash_at
            done = False
            try:
                HighWatermarkFile(disk, DIRECTORY, Mark(5, 1)).advance(8, 1)
                done = True
            except SimulatedCrash:
                pass
            mark = open_log(disk.after_crash(choose), DIRECTORY).mark
            assert mark == Mark(8, 1) or (not done and mark == Mark(5, 1))


def test_a_log_without_committed_records_is_refused() -> None:
    disk = with_log(Mark(10, 1))
    cut_segment(disk, 0)
    for suffix in (".index", ".timeindex"):
        disk.remove(f"{DIRECTORY}/{0:020d}{suffix}")
    disk.remove(f"{DIRECTORY}/leader-epoch-checkpoint")
    with pytest.raises(
        CorruptStorage, match="the high watermark was 10: 10 committed records are gone"
    ) as lost:
        open_log(disk, DIRECTORY)
    assert lost.value.offset == 0
    disk.remove(f"{DIRECTORY}/{0:020d}.log")
    with pytest.raises(
        DirectoryProblem, match="high-watermark knows that the records below 10 were committed"
    ):
        open_log(disk, DIRECTORY)


def test_a_log_in_which_other_records_replaced_committed_ones_is_refused() -> None:
    disk = with_log(Mark(8, 1), epoch=2)
    with pytest.raises(CorruptStorage, match="was committed in epoch 1, and the log has one of epoch 2"):
        open_log(disk, DIRECTORY)
    disk.remove(PATH)
    assert open_log(disk, DIRECTORY).mark == Mark()


def test_a_checkpoint_holds_what_the_log_has_no_more() -> None:
    disk = with_log(Mark(8, 1))
    write_snapshot(disk, OffsetAndEpoch(20, 4))
    opened_log = open_log(disk, DIRECTORY)
    assert (opened_log.log.log_end, opened_log.mark) == (20, Mark(8, 1))
    # What the mark does not count as committed may not be in the checkpoint.
    kept = [disk.read_bytes(f"{DIRECTORY}/truncated/{name}") for name in opened_log.log.kept.names()]
    assert kept == [batch(8) + batch(9)]
