"""Spark's own Kafka connector reads the metadata log from a node's client listener."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
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
from kraftd.spark.decoding.fields import control_types
from kraftd.spark.live import read_live
from kraftd.wire.error_code import ErrorCode
from testkit.client import Client
from testkit.cluster import Cluster, random_uuid
from testkit.node import CombinedNode
from testkit.process import HOST, free_port, wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

OF_THE_DISK = {"epoch", "batch_offset", "damage"}  # columns that a consumer does not get
OF_THE_LAKE = {"cluster_id", "first_offset"}  # columns that name the directories of a lake
QUIET = {"metadata.max.idle.interval.ms": 0}


class Node:
    """A controller with a client listener, and beside it a stock broker."""

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
        cluster.start_brokers(1)
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


@pytest.fixture
def run(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`kraftd-spark ingest` in the suite's session."""
    monkeypatch.setattr(ingest, "start_session", lambda *_, **__: spark)
    monkeypatch.setattr(type(spark), "stop", lambda _: None)

    def run(bootstrap: str, lake: Path, *options: str) -> None:
        words = ["--bootstrap-server", bootstrap, "--output", str(lake), *options]
        done = CliRunner().invoke(ingest.ingest_command, words)
        assert done.exit_code == 0, done.output

    return run


def stored(spark: SparkSession, lake: Path) -> list[dict[str, Any]]:
    return without_batches(spark.read.parquet(str(lake / "records")))


def test_ingest_continues_where_it_ended_without_duplicates(
    spark: SparkSession, node: Node, run: Callable[..., None], tmp_path: Path
) -> None:
    """The command ends its stream at the end of the log (availableNow)."""
    run(node.bootstrap, tmp_path)
    before = stored(spark, tmp_path)
    assert before == on_disk(spark, node)
    assert {row["type"] for row in before} > {"RegisterBrokerRecord"}
    node.change(15)
    run(node.bootstrap, tmp_path)
    after = stored(spark, tmp_path)
    assert after == on_disk(spark, node)
    assert len(after) == len(before) + 15
    assert [path.name for path in (tmp_path / "records").iterdir()] == [f"cluster_id={node.cluster_id}"]


def test_follow_keeps_one_directory_while_few_records_come(
    spark: SparkSession, node: Node, run: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "FOLLOW_INTERVAL", "100 milliseconds")
    changes = 4

    def trickle() -> None:
        wait_until(lambda: spark.streams.active, "the stream has begun")
        (query,) = spark.streams.active
        try:
            for number in range(1 + changes):
                wait_until(lambda number=number: committed(tmp_path) > number, "the batch is stored")
                if number < changes:
                    node.change(1)
        finally:
            query.stop()

    thread = Thread(target=trickle)
    thread.start()
    run(node.bootstrap, tmp_path, "--follow")
    thread.join()
    assert committed(tmp_path) == 1 + changes
    assert len(list((tmp_path / "records").glob("cluster_id=*/[!.]*"))) == 1
    assert stored(spark, tmp_path) == on_disk(spark, node)


def committed(lake: Path) -> int:
    """How many batches of a stream are stored."""
    return len(list(lake.glob(".checkpoint/commits/[0-9]*")))


def test_a_whole_kafka_in_one_process_is_read_at_both_listeners(
    spark: SparkSession, run: Callable[..., None], tmp_path: Path
) -> None:
    """As `make run` starts it: clients, its own broker among them, and a listener for the metadata log."""
    log = f"{HOST}:{free_port()}"
    names = {
        "kraftd.client.listener.names": "LOG",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,LOG:PLAINTEXT",
    }
    whole = CombinedNode("kraftd", tmp_path / "node", {**QUIET, **names})
    whole.properties["listeners"] = f"{whole.properties['listeners']},LOG://{log}"
    whole.write_properties()
    whole.format(random_uuid(), "--standalone")
    whole.start()
    try:
        whole.wait_ready()
        run(log, tmp_path / "lake")
        rows = stored(spark, tmp_path / "lake")
        assert "RegisterBrokerRecord" in {row["type"] for row in rows}
        assert without_batches(read_live(spark, whole.bootstrap)) == rows
    finally:
        whole.stop()
