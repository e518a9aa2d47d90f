"""Requests of ordinary clients: kraftd's client listener beside a stock broker with the same topics.

Metadata of very many topics, which no real broker hosts: simulated ones register and heartbeat. Many parked
fetches, and the metadata log read by one consumer: only kraftd serves that topic. README.md describes how
every figure is taken.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.figures import Figures
from bench.load import BenchBroker, Heart, create_ms, drive
from bench.measure import Plan
from bench.million import Shape, fill
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.metadata.state import BROKER_RESOURCE
from kraftd.types import METADATA_TOPIC_ID
from kraftd.wire.api import ApiKey
from kraftd.wire.batch import iter_batches
from kraftd.wire.frames import parse_response
from testkit.client import Client
from testkit.cluster import Cluster
from testkit.java import AS_KAFKA_STARTS
from testkit.node import Kind, Node, kraftd_command
from testkit.process import HOST, free_port, wait_until

METADATA_VERSION = 12
FETCH_VERSION = 17
TOPICS, QUICK_TOPICS = 10_000, 1_000
PARTITIONS, REPLICAS = 10, 3
TOPICS_PER_REQUEST = 100
STOCK_ID = 11
ANSWERS = 10
PARKED = 10_000
FEW_CONSUMERS = 10
WAIT_MS = 600_000
FEW_ROUNDS, MANY_ROUNDS = 300, 4
READ_BYTES = 50 << 20
READS = 5


@contextmanager
def serving(kind: Kind, **properties: object) -> Iterator[tuple[Cluster, int]]:
    """A controller of that kind, and the port of kraftd's client listener, or an unused one."""
    with tempfile.TemporaryDirectory(prefix="kraftd-bench-") as home:
        settings = {"broker.session.timeout.ms": 120_000, "metadata.max.idle.interval.ms": 0, **properties}
        with Cluster(Path(home), kind, controller_properties=settings) as cluster:
            controller, port = cluster.controller, free_port()
            controller.jvm = AS_KAFKA_STARTS
            if kind == "kraftd":
                controller.properties |= {
                    "kraftd.client.listener.names": "PLAINTEXT",
                    "listeners": f"CONTROLLER://{controller.address},PLAINTEXT://{HOST}:{port}",
                }
                controller.write_properties()
            yield cluster, port


def clients(kind: Kind, plan: Plan) -> Figures:
    """All measurements, each on its own nodes."""
    is_quick = plan.starts < Plan().starts
    figures = metadata(kind, plan, QUICK_TOPICS if is_quick else TOPICS)
    if kind == "kraftd":
        figures |= parked(PARKED // 10 if is_quick else PARKED)
        figures |= log_read(Shape(topics=10_000) if is_quick else Shape())
    return figures


# -- Metadata


def metadata(kind: Kind, plan: Plan, topics: int) -> Figures:
    """Metadata of all topics, the first and the tenth time; and of one topic, many times."""
    with serving(kind) as (cluster, port):
        cluster.start_controller()
        known = [
            BenchBroker(number, cluster.controller.port, cluster.cluster_id)
            for number in range(1, REPLICAS + 1)
        ]
        for broker in known:
            broker.unfence()
        with Heart(known):
            _create(cluster.controller, topics)
            node: Node = cluster.controller
            if kind == "apache":
                # once unfenced it knows every topic, and it has answered no request before
                (node,) = cluster.start_brokers(STOCK_ID, jvm=AS_KAFKA_STARTS)
                port = node.port
            return _metadata_figures(node, port, plan, topics)


def _create(controller: Node, topics: int) -> None:
    with Client(HOST, controller.port, client_id="bench", timeout_s=120) as client:
        for first in range(0, topics, TOPICS_PER_REQUEST):
            names = [f"topic-{number:06d}" for number in range(first, first + TOPICS_PER_REQUEST)]
            create_ms(client, names, PARTITIONS, REPLICAS)


def _metadata_figures(node: Node, port: int, plan: Plan, topics: int) -> Figures:
    wall_ms, cpu_ms = [], []
    with Client(HOST, port, client_id="bench", timeout_s=120) as client:
        frame = client.frame(MetadataRequest(topics=None), METADATA_VERSION)
        for _ in range(ANSWERS):
            before, began = node.cpu_s(), time.perf_counter()
            client.socket.sendall(frame)
            answer = client.receive_frame()
            wall_ms.append((time.perf_counter() - began) * 1000)
            cpu_ms.append((node.cpu_s() - before) * 1000)
            _, response = parse_response(ApiKey.METADATA, METADATA_VERSION, answer)
            if len(response.topics) < topics:  # type: ignore[attr-defined]
                raise RuntimeError(f"Metadata has {len(response.topics)} topics")  # type: ignore[attr-defined]
            time.sleep(0.2)
        one = MetadataRequest([MetadataRequestTopic(name="topic-000007")])
        frame = client.frame(one, METADATA_VERSION)
    drive(port, [frame] * plan.connections, plan.depth, plan.warm_load_s)
    rates = []
    for _ in range(plan.loads):
        before_s = node.cpu_s()
        load = drive(port, [frame] * plan.connections, plan.depth, plan.load_s)
        rates.append(load.answers / max(node.cpu_s() - before_s, 0.01))
    return {
        "clients_metadata_first_ms": wall_ms[0],
        "clients_metadata_tenth_ms": wall_ms[-1],
        "clients_metadata_first_cpu_ms": cpu_ms[0],
        "clients_metadata_tenth_cpu_ms": statistics.mean(cpu_ms[-3:]),
        "clients_metadata_one_per_cpu_s": statistics.median(rates),
    }


# -- parked fetches


def parked(count: int) -> Figures:
    """Memory of this many consumers that wait in sessions, and CPU for each of few or all to wake."""
    slots = {"max.incremental.fetch.session.cache.slots": 2 * count}
    with serving("kraftd", **slots) as (cluster, port):
        node = cluster.start_controller()
        change = _changer(port)
        wait_until(lambda: _is_taken(change), "changes are accepted")
        alone_s = _cpu_s(node, change, FEW_ROUNDS) / FEW_ROUNDS
        before_mib = node.rss_mib()
        few = [Waiting(port) for _ in range(FEW_CONSUMERS)]
        few_s = _cpu_s(node, lambda: _round(change, few), FEW_ROUNDS) / FEW_ROUNDS
        many = few + [Waiting(port) for _ in range(count - FEW_CONSUMERS)]
        time.sleep(2)
        grown_mib = node.rss_mib() - before_mib
        many_s = _cpu_s(node, lambda: _round(change, many), MANY_ROUNDS) / MANY_ROUNDS
        for one in many:
            one.client.close()
    return {
        "clients_parked_mib": grown_mib,
        "clients_wake_one_of_few_us": (few_s - alone_s) / FEW_CONSUMERS * 1e6,
        "clients_wake_one_of_many_us": (many_s - alone_s) / count * 1e6,
    }


def _changer(port: int) -> Callable[[], None]:
    """A function that commits one record."""
    client = Client(HOST, port, client_id="changes", timeout_s=60)
    values = iter(range(1_000_000, 2_000_000))

    def change() -> None:
        entry = AlterableConfig("message.max.bytes", 0, str(next(values)))
        resource = AlterConfigsResource(BROKER_RESOURCE, "", [entry])
        (answer,) = client.call(IncrementalAlterConfigsRequest([resource]), version=1).responses
        if answer.error_code:
            raise RuntimeError(f"a change was refused: {answer!r}")

    return change


def _is_taken(change: Callable[[], None]) -> bool:
    try:
        change()
    except RuntimeError:
        return False
    return True


def _cpu_s(node: Node, act: Callable[[], None], times: int) -> float:
    before_s = node.cpu_s()
    for _ in range(times):
        act()
    return node.cpu_s() - before_s


class Waiting:
    """A consumer at the end of the log, parked in its session."""

    def __init__(self, port: int) -> None:
        self.client = Client(HOST, port, client_id="parked", timeout_s=120)
        self.offset, self.session_id, self.epoch = 0, 0, 0
        while not self.session_id or self.records:
            self._fetch(0)
            self.take()
        self._fetch(WAIT_MS)

    records = b""

    def _fetch(self, wait_ms: int) -> None:
        partition = FetchPartition(0, fetch_offset=self.offset, partition_max_bytes=1 << 20)
        named = [FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])]
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            session_id=self.session_id,
            session_epoch=self.epoch,
            topics=named if self.records or not self.epoch else [],
        )
        self.client.socket.sendall(self.client.frame(request, FETCH_VERSION))

    def take(self) -> None:
        """Receive the answer; RuntimeError if it is an error."""
        _, answer = parse_response(ApiKey.FETCH, FETCH_VERSION, self.client.receive_frame())
        if answer.error_code:  # type: ignore[attr-defined]
            raise RuntimeError(f"a fetch was refused: {answer!r}")
        self.session_id, self.epoch = answer.session_id, self.epoch + 1  # type: ignore[attr-defined]
        self.records = b""
        for topic in answer.responses:  # type: ignore[attr-defined]
            self.records = bytes(topic.partitions[0].records or b"")
        for batch in iter_batches(self.records, verify=False):
            self.offset = batch.header.next_offset

    def wake(self) -> None:
        """Receive the new records, and wait again."""
        self.take()
        self._fetch(WAIT_MS)


def _round(change: Callable[[], None], waiting: list[Waiting]) -> None:
    change()
    for one in waiting:
        one.wake()


# -- the log


def log_read(shape: Shape) -> Figures:
    """One consumer reads the whole log of very many partitions, several times."""
    with serving("kraftd") as (cluster, port):
        node = cluster.controller
        node.format(cluster.cluster_id, "--standalone")
        fill(node.data, shape)
        cluster.start_controller()
        with Client(HOST, port, client_id="bench", timeout_s=120) as client:
            buffer = bytearray(READ_BYTES + (1 << 20))
            _read_all(client, buffer)
            before_s, own_before_s, began = node.cpu_s(), time.process_time(), time.perf_counter()
            sizes = [_read_all(client, buffer) for _ in range(READS)]
            wall_s, cpu_s = time.perf_counter() - began, node.cpu_s() - before_s
            own_s = time.process_time() - own_before_s
        shown = show(node.data, shape)
    return shown | {
        "clients_log_mb_s": sum(sizes) / wall_s / 1e6,
        "clients_log_mb_per_cpu_s_of_both": sum(sizes) / max(cpu_s + own_s, 0.01) / 1e6,
    }


def show(directory: Path, shape: Shape) -> Figures:
    """`kraftd show` of one topic as of an offset before the end, from the directory of the running node."""
    topic = f"/topics/byName/topic-{shape.topics // 2:06d}"
    command = kraftd_command("show", "-d", directory, "--as-of", shape.record_count * 9 // 10, topic)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    wall_s, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if output.count("PartitionRegistration") != shape.partitions:
        raise RuntimeError(f"kraftd show printed {output}")
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"clients_show_s": wall_s, "clients_show_cpu_s": cpu_s}


def _read_all(client: Client, buffer: bytearray) -> int:
    """The number of bytes of the log's records, which are received and their headers parsed."""
    offset = size_bytes = 0
    view = memoryview(buffer)
    while True:
        partition = FetchPartition(0, fetch_offset=offset, partition_max_bytes=READ_BYTES)
        request = FetchRequest(
            max_bytes=READ_BYTES,
            min_bytes=1,
            topics=[FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])],
        )
        client.socket.sendall(client.frame(request, FETCH_VERSION))
        size = int.from_bytes(_receive(client, view[:4]))
        _, answer = parse_response(ApiKey.FETCH, FETCH_VERSION, _receive(client, view[:size]))
        (data,) = answer.responses[0].partitions  # type: ignore[attr-defined]
        if data.error_code:
            raise RuntimeError(f"the log is not served: error {data.error_code}")
        for batch in iter_batches(data.records or b"", verify=False):
            offset = batch.header.next_offset
        size_bytes += len(data.records or b"")
        if offset >= data.high_watermark:
            return size_bytes


def _receive(client: Client, into: memoryview) -> memoryview:
    """Receive that many bytes into a buffer."""
    at = 0
    while at < len(into):
        count = client.socket.recv_into(into[at:])
        if not count:
            raise ConnectionError("the connection was closed")
        at += count
    return into
