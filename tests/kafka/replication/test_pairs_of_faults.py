"""Three replicas on stock and kraftd brokers: faults of a link, or a clock that is minutes off.

Meanwhile a broker is killed, frozen, rolled, or its disk is full or fails, or the controller is rolled.

The broker is in turn the one with the bad links and another. `make replication` plays it.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import product
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from testkit.node import Kind
from testkit.process import wait_until
from tests.faults import clocks as clock_faults
from tests.faults.clocks import SteppedClock
from tests.faults.disks import SmallDisk, faulty_files, lacking, preload_faults
from tests.faults.proxy import Link, Proxy
from tests.kafka.replication.mixed import PARTITIONS, TOPIC, MixedCluster, Reader, Writer
from tests.kafka.replication.pipelines import Committer
from tests.kafka.replication.test_links import FAULT_S, FAULTS, Fault, hold_what_it_hears, links, part
from tests.kafka.replication.test_three_replicas import BLOWS, CLUSTERS, FREEZE_S, KINDS, check_log, roll

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
OF_FAILED_DISKS = ("Input/output error", "a log directory is offline", "KAFKA_STORAGE_ERROR")
STEP_MS = 6 * 60_000


@pytest.mark.parametrize(("kinds", "controller"), CLUSTERS, ids=str)
def test_nothing_is_lost_or_doubled_by_two_faults_at_once(
    tmp_path: Path,
    links: Proxy,
    kinds: str,
    controller: Kind,
) -> None:
    with MixedCluster(tmp_path, KINDS[kinds], controller, links=links) as cluster:
        strike_twice(cluster, links, FAULTS, BLOWS)


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
            strike_twice(cluster, links, FAULTS, (fill,), *OF_FULL_DISKS)


@pytest.mark.skipif(clock_faults.lacking() is not None, reason=str(clock_faults.lacking()))
@pytest.mark.parametrize(("kinds", "controller"), CLUSTERS, ids=str)
def test_nothing_is_lost_or_doubled_by_faults_of_two_processes(
    tmp_path: Path,
    links: Proxy,
    kinds: str,
    controller: Kind,
) -> None:
    """Two frozen brokers, a rolled controller, a failed log directory; a clock, or a link that is one-way."""
    clocks = {one: SteppedClock(tmp_path / f"clock-{one}") for one in KINDS[kinds]}
    ahead_ms = dict.fromkeys(clocks, 0)

    def step_clock(links: Proxy, away: list[Link], back: list[Link]) -> None:
        """Forward, and those of kraftd's brokers in turn back: stock ones wait then for the time before."""
        broker_id = away[0][0]
        is_ahead = ahead_ms[broker_id] and KINDS[kinds][broker_id] == "kraftd"
        ahead_ms[broker_id] = 0 if is_ahead else ahead_ms[broker_id] + STEP_MS
        clocks[broker_id].set(ahead_ms[broker_id])

    environments = {one: clock.environment for one, clock in clocks.items()}
    with MixedCluster(
        tmp_path, KINDS[kinds], controller, links=links, environments=environments, has_two_directories=True
    ) as cluster:
        for broker_id, node in cluster.ours.items():
            own = node.environment["LD_PRELOAD"]
            preload_faults(node, tmp_path)
            node.environment["LD_PRELOAD"] += f" {own}"
            roll(cluster, broker_id)
        faults = (step_clock, hold_what_it_hears, part)
        strike_twice(cluster, links, faults, (freeze_two, roll_controller, fail_directory), *OF_FAILED_DISKS)


def freeze_two(cluster: MixedCluster, broker_id: int) -> None:
    """Two brokers stop, and go on one after the other: one may have been elected meanwhile."""
    both = [broker_id, cluster.ids[cluster.ids.index(broker_id) - 1]]
    for one in both:
        cluster.broker(one).freeze()
    time.sleep(FREEZE_S)
    for one in both:
        cluster.broker(one).thaw()
        time.sleep(0.5)


def roll_controller(cluster: MixedCluster, broker_id: int) -> None:
    cluster.controller.stop()
    cluster.controller.start()
    cluster.controller.wait_ready()


def fail_directory(cluster: MixedCluster, broker_id: int) -> None:
    """A log directory of the broker fails, and is whole again with its next start. Of a kraftd broker: where
    others are, one of theirs.
    """
    failing = broker_id if broker_id in cluster.ours else next(iter(cluster.ours))
    node = cluster.broker(failing)
    with faulty_files(node, errno.EIO, "write", f"/{TOPIC}-0/00000000000000000000.log"):
        time.sleep(FREEZE_S)
    roll(cluster, failing)


def strike_twice(
    cluster: MixedCluster, links: Proxy, faults: Sequence[Fault], blows: Sequence[Blow], *expected: str
) -> None:
    """Write, read and commit while each fault comes with each blow."""
    first, second, third = cluster.ids
    placed = [[first, second, third], [second, third, first]]
    topic = NewTopic(TOPIC, PARTITIONS, replica_assignment=placed, config={"min.insync.replicas": "2"})
    cluster.admin.create_topics([topic])[TOPIC].result(30)
    cluster.wait_until_in_sync()
    writer, reader = Writer(cluster.bootstrap, 0.005), Reader(cluster.bootstrap, "g")
    committer = Committer(cluster.bootstrap, "committer", TOPIC)
    try:
        write_through_faults(cluster, links, faults, blows, writer)
        wait_until(
            lambda: all(writer.acknowledged[n] <= reader.read[n] for n in range(PARTITIONS)),
            "the group has read all",
            60,
        )
    finally:
        reader.stop()
        committer.stop()
    assert not committer.lost, committer.lost
    for name in (TOPIC, "__consumer_offsets"):
        wait_until(lambda name=name: cluster.logs_are_equal(name), f"logs of {name} are equal", 20)  # type: ignore[misc]
    check_log(cluster, writer, "fetched records are not valid", *expected)


def write_through_faults(
    cluster: MixedCluster, links: Proxy, faults: Sequence[Fault], blows: Sequence[Blow], writer: Writer
) -> None:
    try:
        writer.wait_for_more()
        for number, (fault, blow) in enumerate(product(faults, blows)):
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
