"""Three replicas on stock and kraftd brokers: faults of a link while a broker is killed, frozen, rolled, or
its disk is full.

The broker is in turn the one with the bad links and another. `make replication` plays it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import product
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from testkit.node import Kind
from testkit.process import wait_until
from tests.faults.disks import SmallDisk, lacking
from tests.faults.proxy import Proxy
from tests.kafka.replication.mixed import PARTITIONS, TOPIC, MixedCluster, Reader, Writer
from tests.kafka.replication.test_links import FAULT_S, FAULTS, links
from tests.kafka.replication.test_three_replicas import BLOWS, CLUSTERS, FREEZE_S, KINDS, check_log

pytestmark = [pytest.mark.kafka, pytest.mark.thorough]
__all__ = ["links"]

Blow = Callable[[MixedCluster, int], None]
OF_FULL_DISKS = (
    "the disk is full",
    "a log failed",
    "No space left on device",
    "no room",
    "KAFKA_STORAGE_ERROR",  # the answer of a stock leader whose disk is full
)


@pytest.mark.parametrize(("kinds", "controller"), CLUSTERS, ids=str)
def test_nothing_is_lost_or_doubled_by_two_faults_at_once(
    tmp_path: Path,
    links: Proxy,
    kinds: str,
    controller: Kind,
) -> None:
    with MixedCluster(tmp_path, KINDS[kinds], controller, links=links) as cluster:
        strike_twice(cluster, links, BLOWS)


@pytest.mark.skipif(lacking() is not None, reason=str(lacking()))
@pytest.mark.parametrize(("kinds", "controller"), CLUSTERS, ids=str)
def test_nothing_is_lost_or_doubled_by_a_full_disk_and_a_bad_link(
    tmp_path: Path,
    links: Proxy,
    kinds: str,
    controller: Kind,
) -> None:
    with ExitStack() as stack:
        homes = {
            one: f"{'ours' if kind == 'kraftd' else 'broker'}-{one}" for one, kind in KINDS[kinds].items()
        }
        paths = {one: tmp_path / home / "data" for one, home in homes.items()}
        disks = {one: stack.enter_context(SmallDisk(path, "128m")) for one, path in paths.items()}

        def fill(cluster: MixedCluster, broker_id: int) -> None:
            """The disk is full for a while. A stock broker then ends, for its only directory has failed."""
            with disks[broker_id].full():
                time.sleep(FREEZE_S)

        with MixedCluster(tmp_path, KINDS[kinds], controller, links=links) as cluster:
            strike_twice(cluster, links, (fill,), *OF_FULL_DISKS)


def strike_twice(cluster: MixedCluster, links: Proxy, blows: Sequence[Blow], *expected: str) -> None:
    """Write and read while each fault of a link comes with each blow."""
    first, second, third = cluster.ids
    placed = [[first, second, third], [second, third, first]]
    topic = NewTopic(TOPIC, PARTITIONS, replica_assignment=placed, config={"min.insync.replicas": "2"})
    cluster.admin.create_topics([topic])[TOPIC].result(30)
    cluster.wait_until_in_sync()
    writer, reader = Writer(cluster.bootstrap, 0.005), Reader(cluster.bootstrap, "g")
    try:
        write_through_faults(cluster, links, blows, writer)
        wait_until(
            lambda: all(writer.acknowledged[n] <= reader.read[n] for n in range(PARTITIONS)),
            "the group has read all",
            60,
        )
    finally:
        reader.stop()
    for name in (TOPIC, "__consumer_offsets"):
        wait_until(lambda name=name: cluster.logs_are_equal(name), f"logs of {name} are equal", 20)  # type: ignore[misc]
    check_log(cluster, writer, "fetched records are not valid", *expected)


def write_through_faults(cluster: MixedCluster, links: Proxy, blows: Sequence[Blow], writer: Writer) -> None:
    try:
        writer.wait_for_more()
        for number, (fault, blow) in enumerate(product(FAULTS, blows)):
            broker_id, struck = cluster.ids[number % 3], cluster.ids[(number + number // 3) % 3]
            others = [one for one in cluster.ids if one != broker_id]
            began_s = time.monotonic()
            fault(links, [(broker_id, one) for one in others], [(one, broker_id) for one in others])
            blow(cluster, struck)
            time.sleep(max(0.0, FAULT_S - (time.monotonic() - began_s)))
            links.heal()
            wait_until(lambda: restart_the_dead(cluster) and is_in_sync(cluster), "all are in sync", 60)
            writer.wait_for_more()
            wait_until(lambda: restart_the_dead(cluster) and is_in_sync(cluster), "all are in sync", 60)
    finally:
        links.heal()
        writer.stop()


def restart_the_dead(cluster: MixedCluster) -> bool:
    """Start stock brokers that have ended, as a supervisor does; return whether all were alive. One whose
    disk was full ends, maybe later.
    """
    dead = [node for node in cluster.brokers.values() if not node.alive]
    for node in dead:
        node.start()
    return not dead


def is_in_sync(cluster: MixedCluster) -> bool:
    return cluster.isrs() == [cluster.ids] * PARTITIONS
