"""The answer to `kraftd snapshot`, on a disk with free space and on one without."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftd.host.upkeep.snapshot_request import SnapshotAnswer, answer, take_answer
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
