"""Two whole Kafkas, a stock combined node and kraftd's, which get the same requests of clients.

Both run for the whole of a test. Their answers are made comparable: ids are translated, and times, ports and
error texts masked.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Self

from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraftd.messages.metadata_request import MetadataRequest
from kraftd.messages.produce_request import ProduceRequest
from kraftd.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftd.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftd.types import METADATA_TOPIC
from kraftd.wire.api import ApiKey
from kraftd.wire.message import Message
from kraftd.wire.table import api_key
from testkit.client import Client
from testkit.node import Controller, Kind
from testkit.process import HOST, free_port, wait_until
from tests.kafka.broker.views import view
from tests.kafka.differential.pair import CLUSTER_ID, replaced

SUPER, SOME_RIGHTS, NO_RIGHTS = "ANONYMOUS", "alice", "bob"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
RUNNING: dict[Kind, str] = {"kraftd": '"state":"RUNNING"', "apache": "Kafka Server started"}
PROPERTIES: dict[str, object] = {
    "process.roles": "broker,controller",
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,USERS:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "CLIENTS",
    "listener.name.users.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.users.plain.sasl.jaas.config": (
        f"{_PLAIN} required user_{SOME_RIGHTS}={SOME_RIGHTS} user_{NO_RIGHTS}={NO_RIGHTS};"
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:{SUPER}",
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 3,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "transaction.partition.verification.enable": "false",
    "num.partitions": 2,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
    "broker.session.timeout.ms": 30_000,  # a busy machine fences neither
    "group.consumer.assignment.interval.ms": 0,
    "group.share.assignment.interval.ms": 0,
    "group.share.max.record.lock.duration.ms": 3_600_000,
    "num.network.threads": 1,
    "num.io.threads": 2,
    # Nothing happens because time goes by.
    "log.retention.ms": -1,
    "log.retention.check.interval.ms": 3_600_000,
    "log.initial.task.delay.ms": 3_600_000,
    "log.cleaner.backoff.ms": 3_600_000,
    "producer.id.expiration.check.interval.ms": 3_600_000,
    "unstable.api.versions.enable": "false",
}


class Side:
    """One of the two nodes, with a connection for each principal and a translation of ids."""

    def __init__(self, kind: Kind, home: Path) -> None:
        self.kind, self.home = kind, home / kind
        self.clients_port, self.users_port, controller_port = free_port(), free_port(), free_port()
        self.ports = {self.clients_port: "CLIENTS", self.users_port: "USERS", controller_port: "CONTROLLER"}
        listeners = ",".join(f"{name}://{HOST}:{port}" for port, name in self.ports.items())
        self.metrics_port = free_port()  # of kraftd's
        quorum: dict[str, object] = {
            "listeners": listeners,
            "controller.quorum.bootstrap.servers": f"{HOST}:{controller_port}",
        }
        if kind == "kraftd":
            quorum["kraftd.metrics.listener"] = f"{HOST}:{self.metrics_port}"
        self.node = Controller(kind, 1, self.home, controller_port, {**PROPERTIES, **quorum})
        # Ids that this side drew -> ids that both sides share, and the reverse.
        self.ours: dict[bytes | str, bytes | str] = {}
        self.theirs: dict[bytes | str, bytes | str] = {}
        self.sessions: dict[int, int] = {}  # shared ids of fetch sessions -> this side's
        self._clients: dict[str, Client] = {}

    def __repr__(self) -> str:
        return f"<Side {self.node!r}>"

    def start(self) -> None:
        self.node.format(CLUSTER_ID, "--standalone")
        self.node.start()

    def wait_ready(self) -> None:
        self.node.wait_for_log(RUNNING[self.kind])

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
        self.node.kill()

    def client(self, principal: str) -> Client:
        """The connection of a principal; opened, and authenticated, if there is none."""
        known = self._clients.get(principal)
        if known is None:
            known = Client(HOST, self.clients_port if principal == SUPER else self.users_port)
            self._clients[principal] = known
            if principal != SUPER:
                known.call(SaslHandshakeRequest("PLAIN"), 1)
                token = f"\0{principal}\0{principal}".encode()
                answer = known.call(SaslAuthenticateRequest(token), 2)
                assert not answer.error_code, answer
        return known

    def ask(self, request: Message, version: int, principal: str = SUPER) -> Message | str:
        """The answer, or what happened in its place."""
        client = self.client(principal)
        own = replaced(request, self.theirs)
        try:
            if isinstance(own, ProduceRequest) and own.acks == 0:
                client.socket.sendall(client.frame(own, version))
                client.call(ApiVersionsRequest(), 0)
                return "no answer"
            answer: Message = client.call(own, version)
        except (ConnectionError, TimeoutError) as error:
            client.close()
            del self._clients[principal]
            return "closed" if isinstance(error, ConnectionError) else "no answer in time"
        return answer

    def same(self, own: bytes | str, shared: bytes | str) -> None:
        """Map this side's id to the shared one, in both directions."""
        self.ours[own] = shared
        self.theirs[shared] = own

    def view(self, request: Message, version: int, answer: Message | str) -> Any:
        """An answer in comparable form."""
        if isinstance(answer, str):
            return answer
        shown = view(replaced(answer, self.ours), version, api_key(request))
        return self._masked("", shown)

    def _masked(self, name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._masked(key, item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._masked(name, item) for item in value]
        if isinstance(value, int) and name == "port":
            return self.ports.get(value, value)
        if isinstance(value, str):
            for port, listener in self.ports.items():
                value = value.replace(f":{port}", f":{listener}")
            return value.replace(str(self.home), "HOME")
        return value


class BrokerPair:
    """Both sides; the first is the oracle."""

    def __init__(self, home: Path) -> None:
        self.sides = [Side("apache", home), Side("kraftd", home)]
        self.topic_ids: dict[str, bytes] = {}  # shared ids of the topics there are
        self._topics_seen = 0

    def __repr__(self) -> str:
        return f"<BrokerPair {self.sides!r}>"

    def __enter__(self) -> Self:
        try:
            for side in self.sides:
                side.start()
            for side in self.sides:
                side.wait_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for side in self.sides:
            side.close()

    def ask(self, request: Message, version: int, principal: str = SUPER) -> list[Message | str]:
        """The answers of both."""
        return [side.ask(request, version, principal) for side in self.sides]

    def views(self, request: Message, version: int, answers: list[Message | str]) -> list[Any]:
        return [side.view(request, version, answer) for side, answer in zip(self.sides, answers, strict=True)]

    def settle(self) -> None:
        """Wait until both nodes serve the same topics, whose ids are then known."""
        known: list[dict[str, int] | None] = []

        def is_settled() -> bool:
            known[:] = [self._topics_of(side) for side in self.sides]
            if any(one is None for one in known) or known[0] != known[1]:
                return False
            return all(self._serves(side, known[0] or {}) for side in self.sides)

        try:
            wait_until(is_settled, "both nodes serve the same topics", 30)
        except TimeoutError as error:
            raise TimeoutError(f"{error}: {known}; None is without a leader") from None
        time.sleep(0.03)  # Kafka applies configs after topics

    def _topics_of(self, side: Side) -> dict[str, int] | None:
        """The topics of a side and their numbers of partitions; None while one has no leader."""
        answer: Any = side.ask(MetadataRequest(topics=None), 12)
        topics = [topic for topic in answer.topics if topic.name != METADATA_TOPIC]
        if any(row.error_code or row.leader_id < 0 for topic in topics for row in topic.partitions):
            return None
        for topic in topics:
            if topic.topic_id not in side.ours:
                number = sum(1 for one in side.ours if isinstance(one, bytes) and len(one) == 16)
                side.same(topic.topic_id, self._shared_id(topic.name, number, side))
        self.topic_ids = {topic.name: bytes(side.ours[topic.topic_id]) for topic in topics}  # type: ignore[arg-type]
        return {topic.name: len(topic.partitions) for topic in topics}

    @staticmethod
    def _shared_id(name: str, number: int, side: Side) -> bytes:
        """The id that stands for this incarnation of a topic on both sides."""
        before = sum(
            1
            for one in side.theirs
            if isinstance(one, bytes) and one[:11] == f"{name:.11}".encode().ljust(11)
        )
        return f"{name:.11}".encode().ljust(11) + before.to_bytes(5, "big")

    def _serves(self, side: Side, topics: dict[str, int]) -> bool:
        rows = [
            ListOffsetsTopic(name, [ListOffsetsPartition(index, -1, -1) for index in range(count)])
            for name, count in topics.items()
        ]
        answer: Any = side.ask(ListOffsetsRequest(-1, 0, rows), 7)
        return not any(row.error_code for topic in answer.topics for row in topic.partitions)

    def learn(self, answers: list[Message | str], key: ApiKey) -> None:
        """Map the ids that both sides drew in an answer."""
        if any(isinstance(answer, str) for answer in answers):
            return
        kafka: Any
        kraftd: Any
        kafka, kraftd = answers
        if key == ApiKey.JOIN_GROUP and kafka.member_id and kraftd.member_id:
            self._pair_up(kafka.member_id, kraftd.member_id)

    def _pair_up(self, kafka: Any, kraftd: Any) -> None:
        """Kafka's id is the one that both share."""
        self.sides[0].same(kafka, kafka)
        if kraftd not in self.sides[1].ours:
            self.sides[1].same(kraftd, kafka)
