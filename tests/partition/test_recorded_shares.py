"""Random share consumers get what Kafka's share partition gave them when it was recorded (KIP-932)."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.partition.share_worlds import Recorded, World, drive, recorded


@pytest.mark.parametrize("path", recorded(), ids=lambda path: path.stem)
def test_members_get_what_kafka_gave_them__kip932(path: Path) -> None:
    kafka = Recorded(path)
    drive(World(kafka, Random(int(path.stem))))
    assert not kafka.left
