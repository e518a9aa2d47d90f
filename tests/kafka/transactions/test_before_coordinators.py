"""Requests to coordinators before their topics exist: a node of each kind answers alike (KIP-447, KIP-848).

Only a client that asks for no coordinator sends them: to find one creates the topic.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from kraftd.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kraftd.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kraftd.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kraftd.messages.delete_groups_request import DeleteGroupsRequest
from kraftd.messages.describe_groups_request import DescribeGroupsRequest
from kraftd.messages.describe_transactions_request import DescribeTransactionsRequest
from kraftd.messages.end_txn_request import EndTxnRequest
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.heartbeat_request import HeartbeatRequest
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kraftd.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kraftd.messages.list_groups_request import ListGroupsRequest
from kraftd.messages.list_transactions_request import ListTransactionsRequest
from kraftd.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftd.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kraftd.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kraftd.messages.share_group_describe_request import ShareGroupDescribeRequest
from kraftd.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kraftd.messages.sync_group_request import SyncGroupRequest
from kraftd.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from kraftd.wire.table import api_key
from testkit.client import Client
from testkit.node import CombinedNode, Kind
from testkit.process import HOST, wait_until
from tests.kafka.broker.views import view
from tests.kafka.transactions.conftest import one_of_each

pytestmark = pytest.mark.kafka

TOPIC, GROUP, ID = "early", "early-group", "early-id"
GROUPS, TRANSACTIONS = 0, 1  # as FindCoordinator has them
UNKNOWN = 1 << 40  # a producer id of no block


def requests() -> list[tuple[Message, int]]:
    """A request of each kind that a coordinator answers, and in which version."""
    committed = [OffsetCommitRequestTopic(TOPIC, partitions=[OffsetCommitRequestPartition(0, 7)])]
    rows = [TxnOffsetCommitRequestTopic(TOPIC, [TxnOffsetCommitRequestPartition(0, 7)])]
    other = [TxnOffsetCommitRequestTopic("absent", [TxnOffsetCommitRequestPartition(0, 7)])]
    added = [AddPartitionsToTxnTopic(TOPIC, (0,))]
    protocols = [JoinGroupRequestProtocol("range", b"")]
    deleted = [OffsetDeleteRequestTopic(TOPIC, [OffsetDeleteRequestPartition(0)])]
    asked = [OffsetFetchRequestGroup(GROUP, topics=[OffsetFetchRequestTopics(TOPIC, partition_indexes=(0,))])]
    member = "AAAAAAAAAAAAAAAAAAAAAA"
    found: list[tuple[Message, int]] = [
        (OffsetCommitRequest(GROUP, topics=committed), 8),
        (OffsetCommitRequest(GROUP, topics=committed), 9),
        (OffsetCommitRequest("", topics=committed), 9),
        (OffsetFetchRequest(GROUP, [OffsetFetchRequestTopic(TOPIC, (0,))]), 7),
        (OffsetFetchRequest(groups=asked), 9),
        (JoinGroupRequest(GROUP, 30_000, 30_000, "", None, "consumer", protocols), 9),
        (SyncGroupRequest(GROUP, 1, "m", None, "consumer", "range"), 5),
        (HeartbeatRequest(GROUP, 1, "m"), 4),
        (LeaveGroupRequest(GROUP, "", [MemberIdentity("m")]), 5),
        (
            ConsumerGroupHeartbeatRequest(
                GROUP, member, 0, None, None, 30_000, (TOPIC,), topic_partitions=[]
            ),
            0,
        ),
        (ShareGroupHeartbeatRequest(GROUP, member, 0, None, (TOPIC,)), 1),
        (DescribeGroupsRequest((GROUP,)), 5),
        (ConsumerGroupDescribeRequest((GROUP,)), 1),
        (ShareGroupDescribeRequest((GROUP,)), 1),
        (DeleteGroupsRequest((GROUP,)), 2),
        (OffsetDeleteRequest(GROUP, deleted), 0),
        (ListGroupsRequest(), 5),
        (InitProducerIdRequest(ID, 60_000), 4),
        (InitProducerIdRequest(ID, 60_000, UNKNOWN, 0), 5),
        (AddPartitionsToTxnRequest([], ID, UNKNOWN, 0, added), 3),
        (AddPartitionsToTxnRequest([AddPartitionsToTxnTransaction(ID, UNKNOWN, 0, False, added)]), 4),
        (AddPartitionsToTxnRequest([AddPartitionsToTxnTransaction(ID, UNKNOWN, 0, True, added)]), 4),
        (AddOffsetsToTxnRequest(ID, UNKNOWN, 0, GROUP), 3),
        (EndTxnRequest(ID, UNKNOWN, 0, True), 4),
        (EndTxnRequest(ID, UNKNOWN, 0, True), 5),
        (DescribeTransactionsRequest((ID,)), 0),
        (ListTransactionsRequest(), 0),
    ]
    found += [
        (TxnOffsetCommitRequest(ID, GROUP, UNKNOWN, 0, topics=rows), version) for version in range(2, 6)
    ]
    found += [
        (TxnOffsetCommitRequest(ID, GROUP, UNKNOWN, 0, topics=other), 3),
        (TxnOffsetCommitRequest(ID, "", UNKNOWN, 0, topics=rows), 3),
        (TxnOffsetCommitRequest(ID, GROUP, UNKNOWN, 0, 3, "m", topics=rows), 4),
    ]
    return found


def answers(node: CombinedNode) -> list[Any]:
    """What each is answered, without ids that are drawn."""
    with Client(HOST, node.client_port) as client:
        return [
            (
                type(request).__name__,
                version,
                without_ids(view(client.call(request, version), version, api_key(request))),
            )
            for request, version in requests()
        ]


def without_ids(shown: Any) -> Any:
    if isinstance(shown, dict):
        return {
            name: without_ids(value)
            for name, value in shown.items()
            if name not in ("topicId", "producerId") and not (name == "memberId" and "-" in (value or ""))
        }
    return [without_ids(one) for one in shown] if isinstance(shown, list) else shown


def find(node: CombinedNode, kind: int) -> None:
    """Have a topic of coordinators made, and wait for its coordinator."""
    with Client(HOST, node.client_port) as client:
        name = (GROUP, ID)[kind]
        probe: Any = (
            DescribeGroupsRequest((name,)) if kind == GROUPS else DescribeTransactionsRequest((name,))
        )

        def serves() -> bool:
            (found,) = client.call(FindCoordinatorRequest("", kind, (name,)), 4).coordinators
            made = client.call(InitProducerIdRequest(None, 60_000), 4)  # of the first block of ids
            if found.error_code or made.error_code:
                return False
            answer: Any = client.call(probe, 5 if kind == GROUPS else 0)
            (row,) = answer.groups if kind == GROUPS else answer.transaction_states
            return row.error_code not in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

        wait_until(serves, "its coordinator serves", 60)


@pytest.mark.parametrize("first", [GROUPS, TRANSACTIONS], ids=["groups", "transactions"])
def test_what_comes_before_a_coordinators_topic_is_answered_as_by_kafka(tmp_path: Path, first: int) -> None:
    with one_of_each(tmp_path) as nodes:
        for node in nodes.values():
            admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
            admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(30)
        shown: dict[Kind, list[Any]] = {kind: answers(node) for kind, node in nodes.items()}
        for node in nodes.values():
            find(node, first)
        for kind, node in nodes.items():
            shown[kind] += answers(node)
    for ours, theirs in zip(shown["kraftd"], shown["apache"], strict=True):
        assert ours == theirs
