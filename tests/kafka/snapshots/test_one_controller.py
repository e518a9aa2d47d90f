"""One controller that keeps little of its log: late brokers, Kafka's tools and controller, restarts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from testkit.client import Client
from testkit.cluster import SESSION_TIMEOUT_MS, Cluster
from testkit.java import tools
from testkit.node import Kind
from testkit.process import HOST
from testkit.quorum import DESCRIBE
from tests.kafka.shell import metadata_shell
from tests.kafka.snapshots.compacting import (
    COMPACTING,
    fill,
    first_segment,
    snapshots,
    wait_for_compaction,
)

pytestmark = pytest.mark.kafka
TOPICS = 25


@pytest.fixture(scope="module")
def compacted(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A dynamic quorum of one, broker 1, topics, and no log record of their creation."""
    cluster = Cluster(
        tmp_path_factory.mktemp("compacted"),
        kind,
        controller_properties={"broker.session.timeout.ms": SESSION_TIMEOUT_MS, **COMPACTING},
        broker_properties={"broker.heartbeat.interval.ms": 500},
    )
    with cluster:
        cluster.start_controller()
        cluster.start_brokers(1)
        fill(cluster, "early", TOPICS)
        wait_for_compaction(cluster.controller.metadata_dir)
        yield cluster


def topics(cluster: Cluster) -> set[str]:
    return {name for name in cluster.metadata().topics if not name.startswith("__")}


EARLY = {f"early-{number}" for number in range(TOPICS)}


def test_a_stock_broker_that_starts_late_loads_a_snapshot(compacted: Cluster) -> None:
    [late] = compacted.start_brokers(2)
    assert {topic.name for topic in compacted.metadata_by(2).topics} >= EARLY
    directory = late.data / "__cluster_metadata-0"
    assert snapshots(directory), "it has fetched a snapshot"
    wait_for_compaction(directory)


def test_a_stock_broker_that_was_away_for_long_loads_a_snapshot(compacted: Cluster) -> None:
    [away] = compacted.start_brokers(3)
    away.stop()
    controller = compacted.controller
    with Client(HOST, controller.port) as client:
        end: int = client.call(DESCRIBE, 2).topics[0].partitions[0].high_watermark
    compacted.wait_until(
        lambda: first_segment(controller.metadata_dir) > end, "the log begins after the broker's end", 120
    )
    fill(compacted, "meanwhile", 1)
    away.start()
    away.wait_ready()
    assert {topic.name for topic in compacted.metadata_by(3).topics} >= {*EARLY, "meanwhile-0"}
    assert snapshots(away.data / "__cluster_metadata-0")[-1].offset > end
    away.stop()


def test_kafkas_tools_read_the_newest_checkpoint(compacted: Cluster, tmp_path: Path) -> None:
    directory = compacted.controller.metadata_dir
    found = sorted(directory.glob("*.checkpoint"))[-1]
    newest = tmp_path / found.name
    newest.write_bytes(found.read_bytes())  # retention may delete this one while the tools read
    out = tools().run("dump-log", "--cluster-metadata-decoder", "--files", newest).check().out
    assert "isvalid: false" not in out
    for word in ("SnapshotHeader", "KRaftVersion", "KRaftVoters", "SnapshotFooter", "PARTITION_RECORD"):
        assert word in out, word
    metadata_shell(newest, tmp_path, "ls", "/image/topics/byName", expected=lambda words: set(words) >= EARLY)


def test_the_controller_restarts_from_checkpoint_and_log(compacted: Cluster) -> None:
    before = snapshots(compacted.controller.metadata_dir)[-1]
    compacted.controller.kill()
    compacted.start_controller()
    fill(compacted, "middle", 5)
    assert topics(compacted) >= EARLY
    compacted.wait_until(
        lambda: snapshots(compacted.controller.metadata_dir)[-1] > before, "a further snapshot", 120
    )


@pytest.mark.parametrize("other", ["apache", "kraftd"])
def test_the_other_kind_of_controller_continues_from_the_checkpoint(compacted: Cluster, other: Kind) -> None:
    """First Kafka's runs on kraftd's files, then kraftd on the files that Kafka's made of them."""
    controller = compacted.controller
    before = snapshots(controller.metadata_dir)[-1]
    assert controller.stop() == (143 if controller.kind == "apache" else 0)
    controller.kind = other
    controller.start()
    controller.wait_ready()
    compacted.wait_for_live_brokers(1, 2, timeout_s=90)
    fill(compacted, f"by-{other}", 15)
    compacted.wait_until(lambda: snapshots(controller.metadata_dir)[-1] > before, "its own snapshot", 120)
    assert topics(compacted) >= EARLY
