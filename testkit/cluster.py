"""A scratch cluster on loopback: one controller of either kind, stock brokers, and Kafka's own tools.

A cluster ends every process that it starts. A failed test shows the last lines of its logs.
"""

from __future__ import annotations

import base64
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._metadata import ClusterMetadata, PartitionMetadata

from kraftd.messages.metadata_request import MetadataRequest
from kraftd.messages.metadata_response import MetadataResponse
from testkit.client import Client
from testkit.java import ToolRun, tools
from testkit.node import Broker, Controller, Kind, Node
from testkit.process import HOST, free_port, wait_until

CONTROLLER_ID = 100
# Long enough that a JVM on a busy machine misses no heartbeat, short enough that tests can wait for its end.
SESSION_TIMEOUT_MS = 5000


def random_uuid() -> str:
    """A UUID in Kafka's base64 form, never with a leading dash (tools would take it for an option)."""
    text = "-"
    while text.startswith("-"):
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return text


def status_fields(text: str) -> dict[str, str]:
    """The "key: value" lines of a tool's output."""
    lines = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, colon, value in lines if colon}


def _run_tool(
    name: str, bootstrap: tuple[str, str], arguments: tuple[object, ...], options: dict[str, Any]
) -> ToolRun:
    # The cluster tool takes its options after the command word; all others also accept the bootstrap first.
    leading = 1 if name == "cluster" else 0
    return tools().run(name, *arguments[:leading], *bootstrap, *arguments[leading:], **options)


class Cluster:
    """One controller and any number of brokers under a home directory."""

    open_clusters: ClassVar[list[Cluster]] = []

    def __init__(
        self,
        home: Path,
        kind: Kind,
        *,
        static: bool = False,
        controller_properties: Mapping[str, object] | None = None,
        broker_properties: Mapping[str, object] | None = None,
    ) -> None:
        self.home, self.cluster_id = home, random_uuid()
        self._broker_properties = dict(broker_properties or {})
        port = free_port()
        if static:
            self._quorum = {"controller.quorum.voters": f"{CONTROLLER_ID}@{HOST}:{port}"}
        else:
            self._quorum = {"controller.quorum.bootstrap.servers": f"{HOST}:{port}"}
        self.static = static
        properties = {**self._quorum, **(controller_properties or {})}
        self.controller = Controller(kind, CONTROLLER_ID, home / "controller", port, properties)
        self.brokers: dict[int, Broker] = {}
        self._admin: AdminClient | None = None
        self.open_clusters.append(self)

    def __repr__(self) -> str:
        return f"<Cluster {self.cluster_id} {self.controller!r} brokers {sorted(self.brokers)}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def nodes(self) -> list[Node]:
        return [self.controller, *self.brokers.values()]

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values() if broker.alive)

    # -- life
    def start_controller(self) -> Controller:
        """Format the controller's directory if it is new, start it, wait until it answers."""
        if not self.controller.data.exists():
            self.controller.format(self.cluster_id, *([] if self.static else ["--standalone"]))
        self.controller.start()
        self.controller.wait_ready()
        return self.controller

    def start_brokers(
        self,
        *ids: int,
        properties: Mapping[str, object] | None = None,
        releases: Mapping[int, str] | None = None,
        jvm: Sequence[str] | None = None,
    ) -> list[Broker]:
        """Add brokers with these ids, start them side by side and wait until all are ready.

        They run Kafka's newest release unless `releases` names another one for their id.
        """
        added = []
        for node_id in ids:
            merged = {**self._broker_properties, **(properties or {})}
            broker = Broker(node_id, self.home / f"broker-{node_id}", free_port(), self._quorum, merged)
            broker.release = (releases or {}).get(node_id, broker.release)
            broker.jvm = broker.jvm if jvm is None else jvm
            broker.format(self.cluster_id, *([] if self.static else ["--no-initial-controllers"]))
            broker.start()
            self.brokers[node_id] = broker
            added.append(broker)
        for broker in added:
            broker.wait_ready()
        return added

    def heal(self) -> None:
        """Start and thaw the nodes that a test stopped or froze, and wait until every broker is unfenced."""
        for node in self.nodes:
            node.thaw()
        if not self.controller.alive:
            self.start_controller()
        down = [broker for broker in self.brokers.values() if not broker.alive]
        for broker in down:
            broker.start()
        for broker in down:
            broker.wait_ready()
        self.wait_for_live_brokers(*self.brokers)

    def close(self) -> None:
        """Kill the running processes, brokers first. Delete the data and keep the logs."""
        for node in reversed(self.nodes):
            node.thaw()
            node.kill()
            shutil.rmtree(node.data, ignore_errors=True)
        self.open_clusters.remove(self)

    # -- queries
    @property
    def admin(self) -> AdminClient:
        """librdkafka's admin client, for all brokers that existed at its first use."""
        if self._admin is None:
            servers = ",".join(broker.address for broker in self.brokers.values())
            self._admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        return self._admin

    def metadata(self) -> ClusterMetadata:
        """All topics (asking for one could create it) and brokers. OSError while no broker answers."""
        try:
            return self.admin.list_topics(timeout=10)
        except KafkaException as error:
            raise OSError(str(error)) from error

    def partitions(self, topic: str) -> dict[int, PartitionMetadata]:
        """The partitions of a topic as a broker knows them. OSError while it does not know the topic."""
        known = self.metadata().topics.get(topic)
        if known is None:
            raise OSError(f"no broker has metadata of the topic {topic} yet")
        partitions: dict[int, PartitionMetadata] = known.partitions
        return partitions

    def partition(self, topic: str, index: int = 0) -> PartitionMetadata:
        return self.partitions(topic)[index]

    def live_brokers(self) -> set[int]:
        """The ids of the unfenced brokers, as a broker knows them."""
        return set(self.metadata().brokers)

    def metadata_by(self, broker_id: int) -> MetadataResponse:
        """The topics and brokers that one broker knows, requested from it directly."""
        with Client(HOST, self.brokers[broker_id].port) as client:
            answer: MetadataResponse = client.call(MetadataRequest(topics=None), version=12)
        return answer

    def live_brokers_by(self, broker_id: int) -> set[int]:
        """The ids of the unfenced brokers as one broker knows them."""
        return {broker.node_id for broker in self.metadata_by(broker_id).brokers}

    def leaders_by(self, broker_id: int, topic: str) -> list[int]:
        """Each partition's leader as one broker knows them, -1 for none; empty if it knows no such topic."""
        found = [known for known in self.metadata_by(broker_id).topics if known.name == topic]
        return [partition.leader_id for known in found for partition in known.partitions]

    def wait_until(self, condition: Callable[[], object], what: str, timeout_s: float = 60) -> float:
        return wait_until(condition, what, timeout_s)

    def wait_for_live_brokers(self, *ids: int, timeout_s: float = 60) -> None:
        wait_until(lambda: self.live_brokers() == set(ids), f"live brokers are {sorted(ids)}", timeout_s)

    def quorum_status(self) -> dict[str, str]:
        """The output of the metadata-quorum tool, run against the controller."""
        return status_fields(self.controller_tool("metadata-quorum", "describe", "--status").out)

    # -- Kafka's tools
    def tool(self, name: str, *arguments: object, **options: Any) -> ToolRun:
        """Run a tool against the brokers; AssertionError with its output if it fails."""
        return self.try_tool(name, *arguments, **options).check()

    def try_tool(self, name: str, *arguments: object, **options: Any) -> ToolRun:
        """Run a tool against the brokers, whatever its exit code."""
        return _run_tool(name, ("--bootstrap-server", self.bootstrap), arguments, options)

    def controller_tool(self, name: str, *arguments: object, **options: Any) -> ToolRun:
        """Run a tool against the controller itself; AssertionError with its output if it fails."""
        return _run_tool(
            name, ("--bootstrap-controller", self.controller.address), arguments, options
        ).check()

    def create_topic(
        self, name: str, partitions: int = 1, replication_factor: int = 1, **configs: object
    ) -> str:
        """Create a topic with Kafka's tool; return its name once every live broker knows its leaders."""
        words = [f"{key.replace('_', '.')}={value}" for key, value in configs.items()]
        self.tool(
            "topics", "--create", "--topic", name, "--partitions", partitions, "--replication-factor",
            replication_factor, *[word for pair in words for word in ("--config", pair)],
        )  # fmt: skip

        def led() -> bool:
            return all(
                leaders.count(-1) == 0 and len(leaders) == partitions
                for leaders in (
                    self.leaders_by(node_id, name) for node_id, node in self.brokers.items() if node.alive
                )
            )

        wait_until(led, f"every broker knows {partitions} led partitions of {name}")
        return name
