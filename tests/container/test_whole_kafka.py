"""The image without a variable is a whole Kafka, for clients on the host and in other containers; by
variables it is a broker of that cluster. Each container has a host (a network namespace) of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testkit.process import wait_until
from tests.container.engine import Engine
from tests.faults.namespaces import Hosts, NotPermitted

pytestmark = pytest.mark.container

TAG = "localhost/kraftd:test"
KAFKA, JOINED = 1, 2
NAMES = {KAFKA: "kafka", JOINED: "joined"}


class Machines:
    """Two hosts, each with a container of the image."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.hosts = engine, Hosts(tuple(NAMES))
        self.etc = [Path("/etc/netns", self.hosts.namespace(one)) for one in NAMES]
        for etc in self.etc:  # `ip netns exec` shows the file as /etc/hosts to its command
            etc.mkdir(parents=True)
            lines = ["127.0.0.1 localhost", *(f"{self.hosts.address(one)} {NAMES[one]}" for one in NAMES)]
            (etc / "hosts").write_text("\n".join(lines) + "\n")

    def __repr__(self) -> str:
        return f"<Machines on {self.hosts!r}>"

    def run_image(self, machine: int, **variables: str) -> None:
        name = NAMES[machine]
        words = ["run", "--detach", "--name", name, "--hostname", name, "--read-only", "--cap-drop", "ALL"]
        words += [
            "--network",
            f"ns:/run/netns/{self.hosts.namespace(machine)}",
            "--volume",
            "/var/lib/kraftd",
        ]
        words += [f"--add-host={NAMES[one]}:{self.hosts.address(one)}" for one in NAMES]
        self.engine.podman(*words, *(f"--env={key}={value}" for key, value in variables.items()), TAG)
        healthy = ("exec", name, "kraftd", "container", "--check")
        wait_until(lambda: self.engine.try_podman(*healthy) == 0, f"{name} is healthy", 60, 0.2)

    def client(self, machine: int, *words: str, lines: str = "") -> str:
        """What a client on a machine prints, outside of the container."""
        kraftd = [sys.executable, "-m", "kraftd", *words]
        command = ["ip", "netns", "exec", self.hosts.namespace(machine), *kraftd]
        done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"{done.stderr}\n{self.engine.logs(NAMES[machine])}"
        return done.stdout

    def close(self) -> None:
        for name in NAMES.values():
            self.engine.try_podman("rm", "--force", "--time", "1", "--volumes", name)
        for etc in self.etc:
            (etc / "hosts").unlink()
            etc.rmdir()
        self.hosts.close()


@pytest.fixture
def machines(engine: Engine) -> Iterator[Machines]:
    try:
        machines = Machines(engine)
    except NotPermitted as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
    try:
        yield machines
    finally:
        machines.close()


def test_a_record_goes_from_the_host_into_another_container_and_a_broker_joins(machines: Machines) -> None:
    machines.run_image(KAFKA)
    machines.client(KAFKA, "produce", "hello", "--bootstrap", "localhost:9092", lines="one\n")
    reading = ("consume", "hello", "--from-beginning", "--max-messages", "1", "--bootstrap")
    assert machines.client(JOINED, *reading, "kafka:19092") == "one\n"

    meta = machines.engine.podman("exec", NAMES[KAFKA], "cat", "/var/lib/kraftd/data/meta.properties")
    cluster_id = dict(line.split("=", 1) for line in meta.splitlines() if "=" in line)["cluster.id"]
    machines.run_image(
        JOINED,
        KAFKA_PROCESS_ROLES="broker",
        CLUSTER_ID=cluster_id,
        KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS="kafka:9093",
    )
    assert machines.client(KAFKA, *reading, "joined:19092") == "one\n"
    for broker_id, name in NAMES.items():
        shown = machines.client(
            KAFKA, "show", f"/cluster/brokers/{broker_id}", "--bootstrap", "localhost:9093"
        )
        assert f"host='{name}', port=19092" in shown and "host='localhost', port=9092" in shown, shown
