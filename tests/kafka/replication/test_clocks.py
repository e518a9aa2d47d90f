"""Three replicas on stock and kraftd brokers whose clocks are minutes apart, and are set meanwhile.

Brokers are killed, frozen and rolled. `make replication` plays it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from kraftd.wire.batch import iter_batches
from testkit.node import Kind
from testkit.process import wait_until
from tests.faults.clocks import SteppedClock, lacking
from tests.kafka.replication.mixed import PARTITIONS, TOPIC, MixedCluster, Reader, Writer
from tests.kafka.replication.test_three_replicas import BLOWS, CLUSTERS, KINDS, check_log

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.thorough,
    pytest.mark.skipif(lacking() is not None, reason=str(lacking())),
]

MINUTE_MS = 60_000
AHEAD_MS = (-7 * MINUTE_MS, 0, 5 * MINUTE_MS)  # of the brokers in turn
STAMPED = "stamped"  # its records have the time of the leader


@pytest.mark.parametrize(("kinds", "controller"), CLUSTERS, ids=str)
def test_nothing_is_lost_or_doubled_while_clocks_are_minutes_apart(
    tmp_path: Path, kinds: str, controller: Kind
) -> None:
    clocks = {one: SteppedClock(tmp_path / f"clock-{one}") for one in KINDS[kinds]}
    environments = {one: clock.environment for one, clock in clocks.items()}
    for clock, ahead_ms in zip(clocks.values(), AHEAD_MS, strict=True):
        clock.set(ahead_ms)
    with MixedCluster(tmp_path, KINDS[kinds], controller, environments=environments) as cluster:
        first, second, third = cluster.ids
        placed = [[first, second, third], [third, second, first]]
        config = {"min.insync.replicas": "2"}
        by_append = config | {"message.timestamp.type": "LogAppendTime"}
        topics = [
            NewTopic(TOPIC, PARTITIONS, replica_assignment=placed, config=config),
            NewTopic(STAMPED, PARTITIONS, replica_assignment=placed, config=by_append),
        ]
        for created in cluster.admin.create_topics(topics).values():
            created.result(30)
        cluster.wait_until_in_sync()
        assert minutes_between_the_leaders(cluster) == 12, "each process has its own clock"
        writer, reader = Writer(cluster.bootstrap, 0.005), Reader(cluster.bootstrap, "g")
        try:
            writer.wait_for_more()
            for number, blow in enumerate(BLOWS):
                for turn, broker_id in enumerate(cluster.ids):
                    clocks[broker_id].set(AHEAD_MS[(turn + number + 1) % 3])
                writer.wait_for_more()
                blow(cluster, cluster.ids[number])
                cluster.wait_until_in_sync()
                writer.wait_for_more()
        finally:
            writer.stop()
        try:
            wait_until(
                lambda: all(writer.acknowledged[n] <= reader.read[n] for n in range(PARTITIONS)),
                "the group has read all",
                60,
            )
        finally:
            reader.stop()
        for name in (TOPIC, STAMPED, "__consumer_offsets"):
            wait_until(lambda name=name: cluster.logs_are_equal(name), f"logs of {name} are equal", 20)  # type: ignore[misc]
        check_log(cluster, writer)


def minutes_between_the_leaders(cluster: MixedCluster) -> int:
    """Write a record to each partition, and compare the times that their leaders gave them."""
    writer = Writer(cluster.bootstrap, 0.05, topic=STAMPED)
    try:
        writer.wait_for_more()
    finally:
        writer.stop()
    times = []
    for partition, leader in ((0, cluster.ids[0]), (1, cluster.ids[2])):
        batches = list(iter_batches(cluster.log(leader, partition, STAMPED)))
        times.append(batches[0].header.max_timestamp_ms)
    return round((times[1] - times[0]) / MINUTE_MS)
