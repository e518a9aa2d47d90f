"""A coordinator's partition moves between a stock broker and kraftd: each loads what the other wrote."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kraftd.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kraftd.messages.delete_groups_request import DeleteGroupsRequest
from kraftd.messages.describe_groups_request import DescribeGroupsRequest
from kraftd.messages.list_groups_request import ListGroupsRequest
from kraftd.messages.list_groups_response import ListGroupsResponse
from kraftd.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from kraftd.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kraftd.messages.share_group_describe_request import ShareGroupDescribeRequest
from kraftd.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from testkit.client import Client
from testkit.cluster import Cluster
from testkit.java import tools
from testkit.keyed_batches import keyed_batch
from testkit.process import HOST, wait_until
from tests.groups.consumer.members import heartbeat, joining
from tests.groups.desk import Desk
from tests.groups.requests import COMMIT, JOIN, LEAVE, beat, commit, join, leave, subscription, sync
from tests.kafka.groups.pair import CONFIG, LONG_MS, PARTITIONS, TOPICS, Pair, same
from tests.kafka.groups.reading import load

pytestmark = pytest.mark.kafka

TOPIC = "__consumer_offsets"
NAMES = ("moving", "static", "plain", "left", "gone", "modern", "shared")
READS: list[tuple[Any, int]] = [
    (ListGroupsRequest(), 5),
    (DescribeGroupsRequest(NAMES), 6),
    (
        OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(name, topics=None) for name in ("moving", "plain", "left")]
        ),
        9,
    ),
    (ConsumerGroupDescribeRequest(("modern",)), 1),
    (ShareGroupDescribeRequest(("shared",)), 1),
]


def fill(pair_send: Any) -> None:
    """Groups in several states, by a function that sends a request to one side or to both."""
    first = pair_send(join("moving", session_ms=LONG_MS), JOIN)
    joined = pair_send(join("moving", first.member_id, session_ms=LONG_MS), JOIN)
    pair_send(sync(1, joined.member_id, {joined.member_id: b"all of it"}, "moving"), 5)
    pair_send(commit(7, 1, joined.member_id, group="moving", leader_epoch=3, metadata="nøte"), COMMIT)
    pair_send(commit(8, 1, joined.member_id, group="moving", topic="audit"), COMMIT)
    kept = pair_send(join("static", instance="i0", session_ms=LONG_MS, metadata=subscription("audit")), JOIN)
    pair_send(sync(1, kept.member_id, {kept.member_id: b"static"}, "static"), 5)
    pair_send(commit(42, group="plain", retention_ms=3_600_000), 4)
    pair_send(commit(43, group="plain", partition=1), COMMIT)
    pair_send(commit(44, group="gone"), COMMIT)
    pair_send(DeleteGroupsRequest(("gone",)), 2)
    first = pair_send(join("left", session_ms=LONG_MS), JOIN)
    joined = pair_send(join("left", first.member_id, session_ms=LONG_MS), JOIN)
    pair_send(sync(1, joined.member_id, {joined.member_id: b"x"}, "left"), 5)
    pair_send(commit(45, 1, joined.member_id, group="left"), COMMIT)
    pair_send(leave((joined.member_id, None), group="left"), LEAVE)
    pair_send(joining("m1", ("orders",), group="modern", instance="i1"), 1)
    pair_send(joining("m2", ("orders", "audit"), group="modern", assignor="range"), 1)
    for name in ("s1", "s2"):
        pair_send(ShareGroupHeartbeatRequest("shared", name, 0, None, ("orders",)), 1)


def of_here(answer: Any) -> Any:
    """A list without the groups of other tests, some of which rebalance: that is in no record."""
    if isinstance(answer, ListGroupsResponse):
        answer.groups = [row for row in answer.groups if row.group_id in NAMES]
        assert len(answer.groups) == 6
    return answer


def test_kraftd_loads_what_a_stock_broker_wrote(group_broker: Cluster) -> None:
    pair = Pair(group_broker)
    with Client(HOST, pair.port) as client:

        def send(request: Any, version: int) -> Any:
            answer = client.call(request, version)
            assert getattr(answer, "error_code", 0) in (0, 79), answer
            return answer

        fill(send)
        desk = Desk(CONFIG, PARTITIONS, **TOPICS)
        desk.topics = pair.desk.topics
        desk.coordinator = desk.new_coordinator()
        desk.now_ms = pair.clock_ms()
        for partition in range(PARTITIONS):
            load(desk.coordinator, client, TOPIC, partition, desk.now_ms)
        for request, version in READS:
            own, theirs = of_here(desk.ask(request, version)), of_here(client.call(request, version))
            assert same(own, theirs, version), f"{request!r}\n Kafka  {theirs!r}\n kraftd {own!r}"
    pair.close()


def test_a_stock_broker_loads_what_kraftd_wrote(group_broker: Cluster) -> None:
    pair = Pair(group_broker)
    broker = group_broker.brokers[1]
    desk = Desk(CONFIG, PARTITIONS, **TOPICS)
    desk.topics = pair.desk.topics
    desk.now_ms = int(time.time() * 1000)
    desk.reload()

    def send(request: Any, version: int) -> Any:
        call = desk.send(request, version)
        desk.wait(0)
        answer: Any = desk.answers[call]
        assert getattr(answer, "error_code", 0) in (0, 79), answer
        return answer

    with Client(HOST, pair.port) as client:  # nothing of before is in the way
        names = tuple(row.group_id for row in client.call(ListGroupsRequest(), 5).groups)
        for name in names:
            for row in client.call(DescribeGroupsRequest((name,)), 5).groups[0].members:
                client.call(leave((row.member_id, row.group_instance_id), group=name), LEAVE)
        client.call(DeleteGroupsRequest(names), 2)
    fill(send)
    # Brokers let this client id write to internal topics.
    with Client(HOST, pair.port, "__admin_client") as client:
        for partition, log in desk.logs.items():
            if not log:
                continue
            batch = keyed_batch(
                [record for record, _ in log if not isinstance(record, bool)], 0, 0, desk.now_ms
            )
            data = [TopicProduceData(TOPIC, partition_data=[PartitionProduceData(partition, batch)])]
            answer = client.call(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=data), 11)
            assert answer.responses[0].partition_responses[0].error_code == 0, answer
    dumps = [read_by_kafka(broker.data / f"{TOPIC}-{number}") for number in desk.logs]
    assert any('"group":"moving","topic":"orders","partition":0' in text for text in dumps), dumps
    pair.close()
    broker.stop()
    broker.start()
    broker.wait_ready()
    with Client(HOST, pair.port) as client:

        def is_loaded() -> bool:
            return not client.call(ListGroupsRequest(), 5).error_code and not any(
                row.error_code in (14, 15, 16) for row in client.call(READS[1][0], 6).groups
            )

        wait_until(is_loaded, "the broker coordinates again", 60)
        for request, version in READS:
            own, theirs = of_here(desk.ask(request, version)), of_here(client.call(request, version))
            assert same(own, theirs, version), f"{request!r}\n Kafka  {theirs!r}\n kraftd {own!r}"
        (group,) = client.call(DescribeGroupsRequest(("moving",)), 5).groups
        assert group.error_code == 0 and group.members, group
        (member,) = group.members
        assert client.call(beat(1, member.member_id, group="moving"), 4).error_code == 0
        (group,) = client.call(ConsumerGroupDescribeRequest(("modern",)), 1).groups
        for member in group.members:
            request = heartbeat(
                member.member_id, member.member_epoch, group="modern", instance=member.instance_id
            )
            assert client.call(request, 1).error_code == 0
        (group,) = client.call(ShareGroupDescribeRequest(("shared",)), 1).groups
        assert len(group.members) == 2
        for member in group.members:
            request = ShareGroupHeartbeatRequest("shared", member.member_id, member.member_epoch)
            assert client.call(request, 1).error_code == 0


def read_by_kafka(directory: Any) -> str:
    """What Kafka's dump-log says of the records of a partition."""
    files = ",".join(str(path) for path in sorted(directory.glob("*.log")))
    return tools().run("dump-log", "--offsets-decoder", "--files", files).check().out
