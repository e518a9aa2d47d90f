"""kraftd and a stock Apache Kafka broker: creates, writes and reads a topic, and times each step.

``make demo``. Needs Java 17+, and Maven the first time; everything lives in a temporary directory.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, Producer
from rich.console import Console

from testkit.cluster import Cluster
from testkit.fetch import KAFKA_VERSION, FetchError, kafka_libs
from testkit.java import JavaMissing, find_java

RECORDS = 10_000


@contextmanager
def step(console: Console, text: str) -> Iterator[None]:
    """Print a step and its duration."""
    started = time.perf_counter()
    with console.status(text):
        yield
    console.print(f"{(time.perf_counter() - started) * 1000:8.0f} ms  {text}")


def produce(cluster: Cluster, topic: str) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "log_level": 0})
    for number in range(RECORDS):
        producer.produce(topic, b"record %d" % number)
    if producer.flush(60):
        raise TimeoutError("the broker did not acknowledge every record within 60 s")


def consume(cluster: Cluster, topic: str) -> int:
    """Return how many records a new consumer group has read when it has them all."""
    reader = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "demo", "auto.offset.reset": "earliest"}
    )
    reader.subscribe([topic])
    count, end = 0, time.monotonic() + 60
    while count < RECORDS and time.monotonic() < end:
        count += sum(message.error() is None for message in reader.consume(1000, timeout=0.2))
    reader.close()
    return count


def demo(console: Console, kind: str, home: Path) -> int:
    # A temporary home for the cluster, deleted at the end.
    with Cluster(home, kind, controller_properties={"broker.session.timeout.ms": 9000}) as cluster:
        with step(console, f"formatted a directory and started {kind} on {cluster.controller.address}"):
            cluster.start_controller()
        with step(console, f"started an unmodified Apache Kafka {KAFKA_VERSION} broker; it is unfenced"):
            (broker,) = cluster.start_brokers(1)
        with step(console, "created topic demo with 3 partitions through the broker"):
            cluster.create_topic("demo", partitions=3)
        with step(console, f"produced {RECORDS} records with an idempotent producer"):
            produce(cluster, "demo")
        with step(console, f"consumed {RECORDS} records in a consumer group"):
            count = consume(cluster, "demo")
        if count != RECORDS:
            console.print(f"only {count} of {RECORDS} records came back")
            return 1
        status = cluster.quorum_status()
        console.print(
            f"\ncluster {cluster.cluster_id}: leader {status['LeaderId']} in epoch {status['LeaderEpoch']}, "
            f"high watermark {status['HighWatermark']}\n"
            f"controller: {cluster.controller.rss_mib():.0f} MiB resident, "
            f"{cluster.controller.cpu_s():.2f} CPU seconds; "
            f"broker: {broker.rss_mib():.0f} MiB, {broker.cpu_s():.1f} CPU seconds"
        )
        with step(console, "stopped the broker (controlled shutdown), then the controller"):
            broker.stop()
            cluster.controller.stop()
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.demo", description=__doc__)
    parser.add_argument("--controller", choices=["kraftd", "apache"], default="kraftd")
    options = parser.parse_args()
    console = Console(highlight=False)
    try:
        find_java()
        kafka_libs()
    except (JavaMissing, FetchError) as error:
        console.print(f"the demo needs a real broker: {error}")
        return 1
    with tempfile.TemporaryDirectory(prefix="kraftd-demo-") as home:
        return demo(console, options.controller, Path(home))


if __name__ == "__main__":
    sys.exit(main())
