"""Three replicas on stock and kraftd brokers, under either controller, while brokers die, freeze and roll.

The gate plays one cluster once. `make replication` plays all of them, for MINUTES each.
"""

from __future__ import annotations

import os
import time
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from kraftd.wire.batch import iter_batches, records
from testkit.node import Kind
from testkit.process import wait_until
from tests.kafka.replication.mixed import PARTITIONS, TOPIC, MixedCluster, Reader, Writer, is_doubled

pytestmark = pytest.mark.kafka

KINDS: dict[str, dict[int, Kind]] = {
    "kraftd-stock-kraftd": {1: "kraftd", 2: "apache", 3: "kraftd"},
    "stock-kraftd-stock": {1: "apache", 2: "kraftd", 3: "apache"},
    "kraftd-alone": {1: "kraftd", 2: "kraftd", 3: "kraftd"},
}
MINUTES = float(os.environ.get("MINUTES", "0"))
FREEZE_S = 4.0  # longer than a session, and than replica.lag.time.max.ms
CLUSTERS = [(kinds, controller) for kinds in KINDS for controller in ("kraftd", "apache")]


def kill(cluster: MixedCluster, broker_id: int) -> None:
    node = cluster.broker(broker_id)
    node.kill()
    wait_until(lambda: broker_id not in cluster.leaders(), f"another than {broker_id} leads", 60)
    node.start()


def freeze(cluster: MixedCluster, broker_id: int) -> None:
    cluster.broker(broker_id).freeze()
    time.sleep(FREEZE_S)
    cluster.broker(broker_id).thaw()


def roll(cluster: MixedCluster, broker_id: int) -> None:
    node = cluster.broker(broker_id)
    node.stop()
    node.start()


BLOWS = (kill, freeze, roll)


@pytest.mark.parametrize(
    ("kinds", "controller"), CLUSTERS if MINUTES else [("kraftd-stock-kraftd", "kraftd")], ids=str
)
def test_nothing_is_lost_or_doubled_while_brokers_die_freeze_and_roll(
    tmp_path: Path, kinds: str, controller: Kind
) -> None:
    with MixedCluster(tmp_path, KINDS[kinds], controller) as cluster:
        first, second, third = cluster.ids
        topic = NewTopic(
            TOPIC,
            PARTITIONS,
            replica_assignment=[[first, second, third], [second, third, first]],
            config={"min.insync.replicas": "2"},
        )
        cluster.admin.create_topics([topic])[TOPIC].result(30)
        cluster.wait_until_in_sync()
        writer, readers = Writer(cluster.bootstrap), [Reader(cluster.bootstrap, "g") for _ in range(2)]
        until_s = time.monotonic() + MINUTES * 60
        try:
            writer.wait_for_more()
            for number in count():
                broker_id = cluster.ids[number % 3]
                BLOWS[(number + number // 3) % 3](cluster, broker_id)
                cluster.wait_until_in_sync()
                writer.wait_for_more()
                if number >= 2 and time.monotonic() > until_s:
                    break
        finally:
            writer.stop()
            wait_until(
                lambda: all(
                    acknowledged <= readers[0].read[n] | readers[1].read[n]
                    for n, acknowledged in enumerate(writer.acknowledged)
                ),
                "the group has read all",
                60,
            )
            for reader in readers:
                reader.stop()
        for name in (TOPIC, "__consumer_offsets"):
            wait_until(lambda name=name: cluster.logs_are_equal(name), f"logs of {name} are equal", 20)  # type: ignore[misc]
        check_log(cluster, writer)


def check_log(cluster: MixedCluster, writer: Writer, *expected: str) -> None:
    """Every acknowledged record is there, and none twice. No kraftd broker logged another error than the
    expected ones.
    """
    for partition in range(PARTITIONS):
        log = cluster.log(cluster.ids[0], partition)
        values = [bytes(one.value or b"") for batch in iter_batches(log) for one in records(batch)]
        assert writer.acknowledged[partition] <= set(values)
        assert not is_doubled(log), "a record is there twice"
    for node in cluster.ours.values():
        errors = [one for one in node.log_text().splitlines() if '"level":"error"' in one]
        assert not [one for one in errors if not any(text in one for text in expected)]
