"""A stock broker and a kraftd broker replicate each other's partitions, under kraftd's controller."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from kraftd.wire.batch import iter_batches, records
from testkit.process import wait_until
from tests.kafka.replication.mixed import MixedCluster, Writer

pytestmark = [pytest.mark.kafka, pytest.mark.thorough]

STOCK, OURS = 1, 2


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MixedCluster]:
    # On a busy machine one of the two may fetch nothing for seconds; the other, in the ISR alone, is killed.
    settings = {"replica.lag.time.max.ms": 30_000}
    cluster = MixedCluster(tmp_path, {STOCK: "apache", OURS: "kraftd"}, settings=settings)
    with cluster:
        yield cluster


def test_each_kind_of_broker_is_killed_and_no_acknowledged_record_is_lost(cluster: MixedCluster) -> None:
    topic = NewTopic("t", 2, replica_assignment=[[STOCK, OURS], [OURS, STOCK]])
    cluster.admin.create_topics([topic])["t"].result(30)
    cluster.wait_until_in_sync()
    writer = Writer(cluster.bootstrap)
    try:
        writer.wait_for_more()
        for killed, other in ((OURS, STOCK), (STOCK, OURS)):
            node = cluster.broker(killed)
            node.kill()
            wait_until(lambda other=other: cluster.leaders() == [other] * 2, f"{other} leads", 60)  # type: ignore[misc]
            writer.wait_for_more()
            node.start()
            cluster.wait_until_in_sync()
            writer.wait_for_more()
    finally:
        writer.stop()
    wait_until(cluster.logs_are_equal, "the logs are equal", 20)
    assert cluster.ours[OURS].stop() == 0
    cluster.brokers[STOCK].stop()
    for partition in (0, 1):
        log = cluster.log(OURS, partition)
        assert log == cluster.log(STOCK, partition)
        values = [one.value for batch in iter_batches(log) for one in records(batch)]
        assert writer.acknowledged[partition] <= {bytes(one or b"") for one in values}
        assert len(values) == len(set(map(bytes, values))), "a record is there twice"  # type: ignore[arg-type]
        ours = cluster.epochs(OURS, partition, len(values))
        assert ours == cluster.epochs(STOCK, partition, len(values)) and len(ours) > 1
    assert '"level":"error"' not in cluster.ours[OURS].log_text()
