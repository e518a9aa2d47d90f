"""Requests of `kraftd snapshot`, and the answer on a disk with free space and on one without."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftd.host.upkeep.snapshot_request import (
    SnapshotAnswer,
    WaitingRequests,
    answer,
    request_snapshot,
    take_answer,
    take_requests,
)
from kraftd.log.disk import RealDisk, RealFile
from kraftd.log.errors import DiskFull


class FullDisk(RealDisk):
    """A disk that accepts names, but no bytes."""

    def open(self, path: str, *, create: bool = False) -> RealFile:
        file = super().open(path, create=create)

        def write(position: int, data: bytes | memoryview) -> None:
            raise DiskFull("no room")

        file.write = write  # type: ignore[method-assign]
        return file


def test_a_command_is_answered_on_a_full_disk_too(tmp_path: Path) -> None:
    written = SnapshotAnswer(request="mine", error="no space left on device")
    assert take_answer(RealDisk(), str(tmp_path), "mine") is None
    with pytest.raises(DiskFull):
        answer(FullDisk(), str(tmp_path), written)
    read = take_answer(RealDisk(), str(tmp_path), "mine")
    assert read is not None and read.error.startswith("the disk is full: make room on it")
    answer(RealDisk(), str(tmp_path), written)
    assert take_answer(RealDisk(), str(tmp_path), "mine") == written


def test_requests_are_taken_once_and_half_written_ones_are_left(tmp_path: Path) -> None:
    disk, directory = RealDisk(), str(tmp_path)
    for name in ("first", "second"):
        request_snapshot(disk, directory, name)
    (tmp_path / "snapshot.request.third.tmp").touch()
    (tmp_path / "00000000000000000000.log").touch()
    assert [take_requests(disk, directory) for _ in range(2)] == [["first", "second"], []]
    assert len(disk.list_names(directory)) == 2


def test_a_directory_is_listed_after_a_change_only(
    tmp_path: Path,
) -> None:
    class CountedDisk(RealDisk):
        listings = 0

        def list_names(self, directory: str) -> list[str]:
            self.listings += 1
            return super().list_names(directory)

        def modified_ms(self, path: str) -> int:
            return modified_ms

    disk, modified_ms = CountedDisk(), 7
    waiting = WaitingRequests(disk, str(tmp_path))
    assert waiting.take() == []
    request_snapshot(disk, str(tmp_path), "of the same tick")
    assert waiting.take() == ["of the same tick"]
    assert waiting.take() == [] and disk.listings == 2
    modified_ms = 8
    request_snapshot(disk, str(tmp_path), "later")
    assert [waiting.take() for _ in range(4)] == [["later"], [], [], []]
    assert disk.listings == 4
    assert WaitingRequests(RealDisk(), str(tmp_path / "gone")).take() == []
