"""Kafka's tools on a stopped controller's files; directories formatted by one kind and run by the other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testkit.cluster import CONTROLLER_ID, Cluster
from testkit.java import tools
from testkit.node import Kind
from testkit.process import wait_until
from tests.kafka.shell import metadata_shell

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module", params=["dynamic", "static"])
def stopped(request: pytest.FixtureRequest, kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """A cluster whose controller registered a broker and made a topic, was restarted, and is now stopped."""
    cluster = Cluster(tmp_path_factory.mktemp("stopped"), kind, static=request.param == "static")
    request.addfinalizer(cluster.close)
    cluster.start_controller()
    cluster.start_brokers(1)
    cluster.create_topic("kept", partitions=2, retention_ms=1234567)
    cluster.controller.stop()
    cluster.start_controller()
    cluster.create_topic("later")
    cluster.controller.stop()
    return cluster


def segments(cluster: Cluster) -> list[Path]:
    return sorted(cluster.controller.metadata_dir.glob("*.log"))


def test_dump_log_reads_every_record_of_the_metadata_log(stopped: Cluster) -> None:
    files = ",".join(map(str, segments(stopped)))
    out = tools().run("dump-log", "--cluster-metadata-decoder", "--files", files).check().out
    records = [json.loads(line.partition("payload: ")[2]) for line in out.splitlines() if "payload: " in line]
    of_type: dict[str, list[dict]] = {}
    for record in records:
        of_type.setdefault(record["type"], []).append(record["data"])

    assert [topic["name"] for topic in of_type["TOPIC_RECORD"]] == ["kept", "later"]
    assert len(of_type["PARTITION_RECORD"]) == 3
    assert {"name": "metadata.version", "featureLevel": 30} in of_type["FEATURE_LEVEL_RECORD"]
    assert [broker["brokerId"] for broker in of_type["REGISTER_BROKER_RECORD"]] == [1]
    assert ("retention.ms", "1234567") in [(c["name"], c["value"]) for c in of_type["CONFIG_RECORD"]]
    assert "NO_OP_RECORD" in of_type
    assert out.count("LeaderChange: ") == 2, "one a start"
    assert ("KRaftVoters" in out) == (not stopped.static)
    assert "isvalid: false" not in out


def test_the_offset_and_time_indexes_pass_kafkas_own_check(stopped: Cluster) -> None:
    indexes = ",".join(str(path) for path in sorted(stopped.controller.metadata_dir.glob("*index")))
    run = tools().run("dump-log", "--index-sanity-check", "--files", indexes).check()
    assert "Corrupt" not in run.out + run.err


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/image/topics/byName", ["kept", "later"]),
        ("/image/topics/byName/kept", ["0", "1", "id", "name"]),
        ("/image/cluster/brokers", ["1"]),
    ],
)
def test_metadata_shell_browses_the_metadata_log(
    stopped: Cluster, tmp_path: Path, path: str, expected: list[str]
) -> None:
    (segment,) = segments(stopped)
    metadata_shell(segment, tmp_path, "ls", path, expected=lambda words: words == expected)


def test_dump_log_reads_the_bootstrap_checkpoint(stopped: Cluster) -> None:
    checkpoint = stopped.controller.data / "bootstrap.checkpoint"
    out = tools().run("dump-log", "--cluster-metadata-decoder", "--files", checkpoint).check().out
    assert "SnapshotHeader" in out and "SnapshotFooter" in out
    assert '{"name":"metadata.version","featureLevel":30}' in out


def test_storage_tool_reports_no_problem_with_the_directory(stopped: Cluster) -> None:
    out = tools().run("storage", "info", "-c", stopped.controller.properties_file).check().out
    assert f"cluster.id={stopped.cluster_id}" in out
    assert f"node.id={CONTROLLER_ID}" in out
    assert "Found problem" not in out


def is_led(cluster: Cluster) -> bool:
    """Return whether the controller leads. Kafka's refuses to say until it has replayed metadata.version."""
    try:
        return cluster.quorum_status()["LeaderId"] == str(CONTROLLER_ID)
    except AssertionError as refused:
        assert "not supported with the current MetadataVersion" in str(refused)
        return False


@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
@pytest.mark.parametrize("formatter", ["apache", "kraftd"])
def test_a_directory_formatted_by_either_kind_starts_under_the_other(
    kind: Kind, formatter: Kind, static: bool, tmp_path: Path
) -> None:
    if kind == "apache" and formatter == "kraftd":
        pytest.skip("kraftd's own formatting is proven with kraftd")
    runner: Kind = "apache" if formatter == "kraftd" else kind
    with Cluster(tmp_path, formatter, static=static) as cluster:
        cluster.controller.format(cluster.cluster_id, *([] if static else ["--standalone"]))
        cluster.controller.kind = runner
        cluster.start_controller()
        wait_until(lambda: is_led(cluster), "the controller has replayed its first records", 60)
        features = cluster.controller_tool("features", "describe").out
        assert "FinalizedVersionLevel: 4.3-IV0" in features
