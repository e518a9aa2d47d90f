"""A controller's directory moves between Apache Kafka and kraftd while its broker stays up."""

from __future__ import annotations

from pathlib import Path

import pytest

from testkit.cluster import Cluster
from testkit.node import Kind
from tests.kafka.one_broker.test_controller_failures import round_trip

pytestmark = pytest.mark.kafka


def quorum(cluster: Cluster) -> tuple[int, int]:
    """The quorum's epoch and high watermark."""
    status = cluster.quorum_status()
    return int(status["LeaderEpoch"]), int(status["HighWatermark"])


@pytest.mark.parametrize(
    ("static", "ending"),
    [
        pytest.param(True, "killed", id="static-killed"),
        pytest.param(False, "stopped", marks=pytest.mark.thorough, id="dynamic-stopped"),
        pytest.param(True, "stopped", marks=pytest.mark.thorough, id="static-stopped"),
        pytest.param(False, "killed", marks=pytest.mark.thorough, id="dynamic-killed"),
    ],
)
def test_a_directory_moves_from_kafka_to_kraftd_and_back_with_its_broker_up(
    kind: Kind, static: bool, ending: str, tmp_path: Path
) -> None:
    with Cluster(tmp_path, "apache", static=static) as cluster:
        cluster.start_controller()
        (broker,) = cluster.start_brokers(1)
        reigns: list[Kind] = ["apache", kind, "apache", kind]
        marks = [(0, 0)]
        for number, reign in enumerate(reigns):
            if number:
                if ending == "stopped":
                    cluster.controller.stop()
                else:
                    cluster.controller.kill()
                cluster.controller.kind = reign
                cluster.start_controller()
            cluster.create_topic(f"reign-{number}", partitions=2, retention_ms=1000000 + number)
            round_trip(cluster, f"reign-{number}", b"value")
            epoch, high_watermark = quorum(cluster)
            assert epoch > marks[-1][0], "every start begins another epoch"
            assert high_watermark > marks[-1][1]
            marks.append((epoch, high_watermark))
        for number in range(len(reigns)):
            described = cluster.tool("topics", "--describe", "--topic", f"reign-{number}").out
            assert "PartitionCount: 2" in described
            assert f"retention.ms={1000000 + number}" in described
        assert broker.alive
        log = broker.log_text()
        assert log.count("Successfully registered broker") == 1, (
            "one registration survived every change of kind"
        )
        assert "ERROR" not in log.replace("LogLevel.ERROR", ""), [
            line for line in log.splitlines() if "ERROR" in line
        ]
