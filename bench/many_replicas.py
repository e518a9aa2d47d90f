"""Brokers of either kind with very many partitions: their starts, memory, idle CPU, replicas and failover."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from bench.figures import Figures
from bench.measure import Plan
from bench.replica_cluster import (
    GIVE_UP_S,
    PARTITIONS_A_TOPIC,
    PRODUCE_VERSION,
    ReplicaCluster,
    is_open,
    produce_request,
    replica_cluster,
)
from testkit.client import Client
from testkit.java import AS_KAFKA_STARTS
from testkit.node import Kind, Node
from testkit.process import wait_until

IDLE_SETTLE_S, IDLE_S = 15, 20
SESSION_MS = 6_000
RETRY_S = 0.05
HEAP = ("-Xmx4g", *AS_KAFKA_STARTS[1:])
OPEN_FILES = {"max.incremental.fetch.session.cache.slots": 20_000}


def many(kind: Kind, plan: Plan) -> Figures:
    """One broker: its clean start until it serves all partitions, its memory, and a start after kill -9."""
    topics = [f"many-{number}" for number in range(plan.partitions // PARTITIONS_A_TOPIC)]
    with replica_cluster({1: kind}, broker_properties=OPEN_FILES) as cluster:
        node = cluster.broker(1)
        for name in topics:
            cluster.create(name, [[1]] * PARTITIONS_A_TOPIC)

        def serves() -> bool:
            with cluster.client_of(1) as client:
                return is_open(client, topics)

        wait_until(serves, "all logs are open", GIVE_UP_S, 0.5)
        node.jvm = HEAP
        began = time.monotonic()
        node.stop(GIVE_UP_S)
        figures = {
            "replication_many_partitions": float(plan.partitions),
            "replication_many_stop_s": time.monotonic() - began,
            **started(node, serves, "replication_many_start"),
        }
        figures["replication_many_idle_cpu_percent"] = idle_percents([node])[0]
        figures["replication_many_rss_mib"] = node.rss_mib()
        node.kill()
        return figures | started(node, serves, "replication_many_killed_start")


def started(node: Node, serves: Callable[[], bool], name: str) -> Figures:
    """Start a broker: seconds until it serves all partitions, and its CPU by then."""
    node.start()
    wait_until(serves, "all partitions are served", GIVE_UP_S, 0.05)
    return {f"{name}_s": time.monotonic() - node.started_s, f"{name}_cpu_s": node.cpu_s()}


def idle_percents(nodes: Sequence[Node]) -> list[float]:
    """The share of a core that each uses while nothing is asked, after a while."""
    time.sleep(IDLE_SETTLE_S)
    before_s, began = [node.cpu_s() for node in nodes], time.monotonic()
    time.sleep(IDLE_S)
    took_s = time.monotonic() - began
    return [(node.cpu_s() - s) / took_s * 100 for node, s in zip(nodes, before_s, strict=True)]


def many_followed(kind: Kind, plan: Plan) -> Figures:
    """Two brokers: the first leads all partitions, is followed in one session, and is killed."""
    topics = [f"many-{number}" for number in range(plan.partitions // PARTITIONS_A_TOPIC)]
    session = {"broker.session.timeout.ms": SESSION_MS}
    with replica_cluster({1: kind, 2: kind}, session, OPEN_FILES) as cluster:
        leading, following = cluster.broker(1), cluster.broker(2)
        for name in topics:
            cluster.create(name, [[1, 2]] * PARTITIONS_A_TOPIC)
        began = time.monotonic()
        write_each(cluster, 1, topics, acks=-1)
        replicated_s = time.monotonic() - began
        leader_percent, follower_percent = idle_percents([leading, following])
        memory_mib = following.rss_mib()
        began = time.monotonic()
        leading.kill()
        write_each(cluster, 2, topics, acks=1)
        failed_over_s = time.monotonic() - began
        leading.jvm = HEAP
        leading.start()

        def is_whole() -> bool:
            return all(cluster.is_in_sync(2, name, PARTITIONS_A_TOPIC) for name in topics)

        wait_until(is_whole, "all are in sync", GIVE_UP_S, 0.5)
        return {
            "replication_many_followed_partitions": float(plan.partitions),
            "replication_many_followed_write_s": replicated_s,
            "replication_many_leader_cpu_percent": leader_percent,
            "replication_many_follower_cpu_percent": follower_percent,
            "replication_many_follower_rss_mib": memory_mib,
            "replication_many_failover_s": failed_over_s,
            "replication_many_rejoin_s": time.monotonic() - leading.started_s,
        }


def write_each(cluster: ReplicaCluster, broker_id: int, topics: Sequence[str], acks: int) -> None:
    """Write a record to each partition at that broker, again where it refuses."""
    end = time.monotonic() + GIVE_UP_S
    with cluster.client_of(broker_id) as client:
        for name in topics:
            left = set(range(PARTITIONS_A_TOPIC))
            while left:
                left -= written(client, name, sorted(left), acks)
                if time.monotonic() > end:
                    raise TimeoutError(f"{len(left)} partitions of {name} take no write")
                if left:
                    time.sleep(RETRY_S)


def written(client: Client, topic: str, partitions: Sequence[int], acks: int) -> set[int]:
    """The partitions that have taken a record."""
    request = produce_request(topic, partitions, 1)
    request.acks = acks
    answer = client.call(request, PRODUCE_VERSION)
    return {one.index for each in answer.responses for one in each.partition_responses if not one.error_code}
