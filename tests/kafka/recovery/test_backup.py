"""A backup of a running quorum of either kind, restored: stock brokers attach to its controller."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from testkit.cluster import SESSION_TIMEOUT_MS, Cluster, random_uuid
from testkit.node import Controller, Kind
from tests.kafka.recovery.disasters import kraftd, read, start_without_metadata, write

pytestmark = [pytest.mark.kafka, pytest.mark.thorough]

QUICK = {"broker.session.timeout.ms": SESSION_TIMEOUT_MS}
HEARTBEATS = {"broker.heartbeat.interval.ms": 500}


def high_watermark(controller: Controller) -> int:
    described = kraftd("quorum", "describe", "--bootstrap", controller.address, "--json")
    return int(json.loads(described)["HighWatermark"])


@pytest.mark.parametrize("source", ["kraftd", "apache"])
def test_a_broker_attaches_to_a_restored_controller(source: Kind, tmp_path: Path) -> None:
    with Cluster(tmp_path, source, controller_properties=QUICK, broker_properties=HEARTBEATS) as cluster:
        controller = cluster.start_controller()
        (broker,) = cluster.start_brokers(1)
        cluster.create_topic("early", retention_ms=123_456)
        write(cluster, "early", b"one", b"two")
        early_end = high_watermark(controller)
        cluster.create_topic("late")
        backup = tmp_path / "backup"
        output = kraftd("backup", "--bootstrap", controller.address, "--output", backup)
        assert f"Backed up cluster {cluster.cluster_id}" in output
        broker.kill()
        controller.kill()
        shutil.rmtree(controller.data)
        restored = ("restore", "--from", backup, "--config", controller.properties_file)
        assert "as the only voter" in kraftd(*restored)
        controller.kind = "kraftd"
        cluster.start_controller()
        start_without_metadata(broker)
        cluster.wait_for_live_brokers(1)
        assert {"early", "late"} <= set(cluster.metadata().topics)
        assert read(cluster, "early", 2) == [b"one", b"two"]
        assert "retention.ms=123456" in cluster.tool("topics", "--describe", "--topic", "early").out
        cluster.create_topic("new")
        write(cluster, "new", b"three")
    if source == "kraftd":
        serves_a_copy_as_of(early_end - 1, backup, tmp_path / "copy")


def serves_a_copy_as_of(offset: int, backup: Path, home: Path) -> None:
    """Under a new cluster id, beside the original: another broker sees the metadata as of that offset."""
    with Cluster(home, "kraftd", controller_properties=QUICK, broker_properties=HEARTBEATS) as copy:
        copy.cluster_id = random_uuid()
        config = ("--config", copy.controller.properties_file)
        as_of = ("--as-of", offset, "--cluster-id", copy.cluster_id)
        kraftd("restore", "--from", backup, *config, *as_of)
        copy.start_controller()
        copy.start_brokers(2)
        assert set(copy.metadata().topics) == {"early"}
        assert copy.quorum_status()["ClusterId"] == copy.cluster_id
