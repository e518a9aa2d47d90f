"""Stock and kraftd brokers that replicate each other's partitions, with a writer and a group."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from kraftd.wire.batch import iter_batches, records
from testkit.cluster import Cluster
from testkit.node import Broker, Controller, Kind, Node
from testkit.process import HOST, free_port, wait_until
from tests.faults.namespaces import Hosts
from tests.faults.proxy import Proxy

TOPIC, PARTITIONS = "t", 2
SETTINGS = {
    "broker.heartbeat.interval.ms": 300,
    "replica.lag.time.max.ms": 3000,
    "replica.fetch.backoff.ms": 200,
    "num.replica.fetchers": 2,
    "offsets.topic.num.partitions": 2,
    "share.coordinator.state.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
    "log.cleaner.backoff.ms": 1000,
    "group.consumer.min.session.timeout.ms": 6000,
    "group.consumer.session.timeout.ms": 6000,
    "group.consumer.min.heartbeat.interval.ms": 500,
    "group.consumer.heartbeat.interval.ms": 500,
}


class MixedCluster(Cluster):
    """Brokers by id and kind, under a controller of one kind. They reach it through `network`, and each other
    through `links`, if there is such a one. With `hosts`, each broker runs on its own. `releases` names those
    of stock brokers that are not the newest, `release_version` is the one for which the cluster is formatted.
    A stock controller is of `controller_release` at first.
    `environments` are of brokers, which have two log directories if `has_two_directories`.
    """

    def __init__(
        self,
        home: Path,
        kinds: Mapping[int, Kind],
        controller: Kind = "kraftd",
        *,
        network: Proxy | None = None,
        links: Proxy | None = None,
        hosts: Hosts | None = None,
        session_timeout_ms: int = 3000,
        settings: Mapping[str, object] | None = None,
        releases: Mapping[int, str] | None = None,
        release_version: str | None = None,
        controller_release: str | None = None,
        environments: Mapping[int, Mapping[str, str]] | None = None,
        has_two_directories: bool = False,
    ) -> None:
        environments = environments or {}
        timeout = {"broker.session.timeout.ms": session_timeout_ms}
        settings = {
            **SETTINGS,
            "offsets.topic.replication.factor": len(kinds),
            "transaction.state.log.replication.factor": len(kinds),
            "transaction.state.log.min.isr": 2,
            **(settings or {}),
        }
        super().__init__(home, controller, controller_properties=timeout, broker_properties=settings)
        if network is not None:
            network.guard(self.controller)
        if hosts is not None:
            self._open_controller_to(hosts)
        if release_version is not None:
            self.controller.format(self.cluster_id, "--standalone", "--release-version", release_version)
        self.controller.release = controller_release or self.controller.release
        self.start_controller()
        self.ours: dict[int, Controller] = {}
        for broker_id in [one for one, kind in kinds.items() if kind == "kraftd"]:
            port, place = free_port(), home / f"ours-{broker_id}"
            properties = {
                **self._quorum,
                **settings,
                "process.roles": "broker",
                "listeners": f"PLAINTEXT://{HOST}:{port}",
                **_behind_door(links, broker_id, port),
                **_with_directories(place, has_two_directories),
            }
            node = Controller("kraftd", broker_id, place, port, properties)
            node.format(self.cluster_id)
            node.environment |= environments.get(broker_id, {})
            _settle(node, hosts)
            node.start()
            self.ours[broker_id] = node
        self.ids = sorted(kinds)
        stock = [one for one, kind in kinds.items() if kind == "apache"]
        for broker_id in stock:
            port, place = free_port(), home / f"broker-{broker_id}"
            properties = settings | _behind_door(links, broker_id, port)
            properties |= _with_directories(place, has_two_directories)
            broker = Broker(broker_id, place, port, self._quorum, properties)
            broker.release = (releases or {}).get(broker_id, broker.release)
            broker.format(self.cluster_id, "--no-initial-controllers")
            broker.environment |= environments.get(broker_id, {})
            _settle(broker, hosts)
            broker.start()
            self.brokers[broker_id] = broker
        self.wait_for_live_brokers(*self.ids)

    def _open_controller_to(self, hosts: Hosts) -> None:
        """Let the controller, which stays on the test's host, listen for the other hosts, too."""
        port = self.controller.port
        self._quorum = {"controller.quorum.bootstrap.servers": f"{hosts.gateway}:{port}"}
        self.controller.properties |= {
            **self._quorum,
            "listeners": f"CONTROLLER://0.0.0.0:{port}",
            "advertised.listeners": f"CONTROLLER://{hosts.gateway}:{port}",
        }
        self.controller.write_properties()

    @property
    def nodes(self) -> list[Node]:
        return [*super().nodes, *self.ours.values()]

    @property
    def bootstrap(self) -> str:
        return ",".join(self.broker(one).address for one in self.ids)

    @property
    def admin(self) -> AdminClient:
        """librdkafka's admin client, for brokers of both kinds."""
        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        return self._admin

    def broker(self, broker_id: int) -> Node:
        return self.ours.get(broker_id) or self.brokers[broker_id]

    def isrs(self) -> list[list[int]]:
        return [sorted(one.isrs) for _, one in sorted(self.partitions(TOPIC).items())]

    def leaders(self) -> list[int]:
        return [one.leader for _, one in sorted(self.partitions(TOPIC).items())]

    def wait_until_in_sync(self) -> None:
        """Wait until every broker is in both ISRs."""
        wait_until(lambda: self.isrs() == [self.ids] * PARTITIONS, "all brokers are in all ISRs", 60)

    def log(self, broker_id: int, partition: int, topic: str = TOPIC) -> bytes:
        """All segments of a partition's log; nothing before it is made."""
        segments = self.broker(broker_id).home.glob(f"data*/{topic}-{partition}/*.log")
        return b"".join(path.read_bytes() for path in sorted(segments))

    def logs_are_equal(self, topic: str = TOPIC) -> bool:
        """Return whether all brokers have the same bytes."""
        return all(len({self.log(one, n, topic) for one in self.ids}) == 1 for n in range(PARTITIONS))

    def epochs(self, broker_id: int, partition: int, log_end: int) -> list[list[int]]:
        """The leader epochs that have records, each with its first offset."""
        path = self.broker(broker_id).data / f"{TOPIC}-{partition}" / "leader-epoch-checkpoint"
        rows = [list(map(int, line.split())) for line in path.read_text().splitlines()[2:]]
        return [row for row in rows if row[1] < log_end]


def _settle(node: Node, hosts: Hosts | None) -> None:
    """Let a broker run on its own host."""
    if hosts is None:
        return
    node.host = hosts.address(node.node_id)
    listener = f"PLAINTEXT://{node.address}"
    node.properties |= {"listeners": listener, "advertised.listeners": listener}
    node.write_properties()
    node.command_line = hosts.within(node.node_id, node.command)


def _with_directories(home: Path, has_two: bool) -> dict[str, object]:
    return {"log.dirs": f"{home}/data,{home}/data-2"} if has_two else {}


def _behind_door(links: Proxy | None, broker_id: int, port: int) -> dict[str, object]:
    """What lets the other brokers reach a broker through a door, and clients at its port."""
    if links is None:
        return {}
    behind = free_port()
    clients, brokers = f"PLAINTEXT://{HOST}:{port}", f"BROKERS://{HOST}"
    return {
        "listeners": f"{clients},{brokers}:{behind}",
        "advertised.listeners": f"{clients},{brokers}:{links.door(broker_id, behind)}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT",
        "inter.broker.listener.name": "BROKERS",
    }


def is_doubled(log: bytes) -> bool:
    """Return whether a log has a record of an idempotent producer twice.

    Only copies of one epoch of the producer count. If a request is refused for too few replicas and the next
    one is out of order, librdkafka takes another epoch. Then it sends again what is not acknowledged, though
    a former leader may have appended it. No broker can know these again.
    """
    found = [
        (batch.header.producer_id, batch.header.producer_epoch, bytes(one.value or b""))
        for batch in iter_batches(log)
        for one in records(batch)
    ]
    return len(found) != len(set(found))


class Writer:
    """An idempotent producer with acks=all, which writes numbers to both partitions until it is stopped."""

    def __init__(self, bootstrap: str, pause_s: float = 0.0, topic: str = TOPIC) -> None:
        self._topic = topic
        self.acknowledged: list[set[bytes]] = [set(), set()]
        self._pause_s = pause_s
        self._stopped = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "topic.metadata.refresh.interval.ms": 1000,
                "message.timeout.ms": 60_000,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stopped.is_set():
            for partition in (0, 1):
                self._producer.produce(
                    self._topic, b"%08d" % number, partition=partition, callback=self._delivered
                )
            number += 1
            self._producer.poll(0.005)
            self._stopped.wait(self._pause_s)
        assert self._producer.flush(60) == 0

    def _delivered(self, error: object, message: object) -> None:
        if error is None:
            self.acknowledged[message.partition()].add(message.value())  # type: ignore[attr-defined]

    def counts(self) -> list[int]:
        return [len(one) for one in self.acknowledged]

    def wait_for_more(self) -> None:
        """Wait until more records of both partitions are acknowledged."""
        before = self.counts()
        wait_until(
            lambda: all(self.counts()[one] > before[one] + 20 for one in (0, 1)),
            "records are written",
            60,
        )

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(90)


class Reader:
    """A member of a classic group, which keeps the records of both partitions."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self.read: list[set[bytes]] = [set(), set()]
        self._stopped = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 500,
                "session.timeout.ms": 6000,
                "topic.metadata.refresh.interval.ms": 1000,
                "log_level": 0,
            }
        )
        self._consumer.subscribe([TOPIC])
        self._thread = threading.Thread(target=self._run, daemon=True)  # a failed test may not stop it
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.is_set():
            message = self._consumer.poll(0.2)
            if message is not None and message.error() is None:
                self.read[message.partition()].add(bytes(message.value() or b""))
        self._consumer.close()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(60)
