"""kraftd's own client against stock brokers (KIP-232, KIP-320): stale metadata, epochs, truncation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from confluent_kafka import Producer

from kraftd.client.cluster import Cluster as Brokers
from kraftd.client.connection import Connection
from kraftd.client.failures import NoLeader, Truncated
from kraftd.client.group_offsets import Committed, GroupOffsets
from kraftd.client.partition_reader import LATEST, PartitionReader
from kraftd.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraftd.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.metadata_response import MetadataResponse
from kraftd.wire.batch import records
from testkit.client import Client
from testkit.cluster import Cluster
from testkit.process import HOST, wait_until

pytestmark = pytest.mark.kafka
ROUNDS = 30


def make_lead(cluster: Cluster, topic: str, replicas: Sequence[int]) -> None:
    """Reassign the replicas into that order and let the first one lead."""
    with Client(HOST, cluster.controller.port) as client:
        partition = ReassignablePartition(0, tuple(replicas))
        order = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(topic, [partition])])
        assert client.call(order, 0).error_code == 0
        elect = ElectLeadersRequest(0, [TopicPartitions(topic, (0,))], 10_000)
        assert client.call(elect, 2).error_code == 0


def leader_by(cluster: Cluster, broker_id: int, topic: str) -> tuple[int, int]:
    """The leader and its epoch, as known to one broker."""
    (found,) = (one for one in cluster.metadata_by(broker_id).topics if one.name == topic)
    return found.partitions[0].leader_id, found.partitions[0].leader_epoch


def isr_by(cluster: Cluster, broker_id: int, topic: str) -> list[int]:
    """The in-sync replicas, as known to one broker."""
    (found,) = (one for one in cluster.metadata_by(broker_id).topics if one.name == topic)
    return list(found.partitions[0].isr_nodes)


def produce(cluster: Cluster, topic: str, *values: bytes, brokers: tuple[int, ...] = (1, 2, 3)) -> None:
    bootstrap = ",".join(cluster.brokers[one].address for one in brokers)
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(30) == 0


def servers(cluster: Cluster, *ids: int) -> list[tuple[str, int]]:
    return [(HOST, cluster.brokers[one].port) for one in ids or cluster.brokers]


async def read_all(reader: PartitionReader) -> list[bytes]:
    return [
        bytes(record.value or b"")
        async for batch in reader.batches()
        if not batch.header.is_control
        for record in records(batch)
    ]


def test_a_broker_that_was_frozen_while_the_leader_moved_is_not_believed(three_brokers: Cluster) -> None:
    cluster, topic = three_brokers, "kip232"
    cluster.create_topic(topic, 1, 3)
    asyncio.run(read_from_a_stale_broker(cluster, topic))


async def read_from_a_stale_broker(cluster: Cluster, topic: str) -> None:
    """Freeze broker 3 while leadership moves between the others, until its first answer is an old one."""
    request = MetadataRequest([MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    stale = cluster.brokers[3]
    async with (
        Brokers(servers(cluster, 1, 2), 20) as client,
        await Connection.open(HOST, stale.port, 20) as old,
    ):
        for _ in range(ROUNDS):
            leader, epoch = leader_by(cluster, 1, topic)
            stale.freeze()
            try:
                make_lead(cluster, topic, (2, 1, 3) if leader == 1 else (1, 2, 3))
                for broker in (1, 2):
                    wait_until(
                        lambda one=broker, was=epoch: leader_by(cluster, one, topic)[1] > was,
                        f"broker {broker} knows the new leader",
                    )
                await client.refresh([topic])
                believed = client.cache.leader(topic, 0)
                assert believed is not None and believed.epoch > epoch
                answering = asyncio.create_task(old.ask(request, MetadataResponse))
                await asyncio.sleep(0.05)  # so that the request waits at the frozen broker
            finally:
                stale.thaw()
            answer = await answering
            if answer.topics[0].partitions[0].leader_epoch < believed.epoch:
                taken_over = client.cache.take(answer, 3)
                assert [one.topic for one in taken_over.refused] == [topic]
                assert client.cache.leader(topic, 0) == believed
                # From another broker, or from this one later, the client gets what it knew, or newer.
                await client.refresh([topic])
                now = client.cache.leader(topic, 0)
                assert now is not None and now.epoch >= believed.epoch
                return
    raise AssertionError(f"broker 3 never answered with old metadata in {ROUNDS} rounds")


def test_offsets_are_committed_with_their_epoch_and_read_on_from_after_it(three_brokers: Cluster) -> None:
    cluster, topic = three_brokers, "kip320-offsets"
    cluster.create_topic(topic, 1, 3)
    produce(cluster, topic, b"1", b"2")

    async def read_and_commit() -> Committed:
        async with Brokers(servers(cluster), 20) as client:
            reader = PartitionReader(client, topic, 0)
            assert await read_all(reader) == [b"1", b"2"]
            committed = Committed(reader.position.offset, reader.position.epoch)
            await GroupOffsets(client, "readers").commit({(topic, 0): committed})
            return committed

    committed = asyncio.run(read_and_commit())
    assert committed.epoch == leader_by(cluster, 1, topic)[1]
    leader = cluster.partition(topic).leader
    make_lead(cluster, topic, [leader % 3 + 1, (leader + 1) % 3 + 1, leader])
    cluster.wait_until(lambda: cluster.partition(topic).leader == leader % 3 + 1, "the leader moved")
    produce(cluster, topic, b"3")

    async def read_on() -> None:
        async with Brokers(servers(cluster), 20) as client:
            found = await GroupOffsets(client, "readers").fetch(topic, 0)
            assert found == committed
            reader = PartitionReader(client, topic, 0, *found)
            assert await read_all(reader) == [b"3"]
            assert reader.position.epoch > committed.epoch
            end = await reader.list_offset(LATEST)
            assert (end.offset, end.leader_epoch) == (reader.position.offset, reader.position.epoch)
            assert await GroupOffsets(client, "strangers").fetch(topic, 0) is None

    asyncio.run(read_on())

    async def wait_for_what_never_comes() -> None:
        async with Brokers(servers(cluster), 1.5) as client:
            offsets = GroupOffsets(client, "readers")
            await offsets.commit({(topic, 0): Committed(2, committed.epoch + 1000)})
            found = await offsets.fetch(topic, 0)
            assert found is not None
            await read_all(PartitionReader(client, topic, 0, *found))

    with pytest.raises(NoLeader):
        asyncio.run(wait_for_what_never_comes())


def test_fetches_are_incremental_and_go_on_after_a_lost_session__kip227(three_brokers: Cluster) -> None:
    cluster, topic = three_brokers, "kip227"
    cluster.create_topic(topic, 1, 1)

    async def read() -> None:
        async with Brokers(servers(cluster), 20) as client:
            reader = PartitionReader(client, topic, 0)
            epochs = []
            for value, other_id, other_epoch in ((b"1", 0, 0), (b"2", 0, 0), (b"3", 1, 0), (b"4", 0, 5)):
                produce(cluster, topic, value)
                reader.session.id ^= other_id  # the broker does not know this session,
                reader.session.epoch += other_epoch  # or expects another epoch of it
                assert await read_all(reader) == [value]
                assert reader.session.id
                epochs.append(reader.session.epoch)
            assert epochs[0] < epochs[1] and max(epochs[2:]) < 5

    asyncio.run(read())


def test_records_lost_by_an_unclean_election_are_reported_as_truncated(three_brokers: Cluster) -> None:
    cluster, topic = three_brokers, "kip320-unclean"
    settings = {"unclean_leader_election_enable": "true", "min_insync_replicas": 1}
    cluster.create_topic(topic, 1, 2, **settings)
    leader = cluster.partition(topic).leader
    follower = next(one for one in cluster.partition(topic).replicas if one != leader)
    produce(cluster, topic, b"kept")
    cluster.brokers[follower].freeze()
    cluster.wait_until(lambda: isr_by(cluster, leader, topic) == [leader], "the follower left the ISR")
    other = ({1, 2, 3} - {leader, follower}).pop()
    produce(cluster, topic, b"lost", brokers=(leader, other))  # answered once consumers may read it

    async def read() -> tuple[int, int]:
        async with Brokers(servers(cluster, leader, other), 20) as client:
            reader = PartitionReader(client, topic, 0)
            assert await read_all(reader) == [b"kept", b"lost"]
            return reader.position.offset, reader.position.epoch

    position = asyncio.run(read())
    cluster.brokers[leader].kill()
    cluster.brokers[follower].thaw()
    cluster.wait_until(lambda: leader_by(cluster, other, topic)[0] == follower, "an unclean leader")

    async def read_on() -> None:
        async with Brokers(servers(cluster, other, follower), 20) as client:
            await read_all(PartitionReader(client, topic, 0, *position))

    with pytest.raises(Truncated) as failed:
        asyncio.run(read_on())
    assert (failed.value.position, failed.value.end_offset) == (2, 1)
