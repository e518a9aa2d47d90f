"""The answer to `kraftd snapshot`, on a disk with free space and on one without."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kraftd.host.upkeep.snapshot_request import (
    SnapshotAnswer,
    WaitingRequests,
    answer,
    request_snapshot,
    take_answer,
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


class Listed(RealDisk):
    """A disk that counts how often directories are listed."""

    def __init__(self) -> None:
        super().__init__()
        self.listings = 0

    def list_names(self, directory: str) -> list[str]:
        self.listings += 1
        return super().list_names(directory)


def test_a_directory_of_many_partitions_is_listed_only_when_its_names_change(tmp_path: Path) -> None:
    disk = Listed()
    waiting = WaitingRequests(disk, str(tmp_path))

    def take() -> list[str]:
        return waiting.take() if waiting.may_have_come() else []

    request_snapshot(disk, str(tmp_path), "first")
    assert [take() for _ in range(9)] == [["first"], *[[]] * 8]
    assert disk.listings <= 4  # its removal is a change, too
    before = disk.listings
    request_snapshot(disk, str(tmp_path), "second")
    os.utime(tmp_path, ns=(0, 0))  # its clock jumped back
    assert take() == ["second"] and disk.listings == before + 1
    assert not WaitingRequests(disk, str(tmp_path / "gone")).may_have_come()
