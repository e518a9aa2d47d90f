"""A whole Kafka in one process: kraftd's combined node beside Apache Kafka's, in one run.

README.md describes how every figure is taken.
"""

from __future__ import annotations

import os
import selectors
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from bench.figures import Figures
from bench.load import SHORT_LOGS, SHORT_TOPIC, create_ms, drive
from bench.measure import Plan, percentile
from bench.session_of_many import CHANGED, session_fetch_us
from kraftd.messages.create_topics_request import CreatableTopicConfig
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kraftd.wire.api import ApiKey
from kraftd.wire.frames import parse_response
from testkit.client import Client
from testkit.cluster import random_uuid
from testkit.java import AS_KAFKA_STARTS, tools
from testkit.keyed_batches import keyed_batch
from testkit.node import CombinedNode, Kind
from testkit.process import HOST, wait_until

PRODUCE_VERSION, FETCH_VERSION, METADATA_VERSION = 10, 17, 12
RECORD = b"x" * 100
# Records of a request, by the name of its figure.
SIZES = {"1": 1, "10": 10, "16_kib": 150, "1_mib": 9_400}
ROUND_TRIPS = 300
PERF_RECORDS, QUICK_PERF_RECORDS = 2_000_000, 200_000
PERF_ROUNDS = 3
IDLE_PARTITIONS, QUICK_IDLE_PARTITIONS = 10_000, 1_000
PARTITIONS_A_TOPIC = 100
SESSION_PARTITIONS, QUICK_SESSION_PARTITIONS = 10_000, 500
PARTITIONS_A_REQUEST = 5_000
PARKED, QUICK_PARKED = 10_000, 1_000
WAIT_MS = 600_000


class Server(Protocol):
    """A process that clients reach at one port."""

    client_port: int
    started_s: float

    def start(self) -> None: ...

    def stop(self) -> int: ...

    def cpu_s(self) -> float: ...

    def rss_mib(self) -> float: ...


@contextmanager
def whole_kafka(kind: Kind, properties: Mapping[str, object] | None = None) -> Iterator[CombinedNode]:
    """A new node that serves."""
    slots = {"max.incremental.fetch.session.cache.slots": 20_000}
    with tempfile.TemporaryDirectory(prefix="kraftd-bench-") as home:
        node = CombinedNode(kind, Path(home), slots | dict(properties or {}))
        node.jvm = AS_KAFKA_STARTS
        node.format(random_uuid(), "--standalone")
        node.start()
        node.wait_ready()
        try:
            yield node
        finally:
            node.kill()


def whole(kind: Kind, plan: Plan) -> Figures:
    """All measurements."""
    is_quick = plan.starts < Plan().starts
    with whole_kafka(kind) as node:
        make_topic(node, "t")
        figures = starts_and_idle(node, plan)
    with whole_kafka(kind, SHORT_LOGS) as node:
        topic_id = make_topic(node, "t", configs=SHORT_TOPIC)
        figures |= round_trips(node, topic_id, "whole_first")
        figures |= produces(node, plan)
        figures |= round_trips(node, topic_id, "whole")
        figures |= perf_tools(node, QUICK_PERF_RECORDS if is_quick else PERF_RECORDS)
    with whole_kafka(kind) as node:
        figures |= parked(node, QUICK_PARKED if is_quick else PARKED)
    with whole_kafka(kind) as node:
        figures |= idle_partitions(node, QUICK_IDLE_PARTITIONS if is_quick else IDLE_PARTITIONS)
    with whole_kafka(kind) as node:
        figures |= session(node, QUICK_SESSION_PARTITIONS if is_quick else SESSION_PARTITIONS)
    return figures


def client_of(node: Server) -> Client:
    return Client(HOST, node.client_port, client_id="bench", timeout_s=120)


def make_topic(
    node: Server, name: str, partitions: int = 1, configs: Sequence[CreatableTopicConfig] = ()
) -> bytes:
    """Create a topic, wait until all of it has leaders, and return its id."""
    found = b""
    with client_of(node) as client:
        create_ms(client, [name], partitions, configs=configs)

        def is_led() -> bool:
            nonlocal found
            (topic,) = client.call(
                MetadataRequest([MetadataRequestTopic(name=name)]), METADATA_VERSION
            ).topics
            found = topic.topic_id
            return bool(sum(each.leader_id >= 0 for each in topic.partitions) == partitions)

        wait_until(is_led, f"{name} has leaders")
    return found


def produce_frame(client: Client, records: int, acks: int = 1, partition: int = 0) -> bytes:
    """A Produce of that many records of 100 bytes to a partition of t."""
    batch = keyed_batch([(None, RECORD)] * records, 0, -1, int(time.time() * 1000))
    row = TopicProduceData("t", partition_data=[PartitionProduceData(partition, batch)])
    return client.frame(ProduceRequest(None, acks, 30_000, [row]), PRODUCE_VERSION)


def check_produced(answer: bytes) -> int:
    """The offset of the first record. Raises RuntimeError if they were refused."""
    _, response = parse_response(ApiKey.PRODUCE, PRODUCE_VERSION, answer)
    partition = response.responses[0].partition_responses[0]  # type: ignore[attr-defined]
    if partition.error_code:
        raise RuntimeError(f"records were refused: {partition!r}")
    return int(partition.base_offset)


def is_taken(client: Client, partition: int = 0) -> bool:
    """Return whether a partition has acknowledged a record."""
    client.socket.sendall(produce_frame(client, 1, partition=partition))
    try:
        check_produced(client.receive_frame())
    except RuntimeError:
        return False
    return True


# -- starts


def starts_and_idle(node: Server, plan: Plan) -> Figures:
    """Starts until a record is acknowledged; memory and CPU of the last one while idle."""
    wall, cpu = [], []

    def accepts() -> bool:
        with client_of(node) as client:
            return is_taken(client)

    for _ in range(plan.starts):
        node.stop()
        node.start()
        wait_until(accepts, "a record is acknowledged", poll_s=0.003)
        wall.append(time.monotonic() - node.started_s)
        cpu.append(node.cpu_s())
    time.sleep(plan.settle_s)
    before_s, began = node.cpu_s(), time.monotonic()
    time.sleep(plan.idle_s)
    return {
        "whole_start_wall_ms": statistics.median(wall) * 1000,
        "whole_start_cpu_ms": statistics.median(cpu) * 1000,
        "whole_idle_rss_mib": node.rss_mib(),
        "whole_idle_cpu_percent": (node.cpu_s() - before_s) / (time.monotonic() - began) * 100,
    }


# -- records


def produces(node: Server, plan: Plan) -> Figures:
    """CPU of a Produce, by its size."""
    figures: Figures = {}
    for name, records in SIZES.items():
        with client_of(node) as client:
            frame = produce_frame(client, records)
        drive(node.client_port, [frame], plan.depth, plan.warm_load_s)
        costs_us = []
        for _ in range(plan.loads):
            before_s = node.cpu_s()
            load = drive(node.client_port, [frame], plan.depth, plan.load_s)
            check_produced(load.last_answer)
            costs_us.append((node.cpu_s() - before_s) / load.answers * 1e6)
        figures[f"whole_produce_{name}_us"] = statistics.median(costs_us)
    return figures


def round_trips(node: CombinedNode, topic_id: bytes, name: str) -> Figures:
    """One record after another: until it is acknowledged by all, and until a waiting consumer has it.

    `name` begins the figures' names.
    """
    acknowledged: list[float] = []
    seen: list[float] = []
    selector = selectors.DefaultSelector()
    with client_of(node) as producer, client_of(node) as consumer:
        selector.register(producer.socket, selectors.EVENT_READ, producer)
        selector.register(consumer.socket, selectors.EVENT_READ, consumer)
        producer.socket.sendall(produce_frame(producer, 1))
        offset = check_produced(producer.receive_frame()) + 1
        for _ in range(ROUND_TRIPS):
            position = FetchPartition(0, fetch_offset=offset, partition_max_bytes=1 << 20)
            topic = FetchTopic(topic_id=topic_id, partitions=[position])
            request = FetchRequest(max_wait_ms=5000, min_bytes=1, session_epoch=-1, topics=[topic])
            consumer.socket.sendall(consumer.frame(request, FETCH_VERSION))
            time.sleep(0.005)
            frame = produce_frame(producer, 1, acks=-1)
            began = time.perf_counter()
            producer.socket.sendall(frame)
            waiting = {producer: acknowledged, consumer: seen}
            while waiting:
                for key, _ in selector.select(10):
                    answer = key.data.receive_frame()
                    if key.data in waiting:
                        waiting.pop(key.data).append((time.perf_counter() - began) * 1000)
                    if key.data is producer:
                        offset = check_produced(answer) + 1
    selector.close()
    return {
        f"{name}_acknowledged_p50_ms": statistics.median(acknowledged),
        f"{name}_acknowledged_p99_ms": percentile(acknowledged, 0.99),
        f"{name}_seen_p50_ms": statistics.median(seen),
        f"{name}_seen_p99_ms": percentile(seen, 0.99),
    }


def perf_tools(node: CombinedNode, records: int) -> Figures:
    """Kafka's producer-perf with defaults and consumer-perf: bytes per second, and CPU of the server.

    Both kinds share the process of the tools. Without the first round, which does not count, the kind that
    is measured first would pay for its start and its compilation.
    """
    rounds = [_perf_round(node, f"perf-{number}", records) for number in range(1 + PERF_ROUNDS)][1:]
    return {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}


def _perf_round(node: CombinedNode, topic: str, records: int) -> Figures:
    """One run of both tools over a new topic, when the disk has all that was written before."""
    make_topic(node, topic, 3)
    os.sync()
    size_mb = records * len(RECORD) / 1e6
    to = ("--producer-props", f"bootstrap.servers={node.bootstrap}")
    figures: Figures = {}
    for name, arguments in (
        ("producer", ("--record-size", len(RECORD), "--throughput", -1, *to)),
        ("consumer", ("--bootstrap-server", node.bootstrap)),
    ):
        tool, before_s, began = f"{name}-perf", node.cpu_s(), time.monotonic()
        tools().run(tool, "--topic", topic, "--num-records", records, *arguments, timeout_s=300).check()
        figures[f"whole_{name}_perf_mb_s"] = size_mb / (time.monotonic() - began)
        figures[f"whole_{name}_perf_cpu_s_per_gb"] = (node.cpu_s() - before_s) / size_mb * 1000
    return figures


# -- what waits


def parked(node: CombinedNode, count: int) -> Figures:
    """Memory of consumers that wait in sessions at the end of an empty partition."""
    topic_id = make_topic(node, "t")
    position = FetchPartition(0, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic_id=topic_id, partitions=[position])
    first = FetchRequest(max_wait_ms=0, min_bytes=1, session_epoch=0, topics=[topic])
    before_mib = node.rss_mib()
    consumers = []
    for _ in range(count):
        client = client_of(node)
        answer = client.call(first, FETCH_VERSION)
        wait = FetchRequest(
            max_wait_ms=WAIT_MS, min_bytes=1, session_id=answer.session_id, session_epoch=1, topics=[]
        )
        client.socket.sendall(client.frame(wait, FETCH_VERSION))
        consumers.append(client)
    time.sleep(2)
    grown_mib = node.rss_mib() - before_mib
    for client in consumers:
        client.close()
    return {"whole_parked_mib": grown_mib}


def idle_partitions(node: CombinedNode, count: int) -> Figures:
    """Memory of partitions without records."""
    make_topic(node, "t")
    before_mib = node.rss_mib()
    for first in range(0, count, PARTITIONS_A_TOPIC):
        make_topic(node, f"idle-{first}", PARTITIONS_A_TOPIC)
    time.sleep(2)
    return {"whole_idle_partitions_mib": node.rss_mib() - before_mib}


def session(node: CombinedNode, count: int) -> Figures:
    """CPU of an incremental fetch in a session of that many partitions."""
    each = min(count, PARTITIONS_A_REQUEST)
    topic_ids = [make_topic(node, f"t{at or ''}", each) for at in range(count // each)]
    with client_of(node) as client:
        for partition in range(CHANGED):
            wait_until(lambda at=partition: is_taken(client, at), "its log is open")  # type: ignore[misc]
        return {"whole_session_fetch_us": session_fetch_us(node, client, topic_ids, each)}
