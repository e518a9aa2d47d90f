"""Stale reads of own writes: a client creates a topic and asks the same node for it at once.

``python -m bench.own_writes``. The nodes are a leader, a follower and an observer of kraftd, and a stock
broker; then an observer of Apache Kafka's controller, and its broker. A read is stale if the topic is not
there.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from testkit.client import Client
from testkit.node import Controller
from testkit.process import HOST, free_port
from testkit.quorum import Quorum

TRIES = 60
PAUSE_S = 0.02  # between tries: the parked fetches are at the leader again
MAP = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,LOG:PLAINTEXT"


def serve(controller: Controller) -> int:
    """Add a client listener without brokers to a controller that has not been started; its port."""
    port = free_port()
    listeners = f"CONTROLLER://{HOST}:{controller.port},LOG://{HOST}:{port}"
    keys = {"kraftd.client.listener.names": "LOG", "listener.security.protocol.map": MAP}
    controller.properties.update(keys, listeners=listeners)
    controller.write_properties()
    return port


def observe(quorum: Quorum) -> int:
    """Start a kraftd observer; the port of its client listener."""
    observer = quorum.plan_observer(300, "kraftd")
    port = serve(observer)
    observer.format(quorum.cluster_id, "--no-initial-controllers")
    observer.start()
    observer.wait_ready()
    quorum.wait_until_observer_is_level(300)
    return port


def measure(what: str, port: int) -> None:
    stale, ms = 0, []
    with Client(HOST, port, timeout_s=30) as client:
        for number in range(TRIES):
            name = f"{what.replace(' ', '-')}-{number}"
            began_s = time.perf_counter()
            created = client.call(CreateTopicsRequest([CreatableTopic(name, 1, 1)], 10_000), 7)
            ms.append((time.perf_counter() - began_s) * 1000)
            assert created.topics[0].error_code == 0
            read = client.call(MetadataRequest([MetadataRequestTopic(name=name)]), 12)
            stale += read.topics[0].error_code != 0
            time.sleep(PAUSE_S)
    p95 = sorted(ms)[TRIES * 95 // 100]
    print(
        f"{what}: {stale} of {TRIES} stale, p50 {statistics.median(ms):.1f} ms, p95 {p95:.1f} ms", flush=True
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        with Quorum(Path(home, "kraftd"), dict.fromkeys((100, 101, 102), "kraftd")) as quorum:
            ports = {node_id: serve(one) for node_id, one in quorum.controllers.items()}
            quorum.start_controllers()
            quorum.start_brokers(1)
            observer = observe(quorum)
            leader = quorum.wait_for_leader()
            measure("leader", ports.pop(leader))
            measure("follower", ports.popitem()[1])
            measure("observer", observer)
            measure("broker", quorum.brokers[1].port)
        with Quorum(Path(home, "apache"), {200: "apache"}) as quorum:
            quorum.start_controllers()
            quorum.start_brokers(1)
            measure("observer of Apache Kafka", observe(quorum))
            measure("broker of Apache Kafka", quorum.brokers[1].port)


if __name__ == "__main__":
    main()
