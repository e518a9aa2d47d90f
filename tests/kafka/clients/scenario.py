"""Random events for a quorum of kraftd that serves clients, and for its topics, one after the other.

After each event the quorum is whole again. An archive, which no event touches, follows the quorum and keeps
the whole log.
"""

from __future__ import annotations

import random
import time
from base64 import b64decode
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.wire.error_code import ErrorCode
from testkit.client import Client
from testkit.node import Controller, Node
from testkit.process import wait_until
from tests.kafka.clients.conftest import Served
from tests.kafka.clients.listeners import Addresses, serve_clients
from tests.kafka.snapshots.compacting import COMPACTING, first_segment

# While its node is frozen or down, a reader may fall behind by as much of the log as this keeps.
KEEPS_LITTLE = {
    **COMPACTING,
    "metadata.log.max.record.bytes.between.snapshots": 15_000,
    "internal.metadata.log.segment.bytes": 8192,
    "metadata.max.retention.bytes": 60_000,
}
VOTERS, OBSERVER, ARCHIVE = (100, 101, 102), 300, 400
OWN = "OWN"  # the name of the observer's listener, in place of LOG
FORGETS_NOTHING = {
    "metadata.max.retention.bytes": -1,
    "metadata.max.retention.ms": -1,
    "metadata.log.max.record.bytes.between.snapshots": 1 << 30,
    "metadata.log.max.snapshot.interval.ms": 0,
}
REQUEST_S, WAIT_S = 10, 60
MAJORITY_FROZEN_S = 4
NAMES = 5  # number of topics that are deleted and created again
BULKY = "bulky"  # a topic with long configs
BULKY_CHANGES = 40  # each of 2 KB


class Scene(Served):
    """Three voters and an observer with client listeners, all of which keep little of their logs."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, dict.fromkeys(VOTERS, "kraftd"), controller_properties=KEEPS_LITTLE)
        self.observer = self._apart(OBSERVER)
        self.archive = self._apart(ARCHIVE)
        self.archive.properties.update(FORGETS_NOTHING)
        self.archive.write_properties()
        self.addresses = {one.node_id: serve_clients(one) for one in self.controllers.values()}
        self.observed: Addresses = serve_clients(self.observer)
        self._name_own_listener(self.observer)

    @property
    def nodes(self) -> list[Node]:
        return [self.archive, self.observer, *super().nodes]

    def start(self, *brokers: int) -> None:
        self.start_controllers()
        for one in (self.archive, self.observer):
            one.format(self.cluster_id, "--no-initial-controllers")
            one.start()
        for one in (self.archive, self.observer):
            one.wait_ready()
        self.start_brokers(*brokers)

    def _name_own_listener(self, one: Controller) -> None:
        """Give the observer's listener a name that no other node has: clients then learn of no other."""
        for key, value in one.properties.items():
            one.properties[key] = str(value).replace("LOG", OWN)
        one.write_properties()

    def _apart(self, node_id: int) -> Controller:
        """An observer that is not among the voters."""
        one = self.plan_observer(node_id, "kraftd")
        return self.controllers.pop(one.node_id)


class Scenario:
    """Plays a scene; `played` are the events so far, `ids` the latest id of each topic."""

    def __init__(self, scene: Scene, seed: int) -> None:
        self.scene, self.random = scene, random.Random(seed)
        self.played: list[str] = []
        self.ids: dict[str, str] = {}
        self.hangs: list[str] = []
        self._made = 0
        self._admins = {
            name: AdminClient({"bootstrap.servers": bootstrap, "socket.timeout.ms": 5000, "log_level": 0})
            for name, bootstrap in (
                ("voters", scene.bootstrap),
                ("log", scene.log_bootstrap),
                ("observer", scene.observed.log),
            )
        }

    def __repr__(self) -> str:
        return f"<Scenario {'; '.join(self.played)}>"

    def play(self, steps: int) -> None:
        for _ in range(steps):
            self.random.choice(self.EVENTS)(self)
            self.scene.wait_for_voters(*VOTERS)

    # --- nodes

    def freeze_leader(self) -> None:
        epoch, leader = self.scene.epoch(), self.scene.controller
        self.played.append(f"freeze leader {leader.node_id}")
        leader.freeze()
        self.scene.wait_for_leader(after_epoch=epoch)
        self.recreate_topic()
        leader.thaw()

    def kill_leader(self) -> None:
        epoch, leader = self.scene.epoch(), self.scene.controller
        self.played.append(f"kill leader {leader.node_id}")
        leader.kill()
        self.scene.wait_for_leader(after_epoch=epoch)
        self.create_topics()
        self.scene.start_controllers(leader.node_id)

    def freeze_follower(self) -> None:
        leader = self.scene.wait_for_leader()
        one = self.random.choice([one for one in VOTERS if one != leader])
        self.played.append(f"freeze follower {one}")
        self.scene.controllers[one].freeze()
        self.create_topics()
        self.scene.controllers[one].thaw()

    def freeze_majority(self) -> None:
        """Nothing commits until the majority wakes; then the former leader or another one leads."""
        frozen = self.random.sample(list(self.scene.controllers.values()), 2)
        self.played.append(f"freeze {[one.node_id for one in frozen]}")
        for one in frozen:
            one.freeze()
        time.sleep(self.random.uniform(0.5, MAJORITY_FROZEN_S))
        for one in frozen:
            one.thaw()
        self.create_topics()

    def kill_all(self) -> None:
        controllers = list(self.scene.controllers.values())
        self.random.shuffle(controllers)
        self.played.append(f"kill all, start {[one.node_id for one in controllers]}")
        for one in controllers:
            one.kill()
        self.scene.start_controllers(*[one.node_id for one in controllers])
        self.create_topics()

    def freeze_observer(self) -> None:
        """The observer lags until it has to load a snapshot."""
        self.played.append("freeze the observer")
        self._until(lambda admin: self._create(admin, BULKY), f"{BULKY} is there")
        self.scene.observer.freeze()
        end = self.scene.described().high_watermark  # type: ignore[union-attr]
        for number in range(BULKY_CHANGES):
            self._until(lambda admin, number=number: self._set_long_config(admin, number), "it is set")  # type: ignore[misc]
        leader = self.scene.controller.metadata_dir
        wait_until(lambda: first_segment(leader) > end, f"the leader's log begins behind {end}")
        self.scene.observer.thaw()

    def kill_observer(self) -> None:
        self.played.append("kill the observer")
        self.scene.observer.kill()
        self.create_topics()
        self.scene.observer.start()
        self.scene.observer.wait_ready()

    # --- topics

    def create_topics(self) -> None:
        names = [f"made-{self._made + number}" for number in range(5)]
        self._made += len(names)
        self.played.append(f"create {names[0]} to {names[-1]}")
        self._until(lambda admin: self._create(admin, *names), f"{names} are there")

    def recreate_topic(self) -> None:
        """Delete a topic and create it again.

        From then on every node answers with its new id, and never with the old one.
        """
        name = f"again-{self.random.randrange(NAMES)}"
        self.played.append(f"make {name} again")
        former = self.ids.get(name)
        if former is not None:
            wait_until(lambda: self._delete(former), f"{name} is gone", WAIT_S)
        self._until(lambda admin: self._create(admin, name), f"{name} is there")
        self.ids[name] = self._id_by("log", name, former)
        assert self.ids[name] != former

    def assert_every_node_has_the_new_ids(self) -> None:
        for by in ("log", "observer"):

            def knows_new_ids(by: str = by) -> bool:
                return all(self._id(by, name) == topic_id for name, topic_id in self.ids.items())

            wait_until(knows_new_ids, f"the {by} listener has {self.ids}: {self!r}")

    def _id_by(self, by: str, name: str, former: str | None) -> str:
        found: list[str] = []

        def has_new_id() -> bool:
            found.append(self._id(by, name) or "")
            return found[-1] not in ("", former)

        wait_until(has_new_id, f"{name} has another id than {former}", WAIT_S)
        return found[-1]

    def _id(self, by: str, name: str) -> str | None:
        admin = self._admins[by]
        try:
            described = self._timed(
                by, lambda: admin.describe_topics(TopicCollection([name]), request_timeout=REQUEST_S)[name]
            )
        except KafkaException:
            return None
        return str(described.topic_id)

    def _create(self, admin: AdminClient, *names: str) -> bool:
        with suppress(KafkaException):  # otherwise librdkafka keeps its former controller
            admin.list_topics(timeout=REQUEST_S)
        created = 0
        topics = [NewTopic(name, 1, 1) for name in names]
        for name, future in admin.create_topics(topics, request_timeout=REQUEST_S).items():
            try:
                self._timed(f"create {name}", lambda future=future: future)  # type: ignore[misc]
            except KafkaException as error:
                created += error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
            else:
                created += 1
        return created == len(names)

    def _delete(self, topic_id: str) -> bool:
        """Delete by id: if a frozen node executes the request late, the topic's successor stays."""
        node_id = self.random.choice([one for one in VOTERS if not self.scene.controllers[one].frozen])
        host, _, port = self.scene.addresses[node_id].log.rpartition(":")
        request = DeleteTopicsRequest(
            [DeleteTopicState(None, b64decode(topic_id + "=="))], timeout_ms=1000 * REQUEST_S
        )
        with Client(host, int(port), timeout_s=REQUEST_S) as client:
            (answer,) = client.call(request, 6).responses
        return answer.error_code in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID)

    def _set_long_config(self, admin: AdminClient, number: int) -> bool:
        replicas = ",".join(f"{index}:{number}" for index in range(400))
        entry = ConfigEntry(
            "leader.replication.throttled.replicas", replicas, incremental_operation=AlterConfigOpType.SET
        )
        resource = ConfigResource(ResourceType.TOPIC, BULKY, incremental_configs=[entry])
        with suppress(KafkaException):
            (future,) = admin.incremental_alter_configs([resource], request_timeout=REQUEST_S).values()
            self._timed("alter configs", lambda: future)
            return True
        return False

    def _timed(self, what: str, ask: Callable[[], object]) -> object:
        """The result of a future, which must come within the client's own timeout."""
        began_s = time.monotonic()
        try:
            return ask().result(4 * REQUEST_S)  # type: ignore[attr-defined]
        except TimeoutError:
            self.hangs.append(f"{what}: nothing after {time.monotonic() - began_s:.0f} s")
            raise

    def _until(self, act: Callable[[AdminClient], bool], what: str) -> None:
        admin = self._admins[self.random.choice(("voters", "log"))]
        wait_until(lambda: act(admin), f"{what}: {self!r}", WAIT_S)

    EVENTS: tuple[Callable[[Scenario], None], ...] = (
        freeze_leader,
        freeze_leader,
        kill_leader,
        freeze_follower,
        freeze_majority,
        kill_all,
        freeze_observer,
        kill_observer,
        recreate_topic,
        recreate_topic,
        create_topics,
    )
