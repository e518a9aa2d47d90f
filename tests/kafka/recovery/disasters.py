"""The commands that an operator runs after a disaster, and the steps that brokers then need."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from testkit.cluster import Cluster
from testkit.node import Broker, Controller, kraftd_command
from testkit.process import wait_until
from testkit.quorum import Quorum


def kraftd(*arguments: object, code: int = 0) -> str:
    """Run a command, which must end with that exit code; return its output."""
    done = subprocess.run(
        kraftd_command(*arguments), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == code, f"{arguments}: {done}"
    return done.stdout + done.stderr


def lose(quorum: Quorum, lost: Iterable[int]) -> Path:
    """Kill these controllers and delete their directories; return a copy of one of them."""
    lost = list(lost)
    for node_id in lost:
        quorum.controllers[node_id].kill()
    copy = quorum.home / "copy"
    shutil.copytree(quorum.controllers[lost[0]].data, copy)
    for node_id in lost:
        shutil.rmtree(quorum.controllers[node_id].data)
    return copy


def recover(quorum: Quorum, survivor: Controller, *others: Path) -> str:
    """Kill a controller and make it the only voter; return the command's output."""
    survivor.kill()
    options = [word for other in others for word in ("--other", other)]
    confirm = ("--cluster-id-confirm", quorum.cluster_id)
    return kraftd("quorum", "recover", "--config", survivor.properties_file, *options, *confirm)


def make_only_static_voter(controller: Controller) -> None:
    """Name this controller alone in controller.quorum.voters of its file."""
    controller.properties["controller.quorum.voters"] = f"{controller.node_id}@{controller.address}"
    controller.write_properties()


def write(cluster: Cluster, topic: str, *values: bytes) -> None:
    """Append records, and wait until they are acknowledged."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    failed: list[object] = []
    for value in values:
        producer.produce(
            topic, value, partition=0, on_delivery=lambda error, _: error and failed.append(error)
        )
    assert producer.flush(60) == 0
    assert failed == []


def read(cluster: Cluster, topic: str, count: int) -> list[bytes]:
    """Read that many records from the beginning of the first partition."""
    reader = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "none", "log_level": 0})
    reader.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found: list[bytes] = []

    def whole() -> bool:
        message = reader.poll(0.1)
        if message is not None and message.error() is None:
            found.append(message.value())
        return len(found) >= count

    wait_until(whole, f"{count} records of {topic}")
    reader.close()
    return found


def start_without_metadata(broker: Broker) -> None:
    """Start a broker without its metadata log, as the controller advises for one that is ahead of it."""
    shutil.rmtree(broker.data / "__cluster_metadata-0")
    broker.start()
    broker.wait_ready()
