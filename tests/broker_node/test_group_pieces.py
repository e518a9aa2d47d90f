"""Requests of groups that name very many partitions: in pieces, with one answer."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from kraftd.broker_node.coordination.group_pieces import (
    GROUPS_OF_A_PIECE,
    PARTITIONS_OF_A_PIECE,
    joined,
    pieces_of,
)
from kraftd.groups.coordinator import GroupCoordinator
from kraftd.groups.transactions.coordinator import TransactionCoordinator
from kraftd.messages.delete_groups_request import DeleteGroupsRequest
from kraftd.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from kraftd.messages.describe_groups_request import DescribeGroupsRequest
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.messages.list_groups_request import ListGroupsRequest
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
from kraftd.messages.offset_delete_response import OffsetDeleteResponse
from kraftd.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kraftd.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.broker_node.harness import BrokerHarness

KNOWN, NAMED = 3, 5_000
INDEXES = range(NAMED)
NAMES = tuple(f"group-{number:04d}-with-a-longer-name" for number in range(1_000))
REQUESTS: dict[str, tuple[ApiKey, int, Any]] = {
    "commit": (
        ApiKey.OFFSET_COMMIT,
        8,
        OffsetCommitRequest(
            "g",
            -1,
            "",
            topics=[
                OffsetCommitRequestTopic(
                    name, partitions=[OffsetCommitRequestPartition(n, 7, -1, "m") for n in INDEXES]
                )
                for name in ("t", "unknown", "t")
            ],
        ),
    ),
    "fetch": (
        ApiKey.OFFSET_FETCH,
        8,
        OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group, topics=[OffsetFetchRequestTopics("t", partition_indexes=tuple(INDEXES))]
                )
                for group in ("g", "another")
            ]
        ),
    ),
    "delete": (
        ApiKey.OFFSET_DELETE,
        0,
        OffsetDeleteRequest(
            "g", [OffsetDeleteRequestTopic("t", [OffsetDeleteRequestPartition(n) for n in INDEXES])]
        ),
    ),
    "describe": (ApiKey.DESCRIBE_GROUPS, 5, DescribeGroupsRequest(NAMES, True)),
    "commit in a transaction": (
        ApiKey.TXN_OFFSET_COMMIT,
        3,
        TxnOffsetCommitRequest(
            "x",
            "of-a-producer",
            7,
            0,
            topics=[
                TxnOffsetCommitRequestTopic(name, [TxnOffsetCommitRequestPartition(n, 7) for n in INDEXES])
                for name in ("t", "unknown")
            ],
        ),
    ),
    "delete groups": (ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest((*NAMES, *NAMES))),
}


def size(request: Any) -> int:
    """The partitions and groups that a request names."""
    groups = getattr(request, "groups", ())
    topics = [*getattr(request, "topics", ()), *(t for one in groups for t in getattr(one, "topics", ()))]
    rows = sum(len(getattr(one, "partitions", ()) or one.partition_indexes) for one in topics)
    return rows + len(groups) + len(getattr(request, "groups_names", ()))


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> BrokerHarness:
    keys = {"transaction.partition.verification.enable": "false"}
    found = BrokerHarness(Path(tmp_path_factory.mktemp("broker")), broker=keys).run()
    found.create_topic("t", KNOWN)
    found.create_topic("__consumer_offsets", 1, cleanup_policy="compact")
    found.pass_time(100)
    return found


@pytest.mark.parametrize("name", REQUESTS)
def test_a_step_handles_one_piece_and_the_client_gets_one_answer(
    harness: BrokerHarness, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    key, version, request = REQUESTS[name]
    handle = GroupCoordinator.handle
    sizes: list[int] = []

    def noted(self: GroupCoordinator, call: Any, message: Any, now_ms: int) -> Any:
        sizes.append(size(message))
        return handle(self, call, message, now_ms)

    monkeypatch.setattr(GroupCoordinator, "handle", noted)
    divided = harness.client_ask(key, version, deepcopy(request))
    assert max(sizes) <= max(PARTITIONS_OF_A_PIECE, GROUPS_OF_A_PIECE) + 1 and len(sizes) > 5
    sizes.clear()
    monkeypatch.setattr("kraftd.broker_node.coordination.group_coordination.pieces_of", lambda whole: [whole])
    whole = harness.client_ask(key, version, deepcopy(request))
    assert len(sizes) == 1
    assert rows_of(divided) == rows_of(whole)


def rows_of(answer: Any) -> list[Any]:
    """The rows of an answer, sorted: partitions that are unknown come first in each piece."""
    for topic in getattr(answer, "topics", ()):
        topic.partitions.sort(key=repr)
    rows = getattr(answer, "results", None) or getattr(answer, "groups", None) or answer.topics
    return sorted(rows, key=repr)


def test_an_error_of_one_piece_is_that_of_the_whole_request() -> None:
    refused = OffsetDeleteResponse(error_code=ErrorCode.NON_EMPTY_GROUP)
    assert joined([OffsetDeleteResponse(), refused]) is refused


def test_groups_that_are_named_repeatedly_are_deleted_once() -> None:
    assert [piece.groups_names for piece in pieces_of(DeleteGroupsRequest(("a", "b", "a")))] == [("a", "b")]  # type: ignore[attr-defined]
    answers = [DeleteGroupsResponse(results=[DeletableGroupResult(name)]) for name in "ab"]
    assert [one.group_id for one in joined(answers).results] == ["a", "b"]


def test_short_requests_and_those_of_members_stay_whole() -> None:
    for request in (OffsetCommitRequest("g"), OffsetFetchRequest("g"), DescribeGroupsRequest(())):
        assert len(pieces_of(request)) == 1


def test_very_many_groups_are_listed_in_several_callbacks(
    harness: BrokerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = [OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(0, 7, -1, "m")])]
    for name in NAMES[:40]:
        harness.client_ask(ApiKey.OFFSET_COMMIT, 8, OffsetCommitRequest(name, -1, "", topics=topics))
    whole = harness.client_ask(ApiKey.LIST_GROUPS, 4, ListGroupsRequest())
    assert {one.group_id for one in whole.groups} >= {*NAMES[:40]}
    monkeypatch.setattr("kraftd.ground.pace.MAX_SLICE_WORK_US", 10)
    with monkeypatch.context() as patched:
        patched.setattr(harness.timer, "run_soon", lambda: None)
        slot = harness.client_send(ApiKey.LIST_GROUPS, 4, ListGroupsRequest())
        assert harness.response(slot) is None
    harness.pass_time(100)
    assert rows_of(harness.response(slot)) == rows_of(whole)


def test_a_fault_of_the_coordinator_is_answered(
    harness: BrokerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As from Kafka, whether the request is taken whole or in pieces."""

    def failing(*_: object) -> None:
        raise KeyError("a fault")

    key, version, large = REQUESTS["commit"]
    row = OffsetCommitRequestPartition(0, 7)
    small = OffsetCommitRequest("g", -1, "", topics=[OffsetCommitRequestTopic("t", partitions=[row])])
    with monkeypatch.context() as faulty:
        faulty.setattr(type(harness.broker_lines), "keep", lambda *_: None)  # which would raise it
        faulty.setattr(GroupCoordinator, "handle", failing)
        faulty.setattr(TransactionCoordinator, "handle", failing)
        for request in (small, large):
            answer = harness.client_ask(key, version, deepcopy(request))
            errors = {one.error_code for topic in answer.topics for one in topic.partitions}
            assert errors == {ErrorCode.UNKNOWN_SERVER_ERROR}
        begun = harness.client_ask(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest("x", 10_000))
        assert begun.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    answer = harness.client_ask(key, version, small)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
