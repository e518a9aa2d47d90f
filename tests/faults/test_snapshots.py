"""Three voters that make many snapshots and keep little of their logs: kills, and a new disk."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kraftd.metadata_dir.files.checkpoint import checkpoint_name
from kraftd.types import METADATA_TOPIC
from testkit.process import free_port, wait_until
from tests.faults.quorum import VOTERS, FaultyQuorum, surviving
from tests.kafka.snapshots.compacting import snapshots, wait_for_compaction
from tests.metrics.scrape import Scrape, ready

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


def sizes(directory: Path) -> tuple[int, int]:
    """(bytes of the log, bytes of all checkpoints, finished or not); files may disappear meanwhile."""
    found = {".log": 0, "checkpoint": 0}
    for path in directory.iterdir():
        with suppress(FileNotFoundError):
            for kind in found:
                found[kind] += path.stat().st_size if kind in path.name else 0
    return found[".log"], found["checkpoint"]


class DiskWatch:
    """The most bytes that a directory held, of log and checkpoints."""

    def __init__(self) -> None:
        self.kills = 0
        self.most_log_bytes = self.most_checkpoint_bytes = 0

    def measure(self, directory: Path) -> None:
        log_bytes, checkpoint_bytes = sizes(directory)
        self.most_log_bytes = max(self.most_log_bytes, log_bytes)
        self.most_checkpoint_bytes = max(self.most_checkpoint_bytes, checkpoint_bytes)

    def __repr__(self) -> str:
        return (
            f"<DiskWatch {self.kills} kills, at most {self.most_log_bytes} bytes of log and "
            f"{self.most_checkpoint_bytes} of checkpoints>"
        )


@pytest.mark.timeout(SOAK_S + 600)
def test_kills_lose_nothing_and_the_disk_stays_small(compacting: FaultyQuorum) -> None:
    rng, watch = random.Random(5), DiskWatch()
    with surviving(compacting, "soaked") as writer:
        deadline_s = time.monotonic() + SOAK_S
        while time.monotonic() < deadline_s:
            writer.wait_for_more(50)
            victim = rng.choice(VOTERS)
            compacting.controllers[victim].kill()
            watch.kills += 1
            if rng.random() < 0.5:
                writer.wait_for_more(20)
            compacting.start_controllers(victim)
            for controller in compacting.controllers.values():
                watch.measure(controller.metadata_dir)
        print(f"{watch}, {writer}")
    newest_bytes = 0
    for controller in compacting.controllers.values():
        directory = controller.metadata_dir
        wait_for_compaction(directory)
        newest = directory / checkpoint_name(snapshots(directory)[-1])
        newest_bytes = max(newest_bytes, newest.stat().st_size)
    # The limit of retention, and the records appended while a snapshot was made.
    assert watch.most_log_bytes < 300_000 + newest_bytes, watch
    # Two are made a second, and each is deleted 2.5 s later: after two polls, the delay of a second and one
    # more poll. One more is being made, another is being sent, and one poll may be late.
    assert watch.most_checkpoint_bytes < 100_000 + 8 * newest_bytes, watch


def test_a_voter_with_a_new_disk_catches_up_by_snapshot(compacting: FaultyQuorum) -> None:
    with surviving(compacting, "wiped") as writer:
        leader = compacting.wait_for_leader()
        controller = compacting.controllers[compacting.others(leader)[0]]
        wait_for_compaction(compacting.controllers[leader].metadata_dir)
        controller.kill()
        shutil.rmtree(controller.data)
        controller.format(compacting.cluster_id, "--no-initial-controllers")
        port = free_port()
        controller.properties["kraftd.metrics.listener"] = f"127.0.0.1:{port}"
        controller.write_properties()
        writer.wait_for_more(20)
        controller.start()
        wait_until(lambda: snapshots(controller.metadata_dir), f"{controller!r} has a snapshot")
        wait_until(lambda: ready(port)[0] == 200, "it is ready")
        scrape = Scrape(port)
        assert scrape.value("kraftd_snapshot_downloads_total") >= 1
        assert scrape.value("kraftd_snapshot_download_bytes_total") > 1000
        assert scrape.value("kraftd_snapshot_downloads_refused_total") == 0
        assert scrape.value("kafka_server_MetadataLoader_HandleLoadSnapshotCount") >= 1
        assert scrape.value("kafka_controller_KafkaController_LoadSnapshotLatencyMs_count") >= 1
        assert scrape.value("kafka_controller_KafkaController_ActiveControllerCount") == 0
        assert scrape.value("kafka_server_raft_metrics_current_state", state="leader") == 0
        assert scrape.value("kafka_log_Log_LogStartOffset", topic=METADATA_TOPIC, partition="0") > 0


def test_a_download_survives_changes_of_leader_and_restarts(compacting: FaultyQuorum) -> None:
    """Small pieces make the download slow; meanwhile snapshots are made and deleted."""
    with surviving(compacting, "interrupted") as writer:
        leader = compacting.wait_for_leader()
        controller = compacting.controllers[compacting.others(leader)[0]]
        wait_for_compaction(compacting.controllers[leader].metadata_dir)
        controller.kill()
        shutil.rmtree(controller.data)
        controller.format(compacting.cluster_id, "--no-initial-controllers")
        controller.properties["controller.quorum.fetch.snapshot.max.bytes"] = 100
        controller.write_properties()
        writer.wait_for_more(20)
        controller.start()

        def has_begun(at_least: int = 1) -> bool:
            parts = controller.metadata_dir.glob("*.part")
            return any(path.stat().st_size >= at_least for path in parts)

        wait_until(has_begun, "it downloads", poll_s=0.001)
        compacting.controllers[leader].kill()
        assert not snapshots(controller.metadata_dir), "it was not done yet"
        compacting.start_controllers(leader)
        wait_until(
            lambda: has_begun(2000) or snapshots(controller.metadata_dir), "it continues", poll_s=0.001
        )
        controller.kill()
        del controller.properties["controller.quorum.fetch.snapshot.max.bytes"]
        controller.write_properties()
        controller.start()
        wait_until(lambda: snapshots(controller.metadata_dir), f"{controller!r} has a snapshot")


def test_a_damaged_checkpoint_is_refused_and_replaced_by_the_leaders(
    compacting: FaultyQuorum,
) -> None:
    with surviving(compacting, "rotten") as writer:
        leader = compacting.wait_for_leader()
        controller = compacting.controllers[compacting.others(leader)[0]]
        for each in (leader, controller.node_id):
            wait_for_compaction(compacting.controllers[each].metadata_dir)
        controller.kill()
        newest = controller.metadata_dir / checkpoint_name(snapshots(controller.metadata_dir)[-1])
        rotten = bytearray(newest.read_bytes())
        rotten[len(rotten) // 2] ^= 0x10
        newest.chmod(0o600)
        newest.write_bytes(rotten)
        for older in snapshots(controller.metadata_dir)[:-1]:
            (controller.metadata_dir / checkpoint_name(older)).unlink()
        writer.wait_for_more(20)
        refused = subprocess.run(
            controller.command(), capture_output=True, text=True, timeout=60, check=False
        )
        assert refused.returncode == 3
        for part in (str(newest), "byte ", "offset ", "move it aside", "from the leader"):
            assert part in refused.stderr, refused.stderr
        newest.rename(newest.with_suffix(".rotten"))
        controller.start()
        wait_until(lambda: snapshots(controller.metadata_dir), f"{controller!r} has a snapshot")
        compacting.wait_for_voters(*VOTERS)
        newest.with_suffix(".rotten").unlink()
