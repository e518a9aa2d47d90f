"""Three replicas on stock and kraftd brokers, each on a host of its own whose packets are late or lost.

`make replication` plays it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from testkit.node import Kind
from testkit.process import wait_until
from tests.faults.namespaces import Hosts, NotPermitted
from tests.kafka.replication.mixed import PARTITIONS, TOPIC, MixedCluster, Reader, Writer
from tests.kafka.replication.test_three_replicas import CLUSTERS, KINDS, check_log

pytestmark = [pytest.mark.kafka, pytest.mark.thorough]

IDS = (1, 2, 3)
FAULT_S = 5.0  # longer than a session, and than replica.lag.time.max.ms
LOST_SHARE = 0.1


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    try:
        made = Hosts(IDS)
    except NotPermitted as error:
        pytest.skip(f"not run: {error}")
    yield made
    made.close()


def slow(hosts: Hosts, broker_id: int) -> None:
    hosts.slow(broker_id)


def lose_some(hosts: Hosts, broker_id: int) -> None:
    hosts.lose(broker_id, LOST_SHARE)


def lose_what_it_sends(hosts: Hosts, broker_id: int) -> None:
    hosts.cut(*[(broker_id, one) for one in IDS if one != broker_id])


def lose_what_it_hears(hosts: Hosts, broker_id: int) -> None:
    hosts.cut(*[(one, broker_id) for one in IDS if one != broker_id])


def pull(hosts: Hosts, broker_id: int) -> None:
    hosts.pull(broker_id)


def reset(hosts: Hosts, broker_id: int) -> None:
    assert hosts.reset(broker_id)


Fault = Callable[[Hosts, int], None]
FAULTS: tuple[Fault, ...] = (slow, lose_some, lose_what_it_sends, lose_what_it_hears, pull, reset)


@pytest.mark.parametrize(("kinds", "controller"), CLUSTERS, ids=str)
def test_nothing_is_lost_or_doubled_while_hosts_lose_packets(
    tmp_path: Path, hosts: Hosts, kinds: str, controller: Kind
) -> None:
    with MixedCluster(tmp_path, KINDS[kinds], controller, hosts=hosts) as cluster:
        placed = [[1, 2, 3], [2, 3, 1]]
        topic = NewTopic(TOPIC, PARTITIONS, replica_assignment=placed, config={"min.insync.replicas": "2"})
        cluster.admin.create_topics([topic])[TOPIC].result(30)
        cluster.wait_until_in_sync()
        writer, reader = Writer(cluster.bootstrap, 0.005), Reader(cluster.bootstrap, "g")
        try:
            writer.wait_for_more()
            for number, fault in enumerate(FAULTS):
                broker_id = cluster.leaders()[0] if number % 2 else cluster.ids[number // 2]
                fault(hosts, broker_id)
                time.sleep(FAULT_S)
                hosts.heal()
                cluster.wait_until_in_sync()
                writer.wait_for_more()
        finally:
            hosts.heal()
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
        check_log(cluster, writer)
