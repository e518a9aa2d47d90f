"""Kafka's metrics of single partitions, of their producers, and of reassignments."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from kraftd.messages.fetch_response import PartitionData
from kraftd.wire.api import ApiKey
from tests.broker_node.harness import BrokerHarness, reassign, records
from tests.broker_node.test_followers import FOLLOWER, Replicated
from tests.broker_node.test_following import Follower, batch
from tests.broker_node.test_replication_quotas import set_config
from tests.metrics.test_broker_metrics import found

NAMES = (
    "UnderReplicated",
    "InSyncReplicasCount",
    "ReplicasCount",
    "UnderMinIsr",
    "AtMinIsr",
    "LastStableOffsetLag",
)
TRANSACTIONAL = 0x10


def of_partition(harness: BrokerHarness) -> list[float]:
    every, labels = found(harness), (("partition", "0"), ("topic", "t"))
    return [every[f"kafka_cluster_Partition_{name}", labels] for name in NAMES]


def of_replicas(harness: BrokerHarness, name: str) -> float:
    return found(harness)[f"kafka_server_ReplicaManager_{name}", ()]


def reassigned_bytes(harness: BrokerHarness, direction: str) -> float:
    return found(harness)[f"kafka_server_BrokerTopicMetrics_ReassignmentBytes{direction}PerSec_total", ()]


def test_a_led_partition_shows_its_replicas_and_how_far_readers_get(tmp_path: Path) -> None:
    replicated = Replicated(tmp_path, min_insync_replicas="2")
    harness = replicated.harness
    assert of_partition(harness) == [0, 2, 2, 0, 1, 0]
    set_config(harness, 4, "", "transaction.partition.verification.enable", "false")
    first = records(3, producer_id=7, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL)
    request = harness.produce_request("t", {0: first})
    request.transactional_id = "x"
    part = harness.client_ask(ApiKey.PRODUCE, 11, request).responses[0].partition_responses[0]
    assert not part.error_code, part
    replicated.fetch(0)
    replicated.fetch(3)
    assert of_partition(harness) == [0, 2, 2, 0, 1, 3]
    assert of_replicas(harness, "ProducerIdCount") == 1
    replicated.produce(acks=1)
    replicated.lag()
    assert of_partition(harness) == [1, 1, 2, 1, 0, 3]


def test_a_followed_partition_counts_no_replicas(tmp_path: Path) -> None:
    assert of_partition(Follower(tmp_path).harness) == [0, 0, 0, 0, 0, 0]


def test_a_replica_that_is_being_added_is_not_missed(tmp_path: Path) -> None:
    replicated = Replicated(tmp_path)
    replicated.harness.unfenced(2)
    replicated.fetch(0)
    reassign(replicated.harness, 100, FOLLOWER, 2)
    assert of_partition(replicated.harness) == [0, 2, 2, 0, 0, 0]
    assert of_replicas(replicated.harness, "UnderReplicatedPartitions") == 0
    replicated.produce(acks=1)
    replicated.lag()
    assert of_partition(replicated.harness) == [1, 1, 2, 0, 1, 0]
    assert of_replicas(replicated.harness, "UnderReplicatedPartitions") == 1


def test_bytes_to_a_replica_that_is_added_are_counted(tmp_path: Path) -> None:
    replicated = Replicated(tmp_path)
    harness = replicated.harness
    replicated.produce(acks=1)
    replicated.fetch(0)
    assert reassigned_bytes(harness, "Out") == 0
    reassign(harness, 100)
    reassign(harness, 100, FOLLOWER)
    replicated.session_id = replicated.epoch = 0
    replicated.fetch(0, current_leader_epoch=-1)
    assert reassigned_bytes(harness, "Out") == len(records(1))
    assert reassigned_bytes(harness, "In") == 0


def test_bytes_of_a_replica_that_is_added_here_are_counted(tmp_path: Path) -> None:
    follower = Follower(tmp_path)
    follower.send(0, batch(0))
    assert reassigned_bytes(follower.harness, "In") == 0
    hosted = follower.harness.broker.replicas.get("t", 0)
    assert hosted is not None
    hosted.state = structs.replace(hosted.state, adding_replicas=(100,))
    follower.fetched_next(0)
    follower.answer_fetch(PartitionData(0, 0, 0, -1, 0, records=batch(1)))
    assert reassigned_bytes(follower.harness, "In") == len(batch(1))
