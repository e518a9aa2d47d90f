"""Spark's own Kafka connector reads the metadata log from a node's client listener."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from kraftd.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.metadata.state import BROKER_RESOURCE
from kraftd.spark.commands import ingest
from kraftd.spark.fields import control_types
from kraftd.spark.live import read_live
from kraftd.wire.error_code import ErrorCode
from testkit.client import Client
from testkit.cluster import Cluster
from testkit.process import HOST, free_port, wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark]

OF_THE_DISK = {"epoch", "batch_offset", "damage"}  # columns that a consumer does not get
OF_THE_LAKE = {"cluster_id", "first_offset"}  # columns that name the directories of a lake
QUIET = {"metadata.max.idle.interval.ms": 0}


class Node:
    """A controller with a client listener."""

    def __init__(self, cluster: Cluster) -> None:
        self.controller, self.cluster_id = cluster.controller, cluster.cluster_id
        self.bootstrap = f"{HOST}:{free_port()}"
        self.controller.properties |= {
            "kraftd.client.listener.names": "CLIENT",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,CLIENT:PLAINTEXT",
            "listeners": f"CONTROLLER://{self.controller.address},CLIENT://{self.bootstrap}",
        }
        self.controller.write_properties()
        self.value = 1_000_000

    def change(self, count: int) -> None:
        """Commit this many records through the client listener."""
        host, _, port = self.bootstrap.partition(":")
        with Client(host, int(port)) as client:
            for _ in range(count):
                self.value += 1
                change = AlterableConfig("message.max.bytes", 0, str(self.value))
                request = AlterConfigsResource(BROKER_RESOURCE, "", [change])
                wait_until(lambda request=request: _is_taken(client, request), "the change is committed")


def _is_taken(client: Client, change: AlterConfigsResource) -> bool:
    """Return whether a change is committed; right after the start there may be no active controller."""
    (answer,) = client.call(IncrementalAlterConfigsRequest([change]), version=1).responses
    assert answer.error_code in (ErrorCode.NONE, ErrorCode.NOT_CONTROLLER), answer
    return not answer.error_code


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with Cluster(tmp_path_factory.mktemp("live"), "kraftd", controller_properties=QUIET) as cluster:
        node = Node(cluster)
        cluster.start_controller()
        node.change(20)
        yield node


def on_disk(spark: SparkSession, node: Node) -> list[dict[str, Any]]:
    """The records that `format("kraft")` reads from the directory of the running controller."""
    rows = (
        spark.read.format("kraft")
        .load(str(node.controller.data))
        .where(f"type NOT IN {tuple(control_types())}")
    )
    return without_batches(rows)


def without_batches(rows: DataFrame) -> list[dict[str, Any]]:
    columns = [name for name in rows.columns if name not in OF_THE_DISK | OF_THE_LAKE]
    return [row.asDict(recursive=True) for row in rows.select(*columns).orderBy("offset").collect()]


def test_a_batch_from_the_listener_has_the_rows_of_the_directory(spark: SparkSession, node: Node) -> None:
    seen = without_batches(read_live(spark, node.bootstrap))
    assert seen == on_disk(spark, node)
    assert [row["value"] for row in seen][-20:] == [str(1_000_001 + number) for number in range(20)]


def test_ingest_continues_where_it_ended_without_duplicates(
    spark: SparkSession, node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command ends its stream at the end of the log (availableNow); it runs in the suite's session."""
    monkeypatch.setattr(ingest, "start_session", lambda *_, **__: spark)
    monkeypatch.setattr(type(spark), "stop", lambda _: None)
    lake = tmp_path / "lake"

    def run() -> list[dict[str, Any]]:
        arguments = ["--bootstrap-server", node.bootstrap, "--output", str(lake)]
        done = CliRunner().invoke(ingest.ingest_command, arguments)
        assert done.exit_code == 0, done.output
        return without_batches(spark.read.parquet(str(lake / "records")))

    before = run()
    assert before == on_disk(spark, node)
    node.change(15)
    after = run()
    assert after == on_disk(spark, node)
    assert len(after) == len(before) + 15
    assert [path.name for path in (lake / "records").iterdir()] == [f"cluster_id={node.cluster_id}"]
