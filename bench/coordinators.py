"""Coordinators of a whole Kafka: kraftd's combined node beside Apache Kafka's, in one run.

Heartbeats and commits by CPU, transactions, the loading of commits, large groups. README.md describes how
every figure is taken.
"""

from __future__ import annotations

import statistics
import time

from bench.coordinator_client import (
    COMMIT_VERSION,
    CONSUMER_HEARTBEAT_VERSION,
    HEARTBEAT_VERSION,
    commit_of,
    consumer_member,
    find_coordinator,
    joined,
    timed_until_served,
    until_served,
)
from bench.coordinator_loading import loading
from bench.figures import Figures
from bench.large_groups import classic_group, consumer_group
from bench.load import drive
from bench.measure import Plan, percentile
from bench.whole import client_of, make_topic, whole_kafka
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kraftd.messages.end_txn_request import EndTxnRequest
from kraftd.messages.heartbeat_request import HeartbeatRequest
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kraftd.wire.api import ApiKey
from kraftd.wire.frames import parse_response
from testkit.keyed_batches import keyed_batch
from testkit.node import CombinedNode, Kind

INIT_VERSION, PRODUCE_VERSION, END_VERSION = 4, 12, 5
TOPIC, PARTITIONS = "orders", 100
TRANSACTIONS, QUICK_TRANSACTIONS = 500, 100  # after as many for warming up
TRANSACTION_RECORDS, RECORD = 10, b"x" * 100
ONE_BROKER = {"transaction.state.log.replication.factor": 1, "transaction.state.log.min.isr": 1}
PAUSE_S = 0.02  # between transactions: the markers of the last one are written
OFFSETS, QUICK_OFFSETS = 100_000, 10_000
LOADS, QUICK_LOADS = 5, 2
MEMBERS, QUICK_MEMBERS = 1_000, 100


def coordinators(kind: Kind, plan: Plan) -> Figures:
    """All measurements."""
    is_quick = plan.starts < Plan().starts
    with whole_kafka(kind, ONE_BROKER) as node:
        make_topic(node, TOPIC, PARTITIONS)
        figures = group_requests(node, plan)
        figures |= transactions(node, QUICK_TRANSACTIONS if is_quick else TRANSACTIONS)
    offsets, loads = (QUICK_OFFSETS, QUICK_LOADS) if is_quick else (OFFSETS, LOADS)
    figures |= loading(kind, offsets, loads, plan.settle_s)
    members = QUICK_MEMBERS if is_quick else MEMBERS
    for name, settle in (("classic", classic_group), ("consumer", consumer_group)):
        with whole_kafka(kind) as node:
            topic_id = make_topic(node, TOPIC, members)
            with client_of(node) as client:
                joined(client, "before")  # the coordinator has loaded its partitions
            settled = settle(node, TOPIC, topic_id, members)
            figures[f"coordinators_{name}_settles_s"] = settled.wall_s
            figures[f"coordinators_{name}_settles_cpu_s"] = settled.cpu_s
    return figures


# -- requests of groups, by CPU


def group_requests(node: CombinedNode, plan: Plan) -> Figures:
    """Heartbeats of both protocols, and commits of one partition, by the server's CPU seconds."""
    clients = [client_of(node) for _ in range(plan.connections)]
    members = [joined(client, f"classic-{number}") for number, client in enumerate(clients)]
    heartbeats = [
        client.frame(HeartbeatRequest(one.group_id, one.generation, one.member_id), HEARTBEAT_VERSION)
        for client, one in zip(clients, members, strict=True)
    ]
    commits = [
        client.frame(commit_of(one, TOPIC, range(1)), COMMIT_VERSION)
        for client, one in zip(clients, members, strict=True)
    ]
    consumers = [
        consumer_member(client, f"consumer-{number}", TOPIC) for number, client in enumerate(clients)
    ]
    consumer_heartbeats = [
        client.frame(
            ConsumerGroupHeartbeatRequest(one.group_id, one.member_id, one.generation),
            CONSUMER_HEARTBEAT_VERSION,
        )
        for client, one in zip(clients, consumers, strict=True)
    ]
    loads = (
        ("heartbeats", heartbeats, ApiKey.HEARTBEAT, HEARTBEAT_VERSION),
        (
            "consumer_heartbeats",
            consumer_heartbeats,
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            CONSUMER_HEARTBEAT_VERSION,
        ),
        ("commits", commits, ApiKey.OFFSET_COMMIT, COMMIT_VERSION),
    )
    figures: Figures = {}
    for name, frames, api, version in loads:
        figures[f"coordinators_{name}_per_cpu_s"] = per_cpu_s(node, plan, frames, api, version)
    for client in clients:
        client.close()
    return figures


def per_cpu_s(node: CombinedNode, plan: Plan, frames: list[bytes], api: ApiKey, version: int) -> float:
    """Answers by the server's CPU second, the median of several loads.

    Raises RuntimeError if the last answer is an error.
    """
    drive(node.client_port, frames, plan.depth, plan.warm_load_s)
    rates = []
    for _ in range(plan.loads):
        before_s = node.cpu_s()
        load = drive(node.client_port, frames, plan.depth, plan.load_s)
        _, answer = parse_response(api, version, load.last_answer)
        topics = getattr(answer, "topics", ())
        if getattr(answer, "error_code", 0) or any(
            one.error_code for topic in topics for one in topic.partitions
        ):
            raise RuntimeError(f"the load was answered with {answer!r}")
        rates.append(load.answers / max(node.cpu_s() - before_s, 0.01))
    return statistics.median(rates)


# -- transactions


def transactions(node: CombinedNode, count: int) -> Figures:
    """Transactions of ten records: some while after the last one, and each right after it."""
    figures: Figures = {}
    for name, pause_s in (("transaction", PAUSE_S), ("transaction_in_a_row", 0.0)):
        took_ms = transactions_ms(node, f"bench-{name}", count, pause_s)
        figures[f"coordinators_{name}_p50_ms"] = statistics.median(took_ms)
        figures[f"coordinators_{name}_p99_ms"] = percentile(took_ms, 0.99)
    return figures


def transactions_ms(node: CombinedNode, find: str, count: int, pause_s: float) -> list[float]:
    """One transaction after another: the time of its Produce and of its EndTxn together."""
    took_ms = []
    with client_of(node) as client:
        find_coordinator(client, find, is_transaction=True)
        own = until_served(client, InitProducerIdRequest(find, 60_000), INIT_VERSION)
        producer = own.producer_id, own.producer_epoch
        sequence = 0
        for _ in range(2 * count):
            batch = keyed_batch(
                [(None, RECORD)] * TRANSACTION_RECORDS,
                0,
                -1,
                int(time.time() * 1000),
                *producer,
                base_sequence=sequence,
            )
            row = TopicProduceData(TOPIC, partition_data=[PartitionProduceData(0, batch)])
            _, produce_ms = timed_until_served(
                client, ProduceRequest(find, -1, 30_000, [row]), PRODUCE_VERSION
            )
            ended, end_ms = timed_until_served(client, EndTxnRequest(find, *producer, True), END_VERSION)
            took_ms.append(produce_ms + end_ms)
            sequence = 0 if ended.producer_epoch != producer[1] else sequence + TRANSACTION_RECORDS
            producer = ended.producer_id, ended.producer_epoch
            time.sleep(pause_s)
    return took_ms[count:]
