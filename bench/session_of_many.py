"""An incremental fetch in a session of thousands of partitions: from a stock broker, and from kraftd.

The session names ten partitions in each fetch, which have a batch of 100 bytes each; the others are empty.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer

from bench.fetch_server import BATCH_BYTES
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from testkit.client import Client
from testkit.cluster import Cluster
from testkit.java import AS_KAFKA_STARTS
from testkit.node import Kind
from testkit.process import HOST, wait_until
from testkit.synthetic import topic_id

PARTITIONS, QUICK_PARTITIONS = 5_000, 500
CHANGED = 10
WARM_UPS, FETCHES = 3_000, 3_000
VERSION = 17
CREATED_S = 300


def session_fetch_us(kind: Kind, *, is_quick: bool = False) -> float:
    """Microseconds of the server's CPU for an incremental fetch."""
    count = QUICK_PARTITIONS if is_quick else PARTITIONS
    served = kraftd_served if kind == "kraftd" else stock_broker
    with served(count) as (port, one, cpu_s), Client(HOST, port, client_id="bench", timeout_s=120) as client:
        positions = [FetchPartition(index, partition_max_bytes=1 << 10) for index in range(count)]
        full = FetchRequest(session_epoch=0, topics=[FetchTopic(topic_id=one, partitions=positions)])
        session_id = client.call(full, VERSION).session_id
        if not session_id:
            raise RuntimeError("no session was granted")
        named = [FetchTopic(topic_id=one, partitions=positions[:CHANGED])]
        before_s = 0.0
        for number in range(1, WARM_UPS + FETCHES + 1):
            if number == WARM_UPS + 1:
                before_s = cpu_s()
            request = FetchRequest(session_id=session_id, session_epoch=number, topics=named)
            answer = client.call(request, VERSION)
            partitions = [partition for topic in answer.responses for partition in topic.partitions]
            if answer.error_code or sum(bool(partition.records) for partition in partitions) != CHANGED:
                raise RuntimeError(f"fetch {number} was answered with {answer!r}")
        return (cpu_s() - before_s) / FETCHES * 1e6


Served = tuple[int, bytes, Callable[[], float]]  # the port, the topic's id, CPU seconds so far


@contextmanager
def kraftd_served(count: int) -> Iterator[Served]:
    command = [sys.executable, "-m", "bench.fetch_server", str(count), str(CHANGED)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())

        def cpu_s() -> float:
            fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        yield port, topic_id(0), cpu_s


@contextmanager
def stock_broker(count: int) -> Iterator[Served]:
    with tempfile.TemporaryDirectory(prefix="kraftd-bench-") as home:
        settings = {"broker.session.timeout.ms": 120_000}
        with Cluster(Path(home), "kraftd", controller_properties=settings) as cluster:
            cluster.start_controller()
            (broker,) = cluster.start_brokers(1, jvm=AS_KAFKA_STARTS)
            cluster.tool("topics", "--create", "--topic", "many", "--partitions", count)
            one = _wait_for_topic(broker.port, count)
            producer = Producer(
                {"bootstrap.servers": broker.address, "linger.ms": 0, "message.timeout.ms": 1000 * CREATED_S}
            )
            for index in range(CHANGED):
                producer.produce("many", b"x" * (BATCH_BYTES - 70), partition=index)
            if producer.flush(CREATED_S):
                raise RuntimeError("the partitions accept no records")
            yield broker.port, one, broker.cpu_s


def _wait_for_topic(port: int, count: int) -> bytes:
    found = b""

    def is_led() -> bool:
        nonlocal found
        with Client(HOST, port) as client:
            request = MetadataRequest([MetadataRequestTopic(name="many")])
            (topic,) = client.call(request, 12).topics
        found = topic.topic_id
        return sum(partition.leader_id >= 0 for partition in topic.partitions) == count

    wait_until(is_led, f"{count} partitions have a leader", CREATED_S, 1)
    return found
