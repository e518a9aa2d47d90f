"""The image without a variable is a whole Kafka, for clients on the host and in other containers; by
variables it is a broker of that cluster. Each container has a host (a network namespace) of its own.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from testkit.process import wait_until
from tests.container.engine import Engine
from tests.container.named_hosts import NamedHosts, named_hosts

pytestmark = pytest.mark.container

TAG = "localhost/kraftd:test"
KAFKA, JOINED = "kafka", "joined"


@pytest.fixture
def hosts(engine: Engine) -> Iterator[NamedHosts]:
    yield from named_hosts(engine, (KAFKA, JOINED))


def run_image(hosts: NamedHosts, name: str, **variables: str) -> None:
    environment = (f"--env={key}={value}" for key, value in variables.items())
    hosts.run_image(name, "--hostname", name, "--volume", "/var/lib/kraftd", *environment, TAG)
    healthy = ("exec", name, "kraftd", "container", "--check")
    wait_until(lambda: hosts.engine.try_podman(*healthy) == 0, f"{name} is healthy", 60, 0.2)


def client(hosts: NamedHosts, name: str, *words: str, lines: str = "") -> str:
    """What a client on a host prints, outside of the container."""
    kraftd = [sys.executable, "-m", "kraftd", *words]
    command = ["ip", "netns", "exec", hosts.namespace(name), *kraftd]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{done.stderr}\n{hosts.engine.logs(name)}"
    return done.stdout


def test_a_record_goes_from_the_host_into_another_container_and_a_broker_joins(hosts: NamedHosts) -> None:
    run_image(hosts, KAFKA)
    client(hosts, KAFKA, "produce", "hello", "--bootstrap", "localhost:9092", lines="one\n")
    reading = ("consume", "hello", "--from-beginning", "--max-messages", "1", "--bootstrap")
    assert client(hosts, JOINED, *reading, "kafka:19092") == "one\n"

    meta = hosts.engine.podman("exec", KAFKA, "cat", "/var/lib/kraftd/data/meta.properties")
    cluster_id = dict(line.split("=", 1) for line in meta.splitlines() if "=" in line)["cluster.id"]
    run_image(
        hosts,
        JOINED,
        KAFKA_PROCESS_ROLES="broker",
        CLUSTER_ID=cluster_id,
        KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS="kafka:9093",
    )
    assert client(hosts, KAFKA, *reading, "joined:19092") == "one\n"
    for broker_id, name in enumerate(hosts.names, 1):
        shown = client(hosts, KAFKA, "show", f"/cluster/brokers/{broker_id}", "--bootstrap", "localhost:9093")
        assert f"host='{name}', port=19092" in shown and "host='localhost', port=9092" in shown, shown
