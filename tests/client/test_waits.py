"""A client tells what it waits for, and gives up in time: leaders that are not there, or have no open log."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from kraftd.cli.brokers.options import MOST_NOTICES, Notices
from kraftd.client import group_member, waits
from kraftd.client.cluster import Cluster
from kraftd.client.connection import Connection
from kraftd.client.consumer import Consumer
from kraftd.client.coordinator import GROUP, Coordinator
from kraftd.client.failures import ClientFailure, NoLeader, Refused, Unreachable
from kraftd.client.group_member import GroupMember, Rebalance
from kraftd.client.group_offsets import Committed
from kraftd.client.groups import list_groups
from kraftd.client.partition_reader import EARLIEST, PartitionReader
from kraftd.client.producer import Producer
from kraftd.messages import fetch_response as fetch
from kraftd.messages import find_coordinator_response as find
from kraftd.messages import heartbeat_response as heartbeat
from kraftd.messages import join_group_response as join
from kraftd.messages import list_groups_response as listed
from kraftd.messages import list_offsets_response as offsets
from kraftd.messages import metadata_response as metadata
from kraftd.messages import produce_response as produced
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.keyed_records import KeyedRecord

ID = bytes(15) + b"\1"
NOT_OPEN = (
    "t-0: its leader, broker 1, answers KAFKA_STORAGE_ERROR, its log is not open; kraftd doctor says why"
)


NO_COORDINATOR = (
    "group g: COORDINATOR_NOT_AVAILABLE: __consumer_offsets-3 has no leader; its replicas are on brokers 1, "
    "2, the last in sync on broker 2, offline on broker 2; kraftd doctor says why"
)


class Broker:
    """The connection to the only broker; `leader` is that of t-0, `errors` are its next answers' for it."""

    address, host, port, is_open = "host:9092", "host", 9092, True

    def __init__(self, leader: int = 1, errors: tuple[int, ...] = (), coordinator: int = 0) -> None:
        self.leader, self.errors, self.coordinator = leader, list(errors), coordinator

    def next_error(self) -> int:
        return self.errors.pop(0) if self.errors else ErrorCode.KAFKA_STORAGE_ERROR

    async def ask(self, request: Any, answer: type, **_how: Any) -> Any:
        if answer is metadata.MetadataResponse:
            partitions = [metadata.MetadataResponsePartition(0, 0, self.leader, 3, (1,), (1,))]
            topics = [metadata.MetadataResponseTopic(0, "t", ID, False, partitions)]
            name = request.topics[0].name if request.topics else "t"
            if name != "t":  # of five partitions, of which the last two have no leader
                partitions = [
                    metadata.MetadataResponsePartition(
                        0, index, -1 if index > 2 else 1, 3, (1, 2), (2,), (2,)
                    )
                    for index in range(5)
                ]
                topics = [metadata.MetadataResponseTopic(0, name, ID, True, partitions)]
            return answer(0, [metadata.MetadataResponseBroker(1, "host", 9092)], topics=topics)
        if answer is offsets.ListOffsetsResponse:
            row = offsets.ListOffsetsPartitionResponse(0, self.next_error(), offset=7)
            return answer(topics=[offsets.ListOffsetsTopicResponse("t", [row])])
        if answer is find.FindCoordinatorResponse:
            code = ErrorCode.NONE if self.coordinator else ErrorCode.COORDINATOR_NOT_AVAILABLE
            return answer(coordinators=[find.Coordinator("g", self.coordinator, "host", 9092, code)])
        if answer in (join.JoinGroupResponse, heartbeat.HeartbeatResponse):
            return answer(error_code=self.next_error())
        if answer is listed.ListGroupsResponse:
            return answer(0, 0, [listed.ListedGroup("other")])
        if answer is produced.ProduceResponse:
            written = produced.PartitionProduceResponse(0, self.next_error(), 7)
            return answer([produced.TopicProduceResponse("t", ID, [written])])
        assert answer is fetch.FetchResponse
        data = fetch.PartitionData(0, self.next_error(), 7, records=b"")
        return answer(responses=[fetch.FetchableTopicResponse("t", ID, [data])])


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(waits, "TOLD_AFTER_S", 0.05)
    return []


def cluster_of(broker: Broker, told: list[str], monkeypatch: pytest.MonkeyPatch) -> Cluster:
    cluster = Cluster([("host", 9092)], timeout_s=0.5)
    cluster.tell = lambda failure: told.append(str(failure))

    async def connection(_address: object) -> Connection:
        return cast(Connection, broker)

    monkeypatch.setattr(cluster, "connection", connection)
    return cluster


def test_the_offset_of_a_partition_whose_leader_has_no_open_log_is_given_up(
    told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask(broker: Broker) -> int:
        cluster = cluster_of(broker, told, monkeypatch)
        return int((await PartitionReader(cluster, "t", 0).list_offset(EARLIEST)).offset)

    with pytest.raises(Refused, match=NOT_OPEN):
        asyncio.run(ask(Broker()))
    assert told == [NOT_OPEN]
    with pytest.raises(NoLeader, match="t-0 has no leader"):
        asyncio.run(ask(Broker(leader=-1)))
    assert all("t-0 has no leader; its replicas are on broker 1" in text for text in told[1:]) and told[1:]
    del told[:]
    assert asyncio.run(ask(Broker(errors=(0,)))) == 7 and told == []


def test_a_partition_that_no_leader_has_served_is_not_read_for_ever(
    told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def poll(broker: Broker, times: int) -> None:
        consumer = Consumer(cluster_of(broker, told, monkeypatch))
        consumer.assign({("t", 0): Committed(7, -1)})
        try:
            for _ in range(times):
                await consumer.poll(1.0)
        finally:
            await consumer.close()

    with pytest.raises(Refused, match=NOT_OPEN):
        asyncio.run(poll(Broker(), 1_000))
    assert told == [NOT_OPEN]
    asyncio.run(poll(Broker(errors=(0,)), 10))  # a leader that is gone comes back
    assert told == [NOT_OPEN, NOT_OPEN]


def test_a_command_names_the_coordinator_that_it_waits_for(
    told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask() -> None:
        await Coordinator(cluster_of(Broker(), told, monkeypatch), GROUP, "g").ask(
            lambda _: asyncio.sleep(0, (0, 0))
        )

    with pytest.raises(Unreachable):
        asyncio.run(ask())
    assert told == [NO_COORDINATOR]
    del told[:]
    with pytest.raises(Unreachable, match=NO_COORDINATOR):
        asyncio.run(GroupMember(cluster_of(Broker(), told, monkeypatch), "g", ["t"]).join())
    assert told == [NO_COORDINATOR]
    with pytest.raises(
        Unreachable, match=r"group d: COORDINATOR_NOT_AVAILABLE$"
    ):  # its partition has a leader
        asyncio.run(Coordinator(cluster_of(Broker(), told, monkeypatch), GROUP, "d").found())


def test_a_list_names_the_partitions_whose_groups_no_broker_has(
    told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, missing = asyncio.run(list_groups(cluster_of(Broker(), told, monkeypatch)))
    assert [one.group_id for one in found] == ["other"]
    assert missing == {
        "2 partitions of __consumer_offsets": NO_COORDINATOR.partition(": ")[2].partition(": ")[2]
    }


def test_a_member_names_what_it_waits_for_and_follows_its_coordinator(
    told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    moved, loading = int(ErrorCode.NOT_COORDINATOR), int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    async def beat(broker: Broker) -> None:
        await GroupMember(cluster_of(broker, told, monkeypatch), "g", ["t"]).heartbeat()

    asyncio.run(beat(Broker(errors=(moved, loading, 0), coordinator=1)))
    with pytest.raises(Rebalance):
        asyncio.run(beat(Broker(errors=(int(ErrorCode.ILLEGAL_GENERATION),), coordinator=1)))
    del told[:]
    monkeypatch.setattr(group_member, "TOLD_AFTER_S", 0.05)
    with pytest.raises(Unreachable, match="group g: COORDINATOR_LOAD_IN_PROGRESS"):
        loads = Broker(errors=(loading,) * 100, coordinator=1)
        asyncio.run(GroupMember(cluster_of(loads, told, monkeypatch), "g", ["t"]).join())
    assert set(told) == {"group g: COORDINATOR_LOAD_IN_PROGRESS"}


def test_a_producer_names_what_it_waits_for(told: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    async def send(broker: Broker) -> int:
        producer = Producer(cluster_of(broker, told, monkeypatch), "t")
        return (await producer.send([KeyedRecord(None, b"a")]))[0].base_offset

    with pytest.raises(Refused, match=NOT_OPEN):
        asyncio.run(send(Broker()))
    assert told == [NOT_OPEN]
    del told[:]
    few = int(ErrorCode.NOT_ENOUGH_REPLICAS)
    with pytest.raises(
        Refused, match="answers NOT_ENOUGH_REPLICAS; its replicas are on broker 1, those in sync"
    ):
        asyncio.run(send(Broker(errors=(few,) * 100)))
    assert len(told) == 1
    assert asyncio.run(send(Broker(errors=(few, 0)))) == 7


def test_notices_are_printed_once_and_not_very_many(capsys: pytest.CaptureFixture[str]) -> None:
    notices = Notices(15.0)
    for number in (0, 0, *range(100)):
        notices.tell(ClientFailure(f"t-{number} has no leader"))
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"Waiting, 15 s at most: t-{n} has no leader." for n in range(MOST_NOTICES)]
