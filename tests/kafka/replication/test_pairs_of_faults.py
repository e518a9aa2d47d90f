"""Three replicas on stock and kraftd brokers: each fault of a link while a broker is killed, frozen, rolled.

The broker is in turn the one with the bad links and another. `make replication` plays it.
"""

from __future__ import annotations

import time
from itertools import product
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from testkit.node import Kind
from testkit.process import wait_until
from tests.faults.proxy import Proxy
from tests.kafka.replication.mixed import PARTITIONS, TOPIC, MixedCluster, Reader, Writer
from tests.kafka.replication.test_links import FAULT_S, FAULTS, links
from tests.kafka.replication.test_three_replicas import BLOWS, CLUSTERS, KINDS, check_log

pytestmark = [pytest.mark.kafka, pytest.mark.thorough]
__all__ = ["links"]


@pytest.mark.parametrize(("kinds", "controller"), CLUSTERS, ids=str)
def test_nothing_is_lost_or_doubled_by_two_faults_at_once(
    tmp_path: Path,
    links: Proxy,
    kinds: str,
    controller: Kind,
) -> None:
    with MixedCluster(tmp_path, KINDS[kinds], controller, links=links) as made:
        cluster: MixedCluster = made  # type: ignore[assignment]
        first, second, third = cluster.ids
        placed = [[first, second, third], [second, third, first]]
        topic = NewTopic(TOPIC, PARTITIONS, replica_assignment=placed, config={"min.insync.replicas": "2"})
        cluster.admin.create_topics([topic])[TOPIC].result(30)
        cluster.wait_until_in_sync()
        writer, reader = Writer(cluster.bootstrap, 0.005), Reader(cluster.bootstrap, "g")
        try:
            writer.wait_for_more()
            for number, (fault, blow) in enumerate(product(FAULTS, BLOWS)):
                broker_id, struck = cluster.ids[number % 3], cluster.ids[(number + number // 3) % 3]
                others = [one for one in cluster.ids if one != broker_id]
                began_s = time.monotonic()
                fault(links, [(broker_id, one) for one in others], [(one, broker_id) for one in others])
                blow(cluster, struck)
                time.sleep(max(0.0, FAULT_S - (time.monotonic() - began_s)))
                links.heal()
                cluster.wait_until_in_sync()
                writer.wait_for_more()
        finally:
            links.heal()
            writer.stop()
        try:
            wait_until(
                lambda: all(writer.acknowledged[n] <= reader.read[n] for n in range(PARTITIONS)),
                "the group has read all",
                60,
            )
        finally:
            reader.stop()
        for name in (TOPIC, "__consumer_offsets"):
            wait_until(lambda name=name: cluster.logs_are_equal(name), f"logs of {name} are equal", 20)  # type: ignore[misc]
        check_log(cluster, writer, expected="fetched records are not valid")
