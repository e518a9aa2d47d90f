"""Three controllers: how soon they acknowledge a request, and how soon a stock broker shows its effect."""

from __future__ import annotations

import selectors
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Figures
from bench.load import CREATE_TOPICS_VERSION, BenchBroker, Heart, create_ms, take_frames
from bench.measure import NO_LINGER, Plan, percentile
from bench.observers import last_of_many_ms
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import encode_response, parse_response
from kraftd.wire.table import api_key
from testkit.client import Client
from testkit.fetch import KAFKA_VERSION
from testkit.java import AS_KAFKA_STARTS
from testkit.node import Kind
from testkit.process import HOST
from testkit.quorum import Quorum

VOTERS = (100, 101, 102)
METADATA_VERSION = 12
# Longer than the timers of an idle quorum (an idle record every 500 ms), and no multiple of any of them.
APART_S = 2.1
STEP_S = 0.07
# Creates that a broker sees beforehand, back to back. With 400 its JVM still compiles meanwhile.
WARM_UPS = 1500
# After a pause this process itself is slow, so it encodes and decodes this often before the clock starts.
CLIENT_WARM_UPS = 20
POLL_S = 0.0005
GIVE_UP_S = 30
CLIENTS = 50
OBSERVERS = 1000
OLDER_RELEASE = "4.0.0"  # uses Fetch v17


@dataclass(frozen=True)
class QuorumPlan:
    """The size of each measurement, beyond the plan of one controller."""

    propagations: int = 25
    announcements: int = 15
    sustained_s: float = 8


FULL, QUICK = QuorumPlan(), QuorumPlan(propagations=8, announcements=5, sustained_s=3)


@contextmanager
def quorum(
    kind: Kind, properties: Mapping[str, object] | None = None, release_version: str = ""
) -> Iterator[Quorum]:
    """Three fresh controllers of this kind with a leader and the metadata.version of that release."""
    with tempfile.TemporaryDirectory(prefix="kraftd-bench-") as home:
        settings = {"broker.session.timeout.ms": 60_000, **(properties or {})}
        kinds: dict[int, Kind] = dict.fromkeys(VOTERS, kind)
        with Quorum(Path(home), kinds, controller_properties=settings) as three:
            for controller in three.controllers.values():
                controller.jvm = AS_KAFKA_STARTS
            if release_version:
                for controller in three.controllers.values():
                    initial = ("--initial-controllers", three.initial, "--release-version", release_version)
                    controller.format(three.cluster_id, *initial)
            three.start_controllers()
            three.wait_for_voters(*VOTERS)
            yield three


@contextmanager
def client_of_leader(three: Quorum) -> Iterator[Client]:
    """A connection to the leader, and one broker that stays unfenced during the block."""
    port = three.controller.port
    broker = BenchBroker(9, port, three.cluster_id)
    broker.unfence()
    with Heart([broker]), Client(HOST, port, client_id="bench", timeout_s=120) as client:
        yield client


def idle_cpu_percent(three: Quorum, plan: Plan) -> float:
    """The CPU that the three use together without requests, in percent of a core."""
    time.sleep(plan.settle_s)
    nodes = list(three.controllers.values())
    before, began = sum(node.cpu_s() for node in nodes), time.monotonic()
    time.sleep(plan.idle_s)
    return (sum(node.cpu_s() for node in nodes) - before) / (time.monotonic() - began) * 100


def single_creates(client: Client, plan: Plan) -> list[float]:
    for number in range(plan.warm_creates):
        create_ms(client, [f"warm-{number}"])
    return [create_ms(client, [f"single-{number}"]) for number in range(plan.creates)]


def creates_per_s(port: int, seconds: float) -> float:
    """Topics created a second by clients that each wait for an answer before the next request.

    Raises RuntimeError if a topic is refused, ConnectionError if the server closes a connection.
    """
    selector = selectors.DefaultSelector()
    for number in range(CLIENTS):
        client = Client(HOST, port, client_id=f"bench-{number}")
        client.socket.sendall(_create_frame(client, number, 0))
        selector.register(client.socket, selectors.EVENT_READ, (client, number, bytearray()))
    created, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        for key, _ in selector.select(0.2):
            client, number, buffer = key.data
            chunk = client.socket.recv(1 << 16)
            if not chunk:
                raise ConnectionError("the server closed a connection under load")
            buffer += chunk
            done, answer = take_frames(buffer)
            if done:
                _check_created(answer)
                created += 1
                client.socket.sendall(_create_frame(client, number, client.correlation_id))
    took_s = time.perf_counter() - began
    for key in list(selector.get_map().values()):
        key.data[0].close()
    return created / took_s


def _create_frame(client: Client, number: int, round_number: int) -> bytes:
    topic = CreatableTopic(f"sustained-{number}-{round_number}", 1, 1)
    return client.frame(CreateTopicsRequest([topic], 60_000, False), CREATE_TOPICS_VERSION)


def _check_created(answer: bytes) -> None:
    _, response = parse_response(api_key(CreateTopicsRequest()), CREATE_TOPICS_VERSION, answer)
    code = response.topics[0].error_code  # type: ignore[attr-defined]
    if code:
        raise RuntimeError(f"a topic was refused: error {code}")


def propagation_ms(three: Quorum, count: int, release: str = KAFKA_VERSION) -> list[float]:
    """Milliseconds from a create sent to the leader until a stock broker shows it, on an idle cluster.

    The broker starts with the flags of Kafka's own scripts. It gets requests from the create's first byte on:
    an idle broker's first answer takes longer than the controllers need. Between the pause and the create no
    server gets a request.
    """
    three.start_brokers(1, releases={1: release}, jvm=AS_KAFKA_STARTS)
    times_ms = []
    with (
        Client(HOST, three.controller.port, timeout_s=60) as leader,
        Client(HOST, three.brokers[1].port) as broker,
    ):
        for number in range(-WARM_UPS, count):
            if number >= 0:
                time.sleep(APART_S + STEP_S * (number % 8))
            times_ms.append(_seen_ms(leader, broker, f"seen-{number + WARM_UPS}"))
    return times_ms[WARM_UPS:]


def _seen_ms(leader: Client, broker: Client, name: str) -> float:
    """Milliseconds from a create sent until the broker shows the topic; RuntimeError if it is refused."""
    create = CreateTopicsRequest([CreatableTopic(name, 1, 1)], 60_000, False)
    request = MetadataRequest([MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    _warm_up_client(broker, request)
    frame = leader.frame(create, CREATE_TOPICS_VERSION)
    began = time.perf_counter()
    leader.socket.sendall(frame)
    while broker.call(request, METADATA_VERSION).topics[0].error_code != ErrorCode.NONE:
        if time.perf_counter() - began > GIVE_UP_S:
            raise RuntimeError(f"the broker does not show {name}")
        time.sleep(POLL_S)
    taken_ms = (time.perf_counter() - began) * 1000
    _check_created(leader.receive_frame())
    return taken_ms


def _warm_up_client(client: Client, request: MetadataRequest) -> None:
    """Encode the request and decode an answer to it, without a server."""
    topic = MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name="warm")
    key, response = api_key(request), MetadataResponse(topics=[topic])
    for correlation_id in range(CLIENT_WARM_UPS):
        client.frame(request, METADATA_VERSION)
        answer = b"".join(encode_response(key, METADATA_VERSION, correlation_id, response))
        parse_response(key, METADATA_VERSION, answer[4:])


def three_controllers(kind: Kind, plan: Plan) -> Figures:
    """All measurements of three controllers: idle, creates, a broker's view, then without linger."""
    more = FULL if plan == Plan() else QUICK
    with quorum(kind) as three:
        idle = idle_cpu_percent(three, plan)
        with client_of_leader(three) as client:
            default = single_creates(client, plan)
            bulk = [
                create_ms(client, [f"bulk-{run}-{number}" for number in range(plan.bulk_topics)])
                for run in range(plan.bulks)
            ]
            sustained = creates_per_s(three.controller.port, more.sustained_s)
    with quorum(kind, NO_LINGER) as three, client_of_leader(three) as client:
        eager = single_creates(client, plan)
    with quorum(kind) as three:
        seen = propagation_ms(three, more.propagations)
        observers_ms = last_of_many_ms(three.controller.port, three.cluster_id, OBSERVERS, more.announcements)
    with quorum(kind, release_version=OLDER_RELEASE.rpartition(".")[0]) as three:
        seen_by_older = propagation_ms(three, more.propagations, OLDER_RELEASE)
    return {
        "three_idle_cpu_percent": idle,
        "three_create_p50_ms": statistics.median(default),
        "three_create_p99_ms": percentile(default, 0.99),
        "three_create_no_linger_p50_ms": statistics.median(eager),
        "three_create_1000_topics_ms": statistics.median(bulk),
        "three_creates_per_s": sustained,
        "three_propagation_p50_ms": statistics.median(seen),
        "three_propagation_v17_p50_ms": statistics.median(seen_by_older),
        "three_observers_last_ms": statistics.median(observers_ms),
    }
