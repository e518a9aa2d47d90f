"""A stock broker in clusters that were formatted for older releases: older versions of every record."""

from __future__ import annotations

from pathlib import Path

import pytest

from testkit.cluster import Cluster, status_fields
from testkit.node import Kind
from testkit.process import wait_until
from tests.kafka.one_broker.test_controller_failures import round_trip

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize(
    ("release", "static"),
    [("3.7-IV4", True), pytest.param("3.9-IV0", False, marks=pytest.mark.thorough), ("4.1", False)],
)
def test_a_stock_broker_serves_in_a_cluster_of_an_older_release_and_upgrades_it(
    kind: Kind, release: str, static: bool, tmp_path: Path
) -> None:
    with Cluster(tmp_path, kind, static=static) as cluster:
        flags = [] if static else ["--standalone"]
        cluster.controller.format(cluster.cluster_id, *flags, "--release-version", release)
        cluster.start_controller()
        cluster.start_brokers(1)
        cluster.create_topic("before", partitions=3, retention_ms=123456)
        round_trip(cluster, "before", b"1")
        assert f"FinalizedVersionLevel: {release}" in cluster.tool("features", "describe").out
        cluster.tool("features", "upgrade", "--release-version", "4.3")
        wait_until(
            lambda: "FinalizedVersionLevel: 4.3-IV0" in cluster.tool("features", "describe").out,
            "the broker, which the tool asks, has applied the upgrade",
        )
        cluster.create_topic("after", partitions=3)
        round_trip(cluster, "after", b"2")
        cluster.controller.kill()
        cluster.start_controller()
        assert status_fields(cluster.tool("topics", "--describe", "--topic", "before").out)
        round_trip(cluster, "before", b"3")
