"""Cleanings of random logs leave what Kafka's cleaner left when it was recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftd.log.memory_disk import MemoryDisk
from tests.log.data.logs import PARENT
from tests.log.data.random_logs import Recorded, drive, recorded


@pytest.mark.parametrize("path", recorded(), ids=lambda path: path.stem)
def test_a_cleaning_leaves_the_segments_that_kafkas_left(path: Path) -> None:
    kafka = Recorded(path)
    drive(MemoryDisk(), PARENT, kafka, int(path.stem))
    assert not kafka.left
