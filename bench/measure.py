"""The measurements, each on a separate controller; README.md describes how every figure is taken."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figures import Figures
from bench.load import (
    FETCH_VERSION,
    HEARTBEAT_VERSION,
    BenchBroker,
    Heart,
    create_ms,
    drive,
    empty_fetch,
    quorum_position,
)
from kraftd.wire.api import ApiKey
from kraftd.wire.frames import parse_response
from testkit.client import Client
from testkit.cluster import Cluster
from testkit.java import AS_KAFKA_STARTS
from testkit.node import Kind, answers_api_versions
from testkit.process import HOST, wait_until

NO_LINGER = {"controller.quorum.append.linger.ms": 0}
NO_IDLE_RECORDS = {"metadata.max.idle.interval.ms": 0}


@dataclass(frozen=True)
class Plan:
    """The size of each measurement."""

    starts: int = 5
    settle_s: float = 10
    idle_s: float = 20
    warm_creates: int = 100
    creates: int = 300
    bulks: int = 5
    bulk_topics: int = 1000
    connections: int = 20
    depth: int = 5
    warm_load_s: float = 4
    load_s: float = 4
    loads: int = 3
    partitions: int = 10_000  # of one broker


QUICK = Plan(
    starts=2,
    settle_s=3,
    idle_s=5,
    warm_creates=30,
    creates=60,
    bulks=2,
    warm_load_s=1,
    load_s=2,
    loads=1,
    partitions=1_000,
)


@contextmanager
def controller(kind: Kind, properties: Mapping[str, object] | None = None) -> Iterator[Cluster]:
    """A fresh single-node quorum of this kind, formatted and started."""
    with tempfile.TemporaryDirectory(prefix="kraftd-bench-") as home:
        settings = {"broker.session.timeout.ms": 60_000, **(properties or {})}
        with Cluster(Path(home), kind, controller_properties=settings) as cluster:
            cluster.controller.jvm = AS_KAFKA_STARTS
            cluster.start_controller()
            yield cluster


@contextmanager
def with_broker(cluster: Cluster) -> Iterator[Client]:
    """A connection to the controller, and one broker that stays unfenced during the block."""
    broker = BenchBroker(1, cluster.controller.port, cluster.cluster_id)
    broker.unfence()
    with Heart([broker]), Client(HOST, cluster.controller.port, client_id="bench", timeout_s=120) as client:
        yield client


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def start_and_idle(kind: Kind, plan: Plan) -> Figures:
    """Cold starts of a formatted controller, and the costs of the last one while idle."""
    wall, cpu = [], []
    with controller(kind) as cluster:
        node = cluster.controller
        for _ in range(plan.starts):
            node.stop()
            node.start()
            wait_until(lambda: answers_api_versions(node.port), "ApiVersions is answered", poll_s=0.003)
            wall.append(time.monotonic() - node.started_s)
            cpu.append(node.cpu_s())
        time.sleep(plan.settle_s)
        cpu_before, began = node.cpu_s(), time.monotonic()
        time.sleep(plan.idle_s)
        idle_cpu = (node.cpu_s() - cpu_before) / (time.monotonic() - began)
        return {
            "start_wall_ms": statistics.median(wall) * 1000,
            "start_cpu_ms": statistics.median(cpu) * 1000,
            "idle_rss_mib": node.rss_mib(),
            "idle_cpu_percent": idle_cpu * 100,
        }


def creates(
    kind: Kind, plan: Plan, properties: Mapping[str, object] | None = None
) -> tuple[list[float], list[float]]:
    """Milliseconds of single creates, one after another, and of requests with many topics."""
    with controller(kind, properties) as cluster, with_broker(cluster) as client:
        for number in range(plan.warm_creates):
            create_ms(client, [f"warm-{number}"])
        single = [create_ms(client, [f"single-{number}"]) for number in range(plan.creates)]
        bulk = [
            create_ms(client, [f"bulk-{run}-{number}" for number in range(plan.bulk_topics)])
            for run in range(plan.bulks)
        ]
    return single, bulk


def create_topics(kind: Kind, plan: Plan) -> Figures:
    """CreateTopics with Kafka's default linger, and without it."""
    default, bulk = creates(kind, plan)
    eager, _ = creates(kind, plan, NO_LINGER)
    return {
        "create_p50_ms": statistics.median(default),
        "create_p99_ms": percentile(default, 0.99),
        "create_no_linger_p50_ms": statistics.median(eager),
        "create_no_linger_p99_ms": percentile(eager, 0.99),
        "create_1000_topics_ms": statistics.median(bulk),
    }


def per_cpu_second(
    cluster: Cluster, plan: Plan, frames: list[bytes], answered: Callable[[bytes], bool]
) -> tuple[float, float]:
    """Answers per CPU second of the server, and per second of the clock: medians of several loads.

    Raises RuntimeError if the last answer is not as expected.
    """
    node = cluster.controller
    drive(node.port, frames, plan.depth, plan.warm_load_s)
    by_cpu, by_clock = [], []
    for _ in range(plan.loads):
        before = node.cpu_s()
        load = drive(node.port, frames, plan.depth, plan.load_s)
        if not answered(load.last_answer):
            raise RuntimeError(f"the load was answered with {load.last_answer!r}")
        by_cpu.append(load.answers / max(node.cpu_s() - before, 0.01))
        by_clock.append(load.answers / load.wall_s)
    return statistics.median(by_cpu), statistics.median(by_clock)


def heartbeat_accepted(answer: bytes) -> bool:
    response: Any = parse_response(ApiKey.BROKER_HEARTBEAT, HEARTBEAT_VERSION, answer)[1]
    return not response.error_code and not response.is_fenced


def fetch_found_nothing_new(answer: bytes) -> bool:
    response: Any = parse_response(ApiKey.FETCH, FETCH_VERSION, answer)[1]
    (partition,) = response.responses[0].partitions
    return not response.error_code and not partition.error_code and not partition.records


def requests(kind: Kind, plan: Plan) -> Figures:
    """Heartbeats of many brokers, and fetches without new records, pipelined over as many connections."""
    with controller(kind, NO_IDLE_RECORDS) as cluster:
        port = cluster.controller.port
        brokers = [BenchBroker(number + 1, port, cluster.cluster_id) for number in range(plan.connections)]
        for broker in brokers:
            broker.unfence()
        heartbeats = [broker.client.frame(broker.heartbeat(), HEARTBEAT_VERSION) for broker in brokers]
        heartbeat_cpu, heartbeat_clock = per_cpu_second(cluster, plan, heartbeats, heartbeat_accepted)
        with Client(HOST, port) as client:
            position = quorum_position(client)
            fetches = [
                client.frame(empty_fetch(cluster.cluster_id, *position, observer), FETCH_VERSION)
                for observer in range(plan.connections)
            ]
        fetch_cpu, fetch_clock = per_cpu_second(cluster, plan, fetches, fetch_found_nothing_new)
    return {
        "heartbeats_per_cpu_s": heartbeat_cpu,
        "heartbeats_per_s": heartbeat_clock,
        "empty_fetches_per_cpu_s": fetch_cpu,
        "empty_fetches_per_s": fetch_clock,
    }


MEASUREMENTS: dict[str, Callable[[Kind, Plan], Figures]] = {
    "start": start_and_idle,
    "create": create_topics,
    "requests": requests,
}
