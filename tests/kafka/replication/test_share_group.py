"""A share group of Java's consumers while the broker that leads its partitions and coordinates it is struck.

Each broker in turn leads both partitions, the group's, and those of its state, and is killed, frozen and
rolled: each record that was written is delivered and accepted, and none is lost. An acceptance without an
answer may have been kept: in the end the share coordinators say so. It takes minutes.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import NewTopic

from kraftd.groups.share_state.key import SharePartitionKey
from kraftd.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraftd.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.read_share_group_state_summary_request import (
    PartitionData,
    ReadShareGroupStateSummaryRequest,
    ReadStateSummaryData,
)
from testkit.client import Client
from testkit.node import Kind
from testkit.process import HOST, wait_until
from tests.kafka.replication.exactly_once import FREEZE_S, KINDS
from tests.kafka.replication.mixed import PARTITIONS, TOPIC, MixedCluster, Writer
from tests.kafka.replication.share_members import ShareMembers

pytestmark = [pytest.mark.kafka, pytest.mark.thorough]

GROUP, MEMBERS, PAUSE_S = "shared", 3, 0.05
INTERNAL = ("__consumer_offsets", "__share_group_state")
SETTINGS = {
    "share.coordinator.state.topic.replication.factor": 3,
    "share.coordinator.state.topic.min.isr": 2,
    "group.share.min.session.timeout.ms": 6000,
    "group.share.session.timeout.ms": 6000,
    "group.share.min.heartbeat.interval.ms": 500,
    "group.share.heartbeat.interval.ms": 500,
    "group.share.min.record.lock.duration.ms": 5000,
    "group.share.record.lock.duration.ms": 5000,
    "group.share.delivery.count.limit": 10,
}


def lead_all(cluster: MixedCluster, broker_id: int) -> None:
    """Let a broker lead the partitions, coordinate the group, and keep its state."""
    ids = (broker_id, *(one for one in cluster.ids if one != broker_id))
    topics = (TOPIC, *INTERNAL)
    rows = [
        ReassignableTopic(topic, [ReassignablePartition(index, ids) for index in range(PARTITIONS)])
        for topic in topics
    ]
    with Client(HOST, cluster.controller.port) as client:
        answer = client.call(AlterPartitionReassignmentsRequest(30_000, True, rows), 1)
        assert not answer.error_code, answer

        def leads() -> bool:
            elections = [TopicPartitions(topic, tuple(range(PARTITIONS))) for topic in topics]
            client.call(ElectLeadersRequest(0, elections, 30_000), 2)
            found = cluster.metadata().topics
            return all(one.leader == broker_id for name in topics for one in found[name].partitions.values())

        wait_until(leads, f"{broker_id} leads all", 60)


def strike(cluster: MixedCluster, broker_id: int, blow: str) -> None:
    node = cluster.broker(broker_id)
    if blow == "freeze":
        node.freeze()
        time.sleep(FREEZE_S)
        node.thaw()
    elif blow == "kill":
        node.kill()
        wait_until(lambda: broker_id not in cluster.leaders(), f"another than {broker_id} leads", 60)
        node.start()
    else:
        node.stop()
        node.start()


def states(cluster: MixedCluster, broker_id: int) -> list[tuple[int, int]]:
    """Start offset and how many records from there on are done, by partition, at a share coordinator."""
    with Client(HOST, cluster.broker(broker_id).port) as client:
        (topic,) = client.call(MetadataRequest([MetadataRequestTopic(name=TOPIC)]), 12).topics
        keys = [SharePartitionKey(GROUP, topic.topic_id, index) for index in range(PARTITIONS)]
        rows = [PartitionData(key.partition, -1) for key in keys]
        topics = [ReadStateSummaryData(topic.topic_id, rows)]
        answer: Any = client.call(ReadShareGroupStateSummaryRequest(GROUP, topics), 1)
    found = sorted(answer.results[0].partitions, key=lambda row: row.partition)
    return [(row.start_offset, row.delivery_complete_count) for row in found if not row.error_code]


@pytest.mark.parametrize(
    ("kinds", "controller"), [*((one, "kraftd") for one in KINDS), ("kraftd-alone", "apache")], ids=str
)
def test_each_record_is_accepted_while_leaders_and_coordinators_move__kip932(
    tmp_path: Path, kinds: str, controller: Kind
) -> None:
    with MixedCluster(tmp_path, KINDS[kinds], controller, settings=SETTINGS) as cluster:
        placed = [cluster.ids] * PARTITIONS
        made = [
            NewTopic(name, PARTITIONS, replica_assignment=placed, config={"min.insync.replicas": "2"})
            for name in (TOPIC, *INTERNAL)
        ]
        for created in cluster.admin.create_topics(made).values():
            created.result(30)
        cluster.tool(
            "configs", "--alter", "--entity-type", "groups", "--entity-name", GROUP,
            "--add-config", "share.auto.offset.reset=earliest",
        )  # fmt: skip
        cluster.wait_until_in_sync()
        writer = Writer(cluster.bootstrap, PAUSE_S)
        members = ShareMembers(tmp_path, cluster.bootstrap, GROUP, TOPIC, MEMBERS, seed=1)

        def have_accepted() -> bool:
            return all(one <= found for one, found in zip(written, members.accepted(), strict=True))

        try:
            for broker_id in cluster.ids:
                for blow in ("kill", "freeze", "roll"):
                    lead_all(cluster, broker_id)
                    writer.wait_for_more()
                    strike(cluster, broker_id, blow)
                    cluster.wait_until_in_sync()
                    written = [set(one) for one in writer.acknowledged]
                    wait_until(have_accepted, f"all is accepted after {blow} {broker_id}", 120, poll_s=0.5)
            writer.stop()
            written = [set(one) for one in writer.acknowledged]
            wait_until(have_accepted, "all is accepted", 120, poll_s=0.5)
            ends = [max(map(int, one)) + 1 for one in written]
            for broker_id in cluster.ids:
                lead_all(cluster, broker_id)
                wait_until(
                    lambda broker_id=broker_id: is_done(states(cluster, broker_id), ends),  # type: ignore[misc]
                    f"{broker_id} knows that all is done",
                    60,
                )
            members.stop()
        finally:
            writer.stop()
            members.kill()
        print(
            f"\n{kinds} under {controller}: {writer.counts()} records, "
            f"got {[len(one) for one in members.read()]} times, "
            f"{members.read_again()} after they were accepted, {len(members.troubles())} troubles"
        )
        for node in cluster.ours.values():
            assert '"level":"error"' not in node.log_text()


def is_done(found: list[tuple[int, int]], ends: list[int]) -> bool:
    """Return whether a share coordinator knows all partitions, and nothing in them is to be delivered."""
    return len(found) == len(ends) and all(
        start + done >= end for (start, done), end in zip(found, ends, strict=True)
    )
