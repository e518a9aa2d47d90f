"""Three replicas on stock and kraftd brokers, over links that are slow, one-way, down, or damage records.

Brokers are rolled meanwhile. `make replication` plays it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from testkit.node import Kind
from testkit.process import wait_until
from tests.faults.proxy import Link, Proxy
from tests.kafka.replication.mixed import PARTITIONS, TOPIC, MixedCluster, Reader, Writer
from tests.kafka.replication.test_three_replicas import CLUSTERS, KINDS, check_log, roll

pytestmark = [pytest.mark.kafka, pytest.mark.thorough]

FAULT_S = 5.0  # longer than replica.lag.time.max.ms


@pytest.fixture
def links() -> Iterator[Proxy]:
    proxy = Proxy()
    yield proxy
    proxy.close()


def slow(links: Proxy, away: list[Link], back: list[Link]) -> None:
    links.slow(*away, *back, delay_s=0.3)


def damage(links: Proxy, away: list[Link], back: list[Link]) -> None:
    links.damage(*away, *back)


def reset(links: Proxy, away: list[Link], back: list[Link]) -> None:
    links.reset(*away, *back)


def hold_what_it_sends(links: Proxy, away: list[Link], back: list[Link]) -> None:
    links.cut(*away)


def hold_what_it_hears(links: Proxy, away: list[Link], back: list[Link]) -> None:
    links.cut(*back)


def part(links: Proxy, away: list[Link], back: list[Link]) -> None:
    links.cut(*away, *back)


Fault = Callable[[Proxy, list[Link], list[Link]], None]
# With one of these, all replicas stay in sync enough for another broker to be rolled.
MILD: tuple[Fault, ...] = (slow, damage, reset)
FAULTS: tuple[Fault, ...] = (*MILD, hold_what_it_sends, hold_what_it_hears, part)


@pytest.mark.parametrize(("kinds", "controller"), CLUSTERS, ids=str)
def test_nothing_is_lost_or_doubled_over_bad_links(
    tmp_path: Path, links: Proxy, kinds: str, controller: Kind
) -> None:
    with MixedCluster(tmp_path, KINDS[kinds], controller, links=links) as cluster:
        first, second, third = cluster.ids
        placed = [[first, second, third], [second, third, first]]
        topic = NewTopic(TOPIC, PARTITIONS, replica_assignment=placed, config={"min.insync.replicas": "2"})
        cluster.admin.create_topics([topic])[TOPIC].result(30)
        cluster.wait_until_in_sync()
        writer, reader = Writer(cluster.bootstrap, 0.005), Reader(cluster.bootstrap, "g")
        try:
            writer.wait_for_more()
            for number in range(2 * len(FAULTS)):
                fault, broker_id = FAULTS[number % len(FAULTS)], cluster.ids[number % 3]
                others = [one for one in cluster.ids if one != broker_id]
                away = [(broker_id, one) for one in others]
                fault(links, away, [(one, broker_id) for one in others])
                began_s = time.monotonic()
                if fault in MILD:
                    roll(cluster, others[number % 2])
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
        assert links.damaged_count
        check_log(cluster, writer, "fetched records are not valid")
