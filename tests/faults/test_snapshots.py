"""Three voters that make snapshots all the time and keep little of their logs: kills, and a new disk."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.quorum import VOTERS, FaultyQuorum, surviving
from tests.kafka.process import wait_until
from tests.kafka.snapshots.compacting import snapshots, wait_for_compaction

SOAK_S = float(os.environ.get("KRAFTD_SOAK_S", "20"))
COMPACTING = {
    "metadata.log.max.record.bytes.between.snapshots": 20_000,
    "internal.metadata.log.segment.bytes": 16_384,
    "metadata.max.retention.bytes": 30_000,
    "internal.metadata.delete.delay.millis": 1000,
    "controller.quorum.auto.join.enable": "true",
}


@pytest.fixture(scope="module")
def compacting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyQuorum]:
    with FaultyQuorum(tmp_path_factory.mktemp("compacting"), properties=COMPACTING) as quorum:
        quorum.start()
        yield quorum


def log_bytes(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.glob("*.log"))


def test_kills_lose_nothing_and_the_disk_stays_small(compacting: FaultyQuorum) -> None:
    dice = random.Random(5)
    with surviving(compacting, "soaked") as writer:
        deadline_s = time.monotonic() + SOAK_S
        while time.monotonic() < deadline_s:
            writer.wait_for_more(50)
            victim = dice.choice(VOTERS)
            compacting.controllers[victim].kill()
            if dice.random() < 0.5:
                writer.wait_for_more(20)
            compacting.start_controllers(victim)
    for controller in compacting.controllers.values():
        directory = controller.metadata_dir
        wait_for_compaction(directory)
        newest = snapshots(directory)[-1]
        checkpoint = next(directory.glob(f"{newest.offset:020d}-*.checkpoint")).stat().st_size
        assert log_bytes(directory) < 200_000 + checkpoint, "what may be kept, and what is being written"


def test_a_voter_with_a_new_disk_is_brought_up_by_snapshot(compacting: FaultyQuorum) -> None:
    with surviving(compacting, "wiped") as writer:
        controller = compacting.controllers[compacting.others(compacting.wait_for_leader())[0]]
        controller.kill()
        shutil.rmtree(controller.data)
        controller.format(compacting.cluster_id, "--no-initial-controllers")
        writer.wait_for_more(20)
        controller.start()
        wait_until(lambda: snapshots(controller.metadata_dir), f"{controller!r} has a snapshot")
