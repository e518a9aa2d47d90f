"""A kraftd broker among stock ones, beside the same brokers all stock, in one run.

Measured are a leader, a follower, an idle follower, a killed leader, and a broker of very many partitions.
Controllers are Apache Kafka's. README.md describes how figures are taken.
"""

from __future__ import annotations

import selectors
import statistics
import time
from collections.abc import Sequence

from bench.figures import Figures
from bench.load import SHORT_LOGS, SHORT_TOPIC, drive
from bench.many_replicas import IDLE_S, IDLE_SETTLE_S, OPEN_FILES, SESSION_MS, many, many_followed
from bench.measure import Plan, percentile
from bench.replica_cluster import (
    GIVE_UP_S,
    PARTITIONS_A_TOPIC,
    PRODUCE_VERSION,
    RECORD,
    ReplicaCluster,
    check_produced,
    produce_request,
    replica_cluster,
)
from kraftd.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraftd.wire.api import ApiKey
from kraftd.wire.frames import parse_response
from testkit.client import Client
from testkit.node import Kind
from testkit.process import HOST, wait_until

STOCK: Kind = "apache"
TOPIC = "t"
# Records of a request, by the name of its figure.
LEADER_SIZES = {"1": 1, "16_kib": 150}
FOLLOWER_SIZES = {"16_kib": 150, "1_mib": 9_400}
FOLLOWED = 3  # partitions
WARM_S, QUICK_WARM_S = 15, 5
ROUND_TRIPS = 500
IDLE, QUICK_IDLE = 10_000, 1_000
LED = 1_000
KILLS, QUICK_KILLS = 3, 1
RETRY_S = 0.01
ANSWER_MS = 1_000  # a partition whose replicas are not in sync yet holds an answer back no longer
FAILOVER_LIMIT_S = 120


def _is_quick(plan: Plan) -> bool:
    return plan.starts < Plan().starts


# -- the leader


def leader(kind: Kind, plan: Plan) -> Figures:
    """acks=all at a leader whose two followers are stock: one record's time, and the leader's CPU."""
    warm_s = QUICK_WARM_S if _is_quick(plan) else WARM_S
    with replica_cluster({1: kind, 2: STOCK, 3: STOCK}, broker_properties=SHORT_LOGS) as cluster:
        cluster.create(TOPIC, [[1, 2, 3]], SHORT_TOPIC)
        node, figures = cluster.broker(1), {}
        for name, records in LEADER_SIZES.items():
            frames = frames_of(cluster, [0], records)
            drive(node.port, frames, plan.depth, warm_s)
            costs_us, rates = [], []
            for _ in range(plan.loads):
                before_s = node.cpu_s()
                load = drive(node.port, frames, plan.depth, plan.load_s)
                check_produced(load.last_answer)
                costs_us.append((node.cpu_s() - before_s) / (load.answers * records) * 1e6)
                rates.append(load.answers / load.wall_s)
            figures[f"replication_leader_{name}_us"] = statistics.median(costs_us)
            figures[f"replication_leader_{name}_per_s"] = statistics.median(rates)
        took_ms = round_trips_ms(cluster)
    return {
        "replication_acknowledged_p50_ms": statistics.median(took_ms),
        "replication_acknowledged_p99_ms": percentile(took_ms, 0.99),
        **figures,
    }


def frames_of(cluster: ReplicaCluster, partitions: Sequence[int], records: int) -> list[bytes]:
    """A request for each of these partitions, whose leader is broker 1."""
    with cluster.client_of(1) as client:
        return [
            client.frame(produce_request(TOPIC, [index], records), PRODUCE_VERSION) for index in partitions
        ]


def round_trips_ms(cluster: ReplicaCluster) -> list[float]:
    """Milliseconds until all replicas have a record, one after another, after as many for warming up."""
    took_ms = []
    with cluster.client_of(1) as client:
        frame = client.frame(produce_request(TOPIC, [0], 1), PRODUCE_VERSION)
        for _ in range(2 * ROUND_TRIPS):
            began = time.perf_counter()
            client.socket.sendall(frame)
            answer = client.receive_frame()
            took_ms.append((time.perf_counter() - began) * 1000)
            check_produced(answer)
    return took_ms[ROUND_TRIPS:]


# -- the follower


def follower(kind: Kind, plan: Plan) -> Figures:
    """CPU of a follower by the bytes that it replicates from a stock leader."""
    warm_s = QUICK_WARM_S if _is_quick(plan) else WARM_S
    with replica_cluster({1: STOCK, 2: kind}, broker_properties=SHORT_LOGS) as cluster:
        cluster.create(TOPIC, [[1, 2]] * FOLLOWED, SHORT_TOPIC)
        leading, node, figures = cluster.broker(1), cluster.broker(2), {}
        for name, records in FOLLOWER_SIZES.items():
            frames = frames_of(cluster, range(FOLLOWED), records)
            drive(leading.port, frames, plan.depth, warm_s)
            costs_s, rates = [], []
            for _ in range(plan.loads):
                before_s = node.cpu_s()
                load = drive(leading.port, frames, plan.depth, plan.load_s)
                check_produced(load.last_answer)
                gigabytes = load.answers * records * len(RECORD) / 1e9
                costs_s.append((node.cpu_s() - before_s) / gigabytes)
                rates.append(gigabytes * 1000 / load.wall_s)
            figures[f"replication_follower_{name}_s_per_gb"] = statistics.median(costs_s)
            figures[f"replication_follower_{name}_mb_s"] = statistics.median(rates)
    return figures


def idle_follower(kind: Kind, plan: Plan) -> Figures:
    """CPU and memory of a follower of very many partitions without records."""
    count = QUICK_IDLE if _is_quick(plan) else IDLE
    with replica_cluster({1: STOCK, 2: kind}, broker_properties=OPEN_FILES) as cluster:
        node = cluster.broker(2)
        for number in range(count // PARTITIONS_A_TOPIC):
            cluster.create(f"idle-{number}", [[1, 2]] * PARTITIONS_A_TOPIC)
        time.sleep(IDLE_SETTLE_S)
        before_s, began = node.cpu_s(), time.monotonic()
        time.sleep(IDLE_S)
        return {
            "replication_idle_cpu_percent": (node.cpu_s() - before_s) / (time.monotonic() - began) * 100,
            "replication_idle_rss_mib": node.rss_mib(),
        }


# -- a leader killed


def killed_leader(kind: Kind, plan: Plan) -> Figures:
    """kill -9 of the leader of 1,000 partitions among brokers of its kind, and among stock ones."""
    kills, warm_s = (QUICK_KILLS, QUICK_WARM_S) if _is_quick(plan) else (KILLS, WARM_S)
    figures = failover({1: kind, 2: STOCK, 3: STOCK}, "replication_killed", kills, warm_s)
    if kind == STOCK:
        alone = {key.replace("_killed", "_killed_alone"): value for key, value in figures.items()}
    else:
        alone = failover({1: kind, 2: kind, 3: kind}, "replication_killed_alone", kills, warm_s)
    return figures | alone


def failover(kinds: dict[int, Kind], name: str, kills: int, warm_s: float) -> Figures:
    """Seconds from the signal to the first write acknowledged by one, and by the last of the partitions."""
    session = {"broker.session.timeout.ms": SESSION_MS}
    first, last = [], []
    with replica_cluster(kinds, session) as cluster:
        cluster.create(TOPIC, [[1, 2, 3], [1, 3, 2]] * (LED // 2))
        for _ in range(kills):
            wait_until(lambda: takes_writes(cluster), "broker 1 leads all", GIVE_UP_S, 0.1)
            node, end = cluster.broker(1), time.monotonic() + warm_s
            while time.monotonic() < end:
                takes_writes(cluster)
            # A partition whose followers have left the ISR has no other leader: that is another figure.
            wait_until(lambda: cluster.is_in_sync(1, TOPIC, LED), "all are in sync", GIVE_UP_S, 0.1)
            began = time.monotonic()
            node.kill()
            at_s = written_again_s(cluster, began)
            first.append(at_s[0])
            last.append(at_s[-1])
            node.start()
            wait_until(lambda: cluster.is_in_sync(2, TOPIC, LED), "all are in sync", GIVE_UP_S, 0.1)
            lead_again(cluster)
    return {f"{name}_first_s": statistics.median(first), f"{name}_last_s": statistics.median(last)}


def written_again_s(cluster: ReplicaCluster, began: float) -> list[float]:
    """Seconds until each partition, the first of them first, acknowledged a write by a surviving replica."""
    at_s: list[float] = []
    left = set(range(LED))
    with cluster.client_of(2) as second, cluster.client_of(3) as third, selectors.DefaultSelector() as ready:
        clients = {2: second, 3: third}
        for broker_id, client in clients.items():
            ready.register(client.socket, selectors.EVENT_READ, broker_id)
            ask(client, left)
        while left:
            if time.monotonic() - began > FAILOVER_LIMIT_S:
                state = cluster.partition_state(2, TOPIC, min(left))
                raise TimeoutError(f"{len(left)} took no write after their leader was killed: {state!r}")
            for key, _ in ready.select(1):
                client = clients[key.data]
                _, answer = parse_response(ApiKey.PRODUCE, PRODUCE_VERSION, client.receive_frame())
                done = {
                    one.index
                    for topic in answer.responses  # type: ignore[attr-defined]
                    for one in topic.partition_responses
                    if not one.error_code
                }
                at_s += [time.monotonic() - began] * len(done & left)
                left -= done
                if not done:
                    time.sleep(RETRY_S)
                if left:
                    ask(client, left)
    return at_s


def ask(client: Client, partitions: set[int]) -> None:
    request = produce_request(TOPIC, sorted(partitions), 1)
    request.timeout_ms = ANSWER_MS
    client.socket.sendall(client.frame(request, PRODUCE_VERSION))


def lead_again(cluster: ReplicaCluster) -> None:
    """Have broker 1 elected for all partitions."""
    request = ElectLeadersRequest(0, [TopicPartitions(TOPIC, tuple(range(LED)))], 60_000)
    with Client(HOST, cluster.controller.port, client_id="bench", timeout_s=GIVE_UP_S) as client:
        client.call(request, 2)


def takes_writes(cluster: ReplicaCluster) -> bool:
    """Return whether broker 1 has acknowledged a record of each partition."""
    with cluster.client_of(1) as client:
        client.socket.sendall(client.frame(produce_request(TOPIC, range(LED), 1), PRODUCE_VERSION))
        try:
            check_produced(client.receive_frame())
        except RuntimeError:
            return False
    return True


MEASUREMENTS = {
    "replication-leader": leader,
    "replication-follower": follower,
    "replication-idle": idle_follower,
    "replication-killed": killed_leader,
    "replication-many": many,
    "replication-many-followed": many_followed,
}
