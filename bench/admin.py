"""A mixed load of administration, in plaintext and under mTLS; large ISR changes; TLS handshakes."""

from __future__ import annotations

import multiprocessing
import socket
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from bench.figures import Figures
from bench.load import BenchBroker, Heart
from bench.measure import Plan, percentile
from kraftd.acl import AclOperation, AclPatternType, AclPermission, AclResourceType
from kraftd.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraftd.messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from kraftd.messages.create_acls_request import AclCreation, CreateAclsRequest
from kraftd.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kraftd.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.net.tls.contexts import TlsContexts
from kraftd.security.authorizer_settings import CLASS_NAME
from kraftd.security.tls_settings import StoreSettings, TlsSettings
from kraftd.wire.frames import parse_response
from kraftd.wire.message import Message
from kraftd.wire.table import api_key
from testkit.certificates import Authority
from testkit.client import Client
from testkit.cluster import Cluster
from testkit.java import AS_KAFKA_STARTS
from testkit.node import Kind
from testkit.process import HOST

ADMINS = 4
BROKERS = (1, 2, 3)
BURST_PARTITIONS = 1_000
LARGE_PARTITIONS = (10_000, 5_000, 2_000)  # after a refusal, a fresh controller gets the next smaller request
BACKGROUND_ACLS = 1_000
WARM_CHANGES = 10
WARM_S = 4.0
LOAD_S = 8.0
ALL_ISR, LESS_ISR = (1, 2, 3), (1, 2)
LISTENER = "listener.name.controller."
CREATE_TOPICS, DELETE_TOPICS, ALTER_CONFIGS, ACLS, REASSIGN, ALTER_PARTITION = 7, 6, 1, 3, 0, 3


class Server(NamedTuple):
    """A controller under measurement; `tls` has a context of each principal, none in plaintext."""

    cluster: Cluster
    tls: dict[str, ssl.SSLContext]
    epochs: dict[int, int]  # of its brokers, by id

    def connect(self, principal: str, client_id: str = "bench") -> Client:
        tls = self.tls.get(principal)
        return Client(HOST, self.cluster.controller.port, client_id=client_id, timeout_s=120, tls=tls)


@contextmanager
def guarded(kind: Kind, *, by_tls: bool) -> Iterator[Server]:
    """A fresh controller with the authorizer, and three brokers that stay unfenced.

    In plaintext every client is a super user. By TLS an admin has its rights by ACLs, among a thousand
    others.
    """
    with tempfile.TemporaryDirectory(prefix="kraftd-bench-") as home, ExitStack() as stack:
        authority, tls = Authority(), {}
        properties: dict[str, object] = {
            "broker.session.timeout.ms": 60_000,
            "authorizer.class.name": CLASS_NAME,
            "super.users": "User:ANONYMOUS;User:node;User:root",
        }
        if by_tls:
            tls = {name: client_context(authority, name) for name in ("root", "admin")}
            properties |= tls_properties(authority, Path(home))
        cluster = stack.enter_context(Cluster(Path(home), kind, controller_properties=properties))
        cluster.controller.jvm = AS_KAFKA_STARTS
        cluster.controller.tls = tls.get("root")
        cluster.start_controller()
        server = Server(cluster, tls, {})
        port, root = cluster.controller.port, tls.get("root")
        brokers = [BenchBroker(one, port, cluster.cluster_id, tls=root) for one in BROKERS]
        for broker in brokers:
            broker.unfence()
        allow_admin(server)
        stack.enter_context(Heart(brokers))
        yield server._replace(epochs={one.broker_id: one.broker_epoch for one in brokers})


def client_context(authority: Authority, name: str) -> ssl.SSLContext:
    issued = authority.issue(f"CN={name}")
    own = StoreSettings(type="PEM", key=issued.key_pem, certificates=issued.chain_pem)
    trusted = StoreSettings(type="PEM", certificates=authority.pem)
    return TlsContexts(TlsSettings(keystore=own, truststore=trusted)).client


def tls_properties(authority: Authority, home: Path) -> dict[str, object]:
    """mTLS on the controller listener, with certificates of this authority."""
    return {
        "listener.security.protocol.map": "CONTROLLER:SSL,PLAINTEXT:PLAINTEXT",
        f"{LISTENER}ssl.keystore.type": "PEM",
        f"{LISTENER}ssl.keystore.location": authority.issue("CN=node").write_pem(home / "node.pem"),
        f"{LISTENER}ssl.truststore.type": "PEM",
        f"{LISTENER}ssl.truststore.location": authority.write_pem(home / "ca.pem"),
        f"{LISTENER}ssl.client.auth": "required",
        f"{LISTENER}ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
    }


def acl(type: AclResourceType, name: str, principal: str, operation: AclOperation) -> AclCreation:
    return AclCreation(type, name, AclPatternType.LITERAL, principal, "*", operation, AclPermission.ALLOW)


def allow_admin(server: Server) -> None:
    """Allow User:admin all operations, and add a thousand other ACLs."""
    everything = [
        acl(AclResourceType.CLUSTER, "kafka-cluster", "User:admin", AclOperation.ALL),
        acl(AclResourceType.TOPIC, "*", "User:admin", AclOperation.ALL),
    ]
    others = [
        acl(AclResourceType.TOPIC, f"background-{number}", "User:other", AclOperation.READ)
        for number in range(BACKGROUND_ACLS)
    ]
    with server.connect("root") as client:
        for creations in (everything, others):
            checked(client.call(CreateAclsRequest(creations), ACLS))


def checked(answer: Any) -> Any:
    """The answer, if it has no error code anywhere. Raises RuntimeError otherwise."""
    codes: list[int] = []
    _collect_errors(answer, codes)
    if any(codes):
        raise RuntimeError(f"refused: {answer!r}"[:500])
    return answer


def _collect_errors(answer: Any, codes: list[int]) -> None:
    for field in type(answer).__struct_fields__:
        value = getattr(answer, field)
        if field == "error_code":
            codes.append(value)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, Message):
                    _collect_errors(item, codes)


# -- the load


def admin_requests(number: int, round_number: int) -> Iterator[tuple[Message, int]]:
    """One admin's requests in a round, each with its version."""
    name, principal = f"load-{number}-{round_number}", f"User:load-{number}"
    topic = CreatableTopic(name, -1, -1, [CreatableReplicaAssignment(0, (1, 2))])
    yield CreateTopicsRequest([topic], 60_000), CREATE_TOPICS
    config = AlterConfigsResource(2, name, [AlterableConfig("retention.ms", 0, "3600000")])
    yield IncrementalAlterConfigsRequest([config]), ALTER_CONFIGS
    yield CreateAclsRequest([acl(AclResourceType.TOPIC, name, principal, AclOperation.READ)]), ACLS
    moved = [ReassignableTopic(name, [ReassignablePartition(0, (2, 1))])]
    yield AlterPartitionReassignmentsRequest(60_000, topics=moved), REASSIGN
    exactly = DeleteAclsFilter(AclResourceType.TOPIC, name, AclPatternType.LITERAL, principal, "*", 1, 1)
    yield DeleteAclsRequest([exactly]), ACLS
    yield DeleteTopicsRequest([DeleteTopicState(name)], timeout_ms=60_000), DELETE_TOPICS


class IsrChanges:
    """One broker's partitions, whose ISR shrinks and grows by one request for all."""

    def __init__(self, client: Client, name: str, partition_count: int, topic_count: int) -> None:
        self.topics: dict[bytes, list[int]] = {}  # topic id -> partition epochs
        rows = [CreatableReplicaAssignment(index, BROKERS) for index in range(partition_count // topic_count)]
        for number in range(topic_count):
            topic = CreatableTopic(f"{name}-{number}", -1, -1, rows)
            answer = checked(client.call(CreateTopicsRequest([topic], 60_000), CREATE_TOPICS))
            self.topics[answer.topics[0].topic_id] = [0] * len(rows)
        self.shrunk = False

    def request(self, epochs: dict[int, int]) -> Message:
        """The next change: broker 3 leaves the ISR, or returns to it."""
        isr = ALL_ISR if self.shrunk else LESS_ISR
        states = [BrokerState(one, epochs[one]) for one in isr]
        topics = [
            TopicData(
                topic_id, [PartitionData(at, 0, (), states, 0, epoch) for at, epoch in enumerate(known)]
            )
            for topic_id, known in self.topics.items()
        ]
        return AlterPartitionRequest(1, epochs[1], topics)

    def apply(self, answer: Any) -> None:
        """Apply the granted changes to the known epochs."""
        checked(answer)
        self.shrunk = not self.shrunk
        for topic in answer.topics:
            for partition in topic.partitions:
                self.topics[topic.topic_id][partition.partition_index] = partition.partition_epoch


def timed(client: Client, request: Message, version: int) -> tuple[float, Any]:
    """Milliseconds until the answer came, without the client's codec, and the answer."""
    frame = client.frame(request, version)
    began = time.perf_counter()
    client.socket.sendall(frame)
    received = client.receive_frame()
    took_ms = (time.perf_counter() - began) * 1000
    return took_ms, parse_response(api_key(request), version, received)[1]


def _administer(pipe: Connection, server: Server, number: int) -> None:
    """Run one admin, which sends one request after the other; the target of a process."""
    with server.connect("admin", f"admin-{number}") as client:
        begins_s = pipe.recv()
        times_ms: list[float] = []
        for round_number in count():
            for request, version in admin_requests(number, round_number):
                took_ms, answer = timed(client, request, version)
                checked(answer)
                now_s = time.time()
                if now_s > begins_s + LOAD_S:
                    pipe.send(times_ms)
                    return
                if now_s > begins_s:
                    times_ms.append(took_ms)


def _change_isrs(pipe: Connection, server: Server, _: int) -> None:
    """Send bursts of 1,000 partitions, four a second; the target of a process."""
    with server.connect("admin", "isr") as client:
        changes = IsrChanges(client, "bursts", BURST_PARTITIONS, 1)
        begins_s = pipe.recv()
        times_ms: list[float] = []
        while True:
            took_ms, answer = timed(client, changes.request(server.epochs), ALTER_PARTITION)
            changes.apply(answer)
            now_s = time.time()
            if now_s > begins_s + LOAD_S:
                pipe.send(times_ms)
                return
            if now_s > begins_s:
                times_ms.append(took_ms)
            time.sleep(0.25)


def mixed_load(server: Server) -> tuple[list[float], list[float]]:
    """Milliseconds of the admins' requests, and of the bursts, during LOAD_S."""
    pipes, processes = [], []
    targets: list[Callable[[Connection, Server, int], None]] = [_administer] * ADMINS + [_change_isrs]
    for number, target in enumerate(targets):
        here, there = multiprocessing.Pipe()
        process = multiprocessing.Process(target=target, args=(there, server, number), daemon=True)
        process.start()
        pipes.append(here)
        processes.append(process)
    begins_s = time.time() + WARM_S
    for pipe in pipes:
        pipe.send(begins_s)
    *admins, bursts = [pipe.recv() for pipe in pipes]
    for process in processes:
        process.join()
    return [one for times_ms in admins for one in times_ms], bursts


def handshakes_per_cpu_s(server: Server, seconds: float) -> float:
    """TLS handshakes with certificates on both sides per CPU second of the controller."""
    node, context = server.cluster.controller, server.tls["root"]

    def shake() -> None:
        with (
            socket.create_connection((HOST, node.port)) as plain,
            context.wrap_socket(plain, server_hostname=HOST),
        ):
            pass

    for _ in range(500):  # so that the JVM has compiled the code for it
        shake()
    done, before, ends_s = 0, node.cpu_s(), time.monotonic() + seconds
    while time.monotonic() < ends_s:
        shake()
        done += 1
    return done / max(node.cpu_s() - before, 0.01)


def largest_isr_changes(kind: Kind, times: int) -> Figures:
    """The size of the largest granted request, and its wall and CPU time."""
    for partitions in LARGE_PARTITIONS:
        try:
            with guarded(kind, by_tls=False) as server:
                wall_ms, cpu_ms = large_isr_changes(server, partitions, times)
        except RuntimeError as refused:
            sys.stderr.write(f"AlterPartition of {partitions:,} partitions: {refused}\n")
            continue
        return {
            "alter_partition_count": partitions,
            "alter_partition_10000_ms": wall_ms * 10_000 / partitions,
            "alter_partition_10000_cpu_ms": cpu_ms * 10_000 / partitions,
        }
    return {}


def large_isr_changes(server: Server, count: int, times: int) -> tuple[float, float]:
    """Median wall and mean CPU milliseconds (of the controller) of one request of this many partitions."""
    node = server.cluster.controller
    with server.connect("admin") as client:
        changes = IsrChanges(client, f"large-{count}", count, 10)
        times_ms, before = [], 0.0
        for number in range(WARM_CHANGES + times):
            if number == WARM_CHANGES:
                before = node.cpu_s()
            took_ms, answer = timed(client, changes.request(server.epochs), ALTER_PARTITION)
            changes.apply(answer)
            times_ms.append(took_ms)
    return statistics.median(times_ms[WARM_CHANGES:]), (node.cpu_s() - before) / times * 1000


def admin(kind: Kind, plan: Plan) -> Figures:
    """All measurements, in plaintext and under mTLS."""
    found: Figures = {}
    for prefix, by_tls in (("admin", False), ("admin_tls", True)):
        with guarded(kind, by_tls=by_tls) as server:
            times_ms, bursts = mixed_load(server)
            found[f"{prefix}_ops_per_s"] = (len(times_ms) + len(bursts)) / LOAD_S
            found[f"{prefix}_p50_ms"] = statistics.median(times_ms)
            found[f"{prefix}_p99_ms"] = percentile(times_ms + bursts, 0.99)
            found[f"{prefix}_burst_p50_ms"] = statistics.median(bursts)
            if by_tls:
                found["tls_handshakes_per_cpu_s"] = handshakes_per_cpu_s(server, plan.load_s)
    return found | largest_isr_changes(kind, 4 * plan.bulks)
