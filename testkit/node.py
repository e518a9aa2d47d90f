"""Brokers and controllers as processes: their configuration, formatting, start and readiness.

A controller is of either kind: Apache Kafka's own, or kraftd. Both read the same properties file and the same
directory, so a node may change its kind between two runs. ``cluster.py`` groups nodes.
"""

from __future__ import annotations

import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from kraftd.messages.api_versions_request import ApiVersionsRequest
from testkit.client import Client
from testkit.fetch import KAFKA_VERSION
from testkit.java import QUICK_START, java_command, tools
from testkit.process import HOST, Process, free_port

Kind = Literal["kraftd", "apache"]

_ROOT = Path(__file__).resolve().parents[1]
_LISTENERS = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT"
# Loggers that write a line per partition log errors only.
_QUIET_LOGGERS = (
    "kafka.cluster",
    "kafka.log",
    "kafka.server.ReplicaFetcherManager",
    "org.apache.kafka.controller",
    "org.apache.kafka.storage",
    "state.change.logger",
)
LOG_FLAGS = (
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
    *(f"-Dorg.slf4j.simpleLogger.log.{logger}=warn" for logger in _QUIET_LOGGERS),
)
# The last line in the log of a starting broker.
_SERVES: dict[Kind, str] = {"kraftd": '"state":"RUNNING"', "apache": "Kafka Server started"}
# Small internal topics and no wait for more group members: a test's group starts at once.
_BROKER_DEFAULTS = {
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.num.partitions": 3,
    "transaction.state.log.min.isr": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.min.heartbeat.interval.ms": 500,
    "group.consumer.heartbeat.interval.ms": 500,
    "group.share.min.heartbeat.interval.ms": 500,
    "group.share.heartbeat.interval.ms": 500,
    "num.network.threads": 2,
    "num.io.threads": 4,
}
# ApiVersions (18) v0, correlation id 1, no client id: every server of any version answers this frame.
_API_VERSIONS_V0 = struct.pack(">ihhih", 10, 18, 0, 1, -1)


def kraftd_command(*arguments: object) -> list[str]:
    """A command line of the kraftd in this checkout."""
    return [sys.executable, "-m", "kraftd", *map(str, arguments)]


def answers_api_versions(port: int) -> bool:
    """Return whether a server on this loopback port answers ApiVersions v0 with no error."""
    with socket.create_connection((HOST, port), timeout=5) as connection, connection.makefile("rb") as stream:
        connection.sendall(_API_VERSIONS_V0)
        head = stream.read(10)
        return len(head) == 10 and struct.unpack(">iih", head)[1:] == (1, 0)


class Node(Process):
    """A process that reads a Kafka properties file and keeps its data in a directory."""

    host = HOST

    def __init__(
        self, name: str, node_id: int, home: Path, port: int, properties: Mapping[str, object]
    ) -> None:
        super().__init__(name, home, self.command)
        self.node_id, self.port = node_id, port
        self.jvm: Sequence[str] = QUICK_START
        self.release = KAFKA_VERSION  # of Apache Kafka, from the next start on
        self.data = home / "data"
        self.properties_file = home / "server.properties"
        self.properties: dict[str, object] = {
            "node.id": node_id,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": _LISTENERS,
            "log.dirs": self.data,
            **properties,
        }
        self.write_properties()

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def command(self) -> Sequence[str]:
        file = str(self.properties_file)
        return java_command("kafka.Kafka", file, jvm=self.jvm, flags=LOG_FLAGS, release=self.release)

    def write_properties(self) -> None:
        """Write the current properties; the next start reads them."""
        text = "".join(f"{key}={value}\n" for key, value in self.properties.items())
        self.properties_file.write_text(text)

    def format(self, cluster_id: str, *arguments: str) -> None:
        """Format the data directory with Kafka's storage tool, so that the node's release can read it."""
        is_newest = self.release == KAFKA_VERSION
        older = [] if is_newest else ["--release-version", self.release.rpartition(".")[0]]
        tools().run(
            "storage", "format", "-t", cluster_id, "-c", self.properties_file, *arguments, *older
        ).check()


class Broker(Node):
    """An unmodified Apache Kafka broker."""

    def __init__(
        self,
        node_id: int,
        home: Path,
        port: int,
        quorum: Mapping[str, object],
        properties: Mapping[str, object],
    ) -> None:
        listener = f"PLAINTEXT://{HOST}:{port}"
        fixed = {"process.roles": "broker", "listeners": listener, "advertised.listeners": listener}
        merged = {**fixed, **_BROKER_DEFAULTS, **quorum, **properties}
        super().__init__(f"broker-{node_id}", node_id, home, port, merged)

    def wait_ready(self, timeout_s: float = 120) -> None:
        """Wait until it is unfenced and its data plane accepts: Kafka opens those sockets last."""
        self.wait_for_log("Kafka Server started", timeout_s)


class Controller(Node):
    """A controller of either kind; the kind may change while it is stopped."""

    def __init__(
        self, kind: Kind, node_id: int, home: Path, port: int, properties: Mapping[str, object]
    ) -> None:
        self.kind = kind
        self.tls: ssl.SSLContext | None = None  # for clients of a listener with TLS
        fixed = {"process.roles": "controller", "listeners": f"CONTROLLER://{HOST}:{port}"}
        super().__init__(f"controller-{node_id}", node_id, home, port, {**fixed, **properties})

    def move(self, port: int) -> None:
        """Use another port, from the next start on."""
        self.port = port
        self.properties["listeners"] = f"CONTROLLER://{HOST}:{port}"
        self.write_properties()

    @property
    def metadata_dir(self) -> Path:
        return self.data / "__cluster_metadata-0"

    def command(self) -> Sequence[str]:
        if self.kind == "apache":
            return super().command()
        return kraftd_command("start", self.properties_file)

    def format(self, cluster_id: str, *arguments: str) -> None:
        """Format with the tool of this controller's kind: kraftd's or Kafka's."""
        if self.kind == "apache":
            super().format(cluster_id, *arguments)
            return
        command = kraftd_command(
            "format", "--config", self.properties_file, "--cluster-id", cluster_id, *arguments
        )
        done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"

    def wait_ready(self, timeout_s: float = 90) -> None:
        """Wait until it answers ApiVersions with finalized features: its first records are committed."""

        def finalized() -> bool:
            with Client(self.host, self.port, tls=self.tls) as client:
                return bool(client.call(ApiVersionsRequest("test", "1"), version=4).finalized_features)

        self.wait(finalized, "answers ApiVersions with finalized features", timeout_s)


class CombinedNode(Controller):
    """A broker and a controller in one process: a whole Kafka of either kind."""

    def __init__(self, kind: Kind, home: Path, properties: Mapping[str, object]) -> None:
        controllers, self.client_port = free_port(), free_port()
        self.bootstrap = f"{HOST}:{self.client_port}"
        fixed = {
            "process.roles": "broker,controller",
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://{HOST}:{controllers}",
            "controller.quorum.bootstrap.servers": f"{HOST}:{controllers}",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 3,
            "group.initial.rebalance.delay.ms": 0,
        }
        super().__init__(kind, 1, home, controllers, {**fixed, **properties})

    def wait_ready(self, timeout_s: float = 90) -> None:
        """Wait until its broker serves."""
        self.wait_for_log(_SERVES[self.kind], timeout_s)
