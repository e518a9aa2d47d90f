"""A voter that lost its disk catches up by snapshot, with leaders of either kind; then its vote is needed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from testkit.node import Kind
from testkit.process import wait_until
from testkit.quorum import Quorum
from tests.kafka.snapshots.compacting import COMPACTING, snapshots, wait_for_compaction

pytestmark = pytest.mark.kafka
# No-op records fill the log soon.
FILLING = {**COMPACTING, "metadata.max.idle.interval.ms": 20}
WIPED = 102


@pytest.mark.parametrize(
    ("others", "wiped"),
    [
        pytest.param("apache", "kraftd", marks=pytest.mark.thorough),
        ("kraftd", "apache"),
        pytest.param("kraftd", "kraftd", marks=pytest.mark.thorough),
    ],
)
def test_a_voter_that_lost_its_disk_loads_a_snapshot_and_votes(
    others: Kind, wiped: Kind, kind: Kind, tmp_path: Path
) -> None:
    if kind == "apache":
        pytest.skip("both kinds are in it anyway")
    kinds: dict[int, Kind] = {100: others, 101: others, WIPED: wiped}
    with Quorum(tmp_path, kinds, static=True, controller_properties=FILLING) as quorum:
        quorum.start_controllers()
        quorum.wait_for_voters(*kinds)
        quorum.make_lead(100)
        voter, leader = quorum.controllers[WIPED], quorum.controllers[100]
        wait_for_compaction(leader.metadata_dir)
        voter.kill()
        shutil.rmtree(voter.data)
        voter.format(quorum.cluster_id)
        voter.start()
        wait_until(lambda: snapshots(voter.metadata_dir), f"{voter!r} has a snapshot", 120)
        wait_for_compaction(voter.metadata_dir)
        quorum.wait_for_voters(*kinds)
        epoch = quorum.epoch()
        leader.kill()
        assert quorum.wait_for_leader(after_epoch=epoch) in (101, WIPED)
        committed = quorum.described()
        assert committed is not None

        def further() -> bool:
            described = quorum.described()
            return described is not None and described.high_watermark > committed.high_watermark + 10

        wait_until(further, "two of three commit")


@pytest.mark.thorough
def test_a_voter_without_its_checkpoint_fetches_one_from_a_leader_of_the_other_kind(
    kind: Kind, tmp_path: Path
) -> None:
    if kind == "apache":
        pytest.skip("Apache Kafka's controller does not start without it")
    kinds: dict[int, Kind] = {100: "apache", 101: "apache", WIPED: "kraftd"}
    with Quorum(tmp_path, kinds, static=True, controller_properties=FILLING) as quorum:
        quorum.start_controllers()
        quorum.wait_for_voters(*kinds)
        quorum.make_lead(100)
        voter, leader = quorum.controllers[WIPED], quorum.controllers[100]
        for each in (voter, leader):
            wait_for_compaction(each.metadata_dir)
        voter.kill()
        for each in voter.metadata_dir.glob("*.checkpoint"):
            each.rename(each.with_suffix(".aside"))
        voter.start()
        wait_until(lambda: snapshots(voter.metadata_dir), f"{voter!r} has a snapshot", 120)
        quorum.wait_for_voters(*kinds)
        assert "a snapshot was fetched from the leader" in voter.log_text()
