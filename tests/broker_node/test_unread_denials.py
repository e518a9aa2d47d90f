"""Large requests of clients without rights are refused undecoded, with the answers that decoding gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from kraftd.acl import CLUSTER_NAME, AclOperation, AclPatternType, AclPermission, AclResourceType
from kraftd.answers.unread_denials import DENIALS, WHOLE
from kraftd.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kraftd.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kraftd.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kraftd.messages.delete_groups_request import DeleteGroupsRequest
from kraftd.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kraftd.messages.delete_share_group_offsets_request import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kraftd.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kraftd.messages.describe_groups_request import DescribeGroupsRequest
from kraftd.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from kraftd.messages.describe_transactions_request import DescribeTransactionsRequest
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kraftd.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kraftd.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
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
from kraftd.messages.share_acknowledge_request import (
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from kraftd.messages.share_fetch_request import FetchPartition as SharedPartition
from kraftd.messages.share_fetch_request import FetchTopic as SharedTopic
from kraftd.messages.share_fetch_request import ShareFetchRequest
from kraftd.messages.share_group_describe_request import ShareGroupDescribeRequest
from kraftd.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kraftd.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kraftd.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kraftd.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kraftd.metadata.state import AclState
from kraftd.requests import intake, unread_refusals
from kraftd.requests.refusals import element_class
from kraftd.security.authorizer import StandardAuthorizer
from kraftd.security.authorizer_settings import AuthorizerSettings
from kraftd.wire.api import ApiKey, request_class, valid_versions
from kraftd.wire.engine import C_ENGINE
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import encode_request, parse_response
from tests.broker_node.harness import BrokerHarness
from tests.metadata_topic_node.clients import ClientHarness

pytestmark = pytest.mark.skipif(C_ENGINE is None, reason="the engine in Python decodes everything")

NAMES = tuple(f"name-{number:04}-of-more-than-twenty-bytes-ä" for number in range(550))
PARTITIONS = 0, 7
TOPIC = 2
GROUP, TRANSACTION = AclResourceType.GROUP, AclResourceType.TRANSACTIONAL_ID
REQUESTS: dict[ApiKey, tuple[tuple[int, ...], Callable[[tuple[str, ...]], Any]]] = {
    ApiKey.FETCH: (
        (4, 11, 12),
        lambda names: FetchRequest(
            max_wait_ms=500,
            topics=[FetchTopic(name, partitions=[FetchPartition(at) for at in PARTITIONS]) for name in names],
        ),
    ),
    ApiKey.LIST_OFFSETS: (
        (1, 4, 11),
        lambda names: ListOffsetsRequest(
            topics=[
                ListOffsetsTopic(name, [ListOffsetsPartition(at, timestamp=9) for at in PARTITIONS])
                for name in names
            ]
        ),
    ),
    ApiKey.DELETE_RECORDS: (
        (0, 2),
        lambda names: DeleteRecordsRequest(
            [DeleteRecordsTopic(name, [DeleteRecordsPartition(at, 3) for at in PARTITIONS]) for name in names]
        ),
    ),
    ApiKey.DESCRIBE_CONFIGS: (
        (1, 4),
        lambda names: DescribeConfigsRequest([DescribeConfigsResource(TOPIC, name) for name in names]),
    ),
    ApiKey.OFFSET_COMMIT: (
        (2, 9),
        lambda names: OffsetCommitRequest(
            "g",
            topics=[
                OffsetCommitRequestTopic(
                    name, partitions=[OffsetCommitRequestPartition(at, 5) for at in PARTITIONS]
                )
                for name in names
            ],
        ),
    ),
    ApiKey.TXN_OFFSET_COMMIT: (
        (0, 3, 5),
        lambda names: TxnOffsetCommitRequest(
            "t",
            "g",
            topics=[
                TxnOffsetCommitRequestTopic(
                    name, [TxnOffsetCommitRequestPartition(at, 5) for at in PARTITIONS]
                )
                for name in names
            ],
        ),
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        (0, 3),
        lambda names: AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="t",
            v3_and_below_topics=[AddPartitionsToTxnTopic(name, PARTITIONS) for name in names],
        ),
    ),
    ApiKey.DESCRIBE_GROUPS: ((0, 4, 5, 6), lambda names: DescribeGroupsRequest((*names, names[0]))),
    ApiKey.CONSUMER_GROUP_DESCRIBE: ((0, 1), lambda names: ConsumerGroupDescribeRequest((*names, names[0]))),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: (
        (0, 1),
        lambda names: ConsumerGroupHeartbeatRequest("g", "m", subscribed_topic_names=names),
    ),
    ApiKey.SHARE_GROUP_DESCRIBE: ((1,), lambda names: ShareGroupDescribeRequest((*names, names[0]))),
    ApiKey.SHARE_GROUP_HEARTBEAT: (
        (1,),
        lambda names: ShareGroupHeartbeatRequest("g", "m", subscribed_topic_names=names),
    ),
    ApiKey.SHARE_FETCH: (
        (1, 2),
        lambda names: ShareFetchRequest(
            "g", "m", topics=[SharedTopic(bytes(16), [SharedPartition(at) for at in range(len(names) * 10)])]
        ),
    ),
    ApiKey.SHARE_ACKNOWLEDGE: (
        (1, 2),
        lambda names: ShareAcknowledgeRequest(
            "g",
            "m",
            topics=[AcknowledgeTopic(bytes(16), [AcknowledgePartition(at) for at in range(len(names) * 10)])],
        ),
    ),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (
        (0, 1),
        lambda names: DescribeShareGroupOffsetsRequest(
            [
                DescribeShareGroupOffsetsRequestGroup(
                    name, [DescribeShareGroupOffsetsRequestTopic("t", PARTITIONS)] if number % 2 else None
                )
                for number, name in enumerate((*names, names[0]))
            ]
        ),
    ),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: (
        (0,),
        lambda names: AlterShareGroupOffsetsRequest(
            "g",
            [
                AlterShareGroupOffsetsRequestTopic(name, [AlterShareGroupOffsetsRequestPartition(0, 5)])
                for name in names
            ],
        ),
    ),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: (
        (0,),
        lambda names: DeleteShareGroupOffsetsRequest(
            "g", [DeleteShareGroupOffsetsRequestTopic(name) for name in names]
        ),
    ),
    ApiKey.DELETE_GROUPS: ((0, 2), lambda names: DeleteGroupsRequest((*names, names[0]))),
    ApiKey.DESCRIBE_TRANSACTIONS: ((0,), lambda names: DescribeTransactionsRequest((*names, names[0]))),
    ApiKey.JOIN_GROUP: (
        (0, 4, 5, 9),
        lambda names: JoinGroupRequest(
            "g", 6_000, 6_000, "m", None, "consumer", [JoinGroupRequestProtocol(name, b"x") for name in names]
        ),
    ),
    ApiKey.SYNC_GROUP: (
        (0, 3, 5),
        lambda names: SyncGroupRequest(
            "g", 1, "m", None, "consumer", "range", [SyncGroupRequestAssignment(name, b"x") for name in names]
        ),
    ),
    ApiKey.LEAVE_GROUP: (
        (3, 5),
        lambda names: LeaveGroupRequest("g", members=[MemberIdentity(name) for name in names]),
    ),
    ApiKey.OFFSET_DELETE: (
        (0,),
        lambda names: OffsetDeleteRequest(
            "g",
            [
                OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(at) for at in PARTITIONS])
                for name in names
            ],
        ),
    ),
}
OF_GROUPS = [key for key in REQUESTS if key.name.startswith("CONSUMER_") or "SHARE_" in key.name]
OF_METADATA_TOPIC = ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.DELETE_RECORDS, ApiKey.DESCRIBE_CONFIGS
OF_SHARE_STATES = [key for key in ApiKey if key.name.endswith(("_SHARE_GROUP_STATE", "_STATE_SUMMARY"))]
CASES = [("broker", key, version) for key, (versions, _) in REQUESTS.items() for version in versions]
CASES += [("client", key, version) for key in OF_METADATA_TOPIC for version in REQUESTS[key][0]]


class Asked:
    """A node of either kind whose clients have no rights but those of `grant`."""

    def __init__(self, kind: str, tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
        self.harness: Any = BrokerHarness(tmp_path).run() if kind == "broker" else ClientHarness(tmp_path)
        if kind == "client":
            self.harness.start()
            self.harness.unfenced(1)
        self.node = self.harness.broker if kind == "broker" else self.harness.clients
        self.kind = kind
        self.patch = patch
        self.decoded = 0
        decode_prefix = intake.decode_prefix

        def noted(*arguments: Any) -> Any:
            self.decoded += len(arguments[2]) > 16_384
            return decode_prefix(*arguments)

        patch.setattr(intake, "decode_prefix", noted)
        self.grant()

    def grant(self, *acls: AclState) -> None:
        authorizer = StandardAuthorizer(AuthorizerSettings())
        authorizer.change((), acls)
        authorizer.end_load()
        self.patch.setattr(self.node.boundary, "_authorizer", authorizer)

    def ask(self, key: ApiKey, version: int, request: Any) -> Any:
        """The decoded answer."""
        self.decoded = 0
        frame = b"".join(encode_request(key, version, 1, "test", request))[4:]
        if self.kind == "broker":
            slot = self.harness.send_frame_to_broker([frame])
            self.harness.pass_time(2_000)  # a sender of large requests has an allowance
            raw = self.harness.wire.responses[slot]
        else:
            raw = self.harness.answers[self.harness.client_frame(frame, key, version)]
        answer: Any = parse_response(key, version, memoryview(raw)[4:])[1]
        if hasattr(answer, "throttle_time_ms"):
            answer.throttle_time_ms = 0  # it depends on earlier requests
        return answer

    def ask_decoding(self, key: ApiKey, version: int, request: Any) -> Any:
        """The same, decoded as always."""
        with self.patch.context() as patch:
            patch.setattr(unread_refusals, "C_ENGINE", None)
            answer = self.ask(key, version, request)
        assert self.decoded == 1
        return answer

    def errors(self, key: ApiKey) -> int:
        stats = self.node.boundary.stats.by_key.get(key)
        return sum(stats.errors.values()) if stats else 0

    @property
    def audited(self) -> list[Any]:
        found: list[Any] = self.harness.wire.events if self.kind == "broker" else self.harness.audited
        return found


def in_order(answer: Any) -> Any:
    """An answer whose rows have an order; AddPartitionsToTxn's have none."""
    rows = getattr(answer, "results_by_topic_v3_and_below", None)
    if not rows:
        return answer
    for row in rows:
        row.results_by_partition.sort(key=lambda one: one.partition_index)
    return structs.replace(answer, results_by_topic_v3_and_below=sorted(rows, key=lambda row: row.name))


@pytest.fixture(scope="module")
def patch() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory, patch: pytest.MonkeyPatch) -> dict[str, Asked]:
    return {kind: Asked(kind, tmp_path_factory.mktemp(kind), patch) for kind in ("broker", "client")}


@pytest.mark.parametrize(("kind", "key", "version"), CASES)
def test_elements_of_a_client_without_rights_are_not_decoded(
    nodes: dict[str, Asked], kind: str, key: ApiKey, version: int
) -> None:
    asked, request = nodes[kind], REQUESTS[key][1](NAMES)
    before = asked.errors(key)
    expected = asked.ask_decoding(key, version, request)
    counted = asked.errors(key) - before
    asked.node.boundary.authorizations.end_period()
    audited = len(asked.audited)
    assert in_order(asked.ask(key, version, request)) == in_order(expected)
    assert asked.decoded == 0
    if key != ApiKey.ADD_PARTITIONS_TO_TXN:
        assert asked.errors(key) - before == 2 * counted > 0
    assert [line.event for line in asked.audited[audited:]] == ["authorization denied"]


@pytest.mark.parametrize(("kind", "key"), sorted({(kind, key) for kind, key, _ in CASES}))
def test_one_right_of_a_client_lets_all_be_decoded(nodes: dict[str, Asked], kind: str, key: ApiKey) -> None:
    asked, needed = nodes[kind], DENIALS.get(key)
    type = GROUP if needed is None else needed.refusal.type
    operation = WHOLE[key].operation if needed is None else needed.refusal.operation
    who = AclPatternType.LITERAL, "User:ANONYMOUS", "*"
    asked.grant(AclState(type, "another", *who, operation, AclPermission.ALLOW))
    version, request = REQUESTS[key][0][-1], REQUESTS[key][1](NAMES)
    asked.ask(key, version, request)
    assert asked.decoded == 1
    if key == ApiKey.FETCH:
        action, cluster = AclOperation.CLUSTER_ACTION, AclResourceType.CLUSTER
        asked.grant(AclState(cluster, CLUSTER_NAME, *who, action, AclPermission.ALLOW))
        asked.ask(key, version, request)
        assert asked.decoded == 1
    asked.grant()


def test_transactions_of_another_than_a_broker_are_not_decoded(nodes: dict[str, Asked]) -> None:
    broker = nodes["broker"]
    transactions = [
        AddPartitionsToTxnTransaction(name, topics=[AddPartitionsToTxnTopic("t", PARTITIONS)])
        for name in NAMES
    ]
    question = ApiKey.ADD_PARTITIONS_TO_TXN, 4, AddPartitionsToTxnRequest(transactions)
    expected = broker.ask_decoding(*question)
    assert expected.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert broker.ask(*question) == expected
    assert broker.decoded == 0


@pytest.mark.parametrize("key", OF_SHARE_STATES)
def test_share_states_of_another_than_a_broker_are_not_decoded(nodes: dict[str, Asked], key: ApiKey) -> None:
    broker, request = nodes["broker"], request_class(key)
    topic: Any = element_class(request, "topics")
    partition: Any = element_class(topic, "partitions")
    topics = [
        topic(number.to_bytes(16), [partition(at) for at in (*PARTITIONS, 9)])
        for number in (*range(len(NAMES)), 0)  # one twice, which is refused twice
    ]
    question = key, valid_versions(key)[1], request(group_id="g", topics=topics)
    before = broker.errors(key)
    expected = broker.ask_decoding(*question)
    assert expected.results[0].partitions[1].error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    counted = broker.errors(key) - before
    assert broker.ask(*question) == expected
    assert broker.decoded == 0 and broker.errors(key) - before == 2 * counted
    cluster, who = AclResourceType.CLUSTER, (AclPatternType.LITERAL, "User:ANONYMOUS", "*")
    broker.grant(AclState(cluster, CLUSTER_NAME, *who, AclOperation.CLUSTER_ACTION, AclPermission.ALLOW))
    broker.ask(*question)
    assert broker.decoded == 1
    broker.grant()


@pytest.mark.parametrize("key", sorted(OF_GROUPS))
def test_without_such_groups_that_is_the_error(
    nodes: dict[str, Asked], key: ApiKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = nodes["broker"]
    view = type(broker.node.view)
    monkeypatch.setattr(view, "finalized_features", property(lambda self: ({}, 0)))
    broker.node.groups.follow_image()
    version = REQUESTS[key][0][-1]
    answer = broker.ask_decoding(key, version, REQUESTS[key][1](NAMES))
    assert broker.ask(key, version, REQUESTS[key][1](NAMES)) == answer and broker.decoded == 1
    rows = getattr(answer, "groups", [answer])
    assert {row.error_code for row in rows} == {ErrorCode.UNSUPPORTED_VERSION}
    monkeypatch.undo()
    broker.node.groups.follow_image()


@pytest.mark.parametrize("key", [ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE])
def test_without_a_group_that_is_the_error(nodes: dict[str, Asked], key: ApiKey) -> None:
    request = structs.replace(REQUESTS[key][1](NAMES), group_id=None)
    answer = nodes["broker"].ask(key, REQUESTS[key][0][-1], request)
    assert answer.error_code == ErrorCode.INVALID_REQUEST and nodes["broker"].decoded == 1


def test_what_is_not_refused_alike_is_decoded(nodes: dict[str, Asked]) -> None:
    broker = nodes["broker"]
    fetch, commit = (REQUESTS[key][1](NAMES) for key in (ApiKey.FETCH, ApiKey.OFFSET_COMMIT))
    by_id = structs.replace(
        fetch, topics=[FetchTopic("", bytes(15) + b"1", one.partitions) for one in fetch.topics]
    )
    cases = [
        (ApiKey.FETCH, 12, structs.replace(fetch, session_id=7, session_epoch=3)),
        (ApiKey.FETCH, 12, structs.replace(fetch, session_id=7, session_epoch=-1)),
        (ApiKey.FETCH, 13, by_id),
        (ApiKey.OFFSET_COMMIT, 10, commit),
        (ApiKey.OFFSET_COMMIT, 9, structs.replace(commit, topics=[*commit.topics, commit.topics[0]])),
    ]
    for key, version, request in cases:
        broker.ask(key, version, request)
        assert broker.decoded == 1


@pytest.mark.parametrize("operation", [AclOperation.ALTER, AclOperation.CLUSTER_ACTION])
def test_either_right_on_the_cluster_is_enough_for_markers(
    nodes: dict[str, Asked], operation: AclOperation
) -> None:
    broker, topic = nodes["broker"], WritableTxnMarkerTopic("t", (0,))
    request = WriteTxnMarkersRequest([WritableTxnMarker(7, 0, True, [topic], 0)])

    def error() -> int:
        (marker,) = broker.ask(ApiKey.WRITE_TXN_MARKERS, 1, request).markers
        return int(marker.topics[0].partitions[0].error_code)

    assert error() == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    who = AclPatternType.LITERAL, "User:ANONYMOUS", "*"
    broker.grant(AclState(AclResourceType.CLUSTER, CLUSTER_NAME, *who, operation, AclPermission.ALLOW))
    assert error() == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    broker.grant()
