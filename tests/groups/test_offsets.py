"""Committed offsets, scene by scene."""

from __future__ import annotations

import pytest

from kraftd.acl import AclOperation, AclResourceType
from kraftd.groups.batches import Producer
from kraftd.groups.call import Call
from kraftd.groups.config import GroupConfig
from kraftd.groups.events import TopicsDeleted
from kraftd.messages.delete_groups_request import DeleteGroupsRequest
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
from kraftd.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestTopic
from kraftd.messages.txn_offset_commit_request import TxnOffsetCommitRequestTopic
from kraftd.wire.error_code import ErrorCode
from tests.groups.desk import Desk
from tests.groups.requests import (
    COMMIT,
    FETCH,
    JOIN,
    LEAVE,
    commit,
    fetch,
    fetched,
    join,
    leave,
    members,
    stable_group,
    txn_commit,
)

DAY_MS = 24 * 60 * 60 * 1000


def error_of(desk: Desk, request: OffsetCommitRequest, version: int = COMMIT) -> int:
    """The error of the first partition of an OffsetCommit."""
    error: int = desk.ask(request, version).topics[0].partitions[0].error_code
    return error


def end_transaction(desk: Desk, producer_id: int, is_commit: bool) -> None:
    ends: list[ErrorCode] = []
    desk.perform(
        desk.coordinator.end_transaction(
            0, Producer(producer_id, 0), 0, is_commit, 0, ends.append, desk.now_ms
        )
    )
    desk.flush()
    assert ends == [ErrorCode.NONE]


def test_a_consumer_without_group_membership_commits_and_reads() -> None:
    desk = Desk()
    assert error_of(desk, commit(42, leader_epoch=7, metadata="note")) == 0
    answer = desk.ask(fetch(), FETCH).groups[0].topics[0].partitions[0]
    assert (answer.committed_offset, answer.committed_leader_epoch, answer.metadata) == (42, 7, "note")
    assert fetched(desk, partition=1) == -1
    (row,) = desk.ask(ListGroupsRequest(), 5).groups
    assert (row.protocol_type, row.group_state) == ("", "Empty")


@pytest.mark.parametrize(("version", "error"), [(8, "ILLEGAL_GENERATION"), (9, "GROUP_ID_NOT_FOUND")])
def test_a_member_of_a_missing_group_commits_nothing(version: int, error: str) -> None:
    desk = Desk()
    assert error_of(desk, commit(1, 3, "m"), version) == ErrorCode[error]
    assert desk.records() == []


def test_only_members_of_the_generation_commit() -> None:
    desk = Desk()
    (leader,) = stable_group(desk, 1)
    assert error_of(desk, commit(1, 1, leader)) == 0
    assert error_of(desk, commit(2, 2, leader)) == ErrorCode.ILLEGAL_GENERATION
    assert error_of(desk, commit(2, 1, "stranger")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert error_of(desk, commit(2)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert fetched(desk) == 1


def test_a_group_that_waits_for_its_assignment_commits_nothing() -> None:
    desk = Desk()
    (leader,) = members(desk, 1)
    assert error_of(desk, commit(1, 1, leader)) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_commit_is_as_good_as_a_heartbeat() -> None:
    desk = Desk()
    (leader,) = stable_group(desk, 1)
    desk.wait(9_000)
    assert error_of(desk, commit(1, 1, leader)) == 0
    desk.wait(9_000)
    assert error_of(desk, commit(2, 1, leader)) == 0


def test_metadata_that_is_too_long_is_refused_for_its_partition_alone() -> None:
    desk = Desk(GroupConfig(offset_metadata_max_bytes=4))
    rows = [OffsetCommitRequestPartition(0, 1, -1, "12345"), OffsetCommitRequestPartition(1, 2, -1, "𝄞𝄞")]
    answer = desk.ask(
        OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic("orders", partitions=rows)]), 9
    )
    errors = [row.error_code for row in answer.topics[0].partitions]
    assert errors == [ErrorCode.OFFSET_METADATA_TOO_LARGE, 0]
    assert len(desk.records()) == 1


def test_topics_are_named_by_id_from_version_10_on() -> None:
    desk = Desk()
    topic_id = desk.topics.topic_id("orders")
    assert topic_id is not None
    row = OffsetCommitRequestPartition(0, 5)
    request = OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic("", topic_id, [row])])
    assert error_of(desk, request, 10) == 0
    unknown = OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic("", b"?" * 16, [row])])
    assert error_of(desk, unknown, 10) == ErrorCode.UNKNOWN_TOPIC_ID
    assert fetched(desk) == 5


def test_an_offset_of_a_topic_that_was_made_anew_is_not_shown() -> None:
    desk = Desk()
    desk.ask(commit(5), COMMIT)
    request = fetch()
    assert request.groups[0].topics is not None
    request.groups[0].topics[0].name = ""
    request.groups[0].topics[0].topic_id = b"new" + bytes(13)
    desk.topics.topic_id = lambda name: b"new" + bytes(13)  # type: ignore[method-assign]
    answer = desk.ask(request, 10).groups[0].topics[0].partitions[0]
    assert answer.committed_offset == -1


def test_old_versions_answer_in_fields_of_their_own() -> None:
    desk = Desk()
    desk.ask(commit(5), COMMIT)
    old = OffsetFetchRequest("g", [OffsetFetchRequestTopic("orders", (0,))])
    answer = desk.ask(old, 7)
    assert answer.topics[0].partitions[0].committed_offset == 5
    desk.coordinator.shards.clear()
    refused = desk.ask(OffsetFetchRequest("g", [OffsetFetchRequestTopic("orders", (0,))]), 1)
    assert refused.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR


def test_callers_see_only_topics_that_they_may() -> None:
    desk = Desk()
    desk.ask(commit(5), COMMIT)

    def allows(operation: AclOperation, kind: AclResourceType, name: str) -> bool:
        return kind is AclResourceType.GROUP

    for request, version in ((commit(6), COMMIT), (fetch(), FETCH)):
        call = Call(-version, version, allows=allows)
        desk.perform(desk.coordinator.handle(call, request, desk.now_ms))
        answer = desk.answers.pop(-version)
        topics = answer.topics if version == COMMIT and hasattr(answer, "topics") and answer.topics else None
        rows = (topics or answer.groups[0].topics)[0].partitions  # type: ignore[attr-defined]
        assert rows[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert fetched(desk) == 5


def test_readers_see_what_is_committed_and_stable_ones_wait() -> None:
    desk = Desk()
    desk.ask(commit(1), COMMIT)
    desk.is_held = True
    writing = desk.send(commit(2), COMMIT)
    assert fetched(desk) == 1
    waiting = desk.send(fetch(stable=True), FETCH)
    assert writing not in desk.answers and waiting not in desk.answers
    desk.release()
    assert desk.answers[writing].topics[0].partitions[0].error_code == 0
    assert desk.answers[waiting].groups[0].topics[0].partitions[0].committed_offset == 2


def test_a_commit_that_cannot_be_appended_is_taken_back() -> None:
    desk = Desk()
    desk.ask(commit(1), COMMIT)
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    assert error_of(desk, commit(2)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert error_of(desk, commit(7, group="new")) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    desk.failure = None
    assert fetched(desk, stable=True) == 1
    assert [row.group_id for row in desk.ask(ListGroupsRequest(), 5).groups] == ["g"]


def test_a_commit_that_is_not_committed_in_time_is_answered_so() -> None:
    desk = Desk()
    desk.is_held = True
    call = desk.send(commit(1), COMMIT)
    desk.wait(4_999)
    assert call not in desk.answers
    desk.wait(1)
    assert desk.answers[call].topics[0].partitions[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    desk.release()
    assert fetched(desk) == 1, "the record is in the log all the same"


def test_an_offset_expires_a_retention_after_its_group_is_empty__kip211() -> None:
    desk = Desk()
    (leader,) = stable_group(desk, 1)
    assert error_of(desk, commit(1, 1, leader)) == 0
    for _ in range(20):  # eight days of commits keep the member alive
        for _ in range(50):
            desk.now_ms += 8_000
            desk.ask(commit(1, 1, leader), COMMIT)
    desk.ask(leave((leader, None)), LEAVE)
    desk.wait(7 * DAY_MS - 600_000)
    assert fetched(desk) == 1
    desk.wait(1_200_000)
    assert fetched(desk) == -1
    assert desk.ask(ListGroupsRequest(), 5).groups == []
    assert desk.coordinator.counts.offset_expirations == 1


def test_an_offset_of_a_simple_consumer_expires_by_its_commit() -> None:
    desk = Desk()
    desk.ask(commit(1), COMMIT)
    desk.ask(commit(1, topic="audit", retention_ms=DAY_MS), 4)
    desk.wait(DAY_MS + 600_000)
    assert (fetched(desk), fetched(desk, topic="audit")) == (1, -1)
    desk.wait(6 * DAY_MS)
    assert fetched(desk) == -1


def test_a_retention_that_overflows_ends_at_the_next_check_as_in_kafka() -> None:
    desk = Desk()
    assert error_of(desk, commit(1, retention_ms=2**63 - 1), 4) == 0
    assert fetched(desk) == 1
    desk.wait(600_000)
    assert fetched(desk) == -1


def test_an_offset_of_a_topic_without_subscription_expires__kip211() -> None:
    desk = Desk()
    (leader,) = stable_group(desk, 1)
    assert error_of(desk, commit(1, 1, leader)) == 0
    assert error_of(desk, commit(2, 1, leader, topic="audit")) == 0
    config = desk.config
    desk.coordinator.shards[0].state.config = GroupConfig(offsets_retention_minutes=1)
    desk.now_ms += 61_000
    desk.perform(desk.coordinator.shards[0].effects)
    shard = desk.coordinator.shards[0]
    shard.state.now_ms = desk.now_ms
    shard.write(shard.expire)
    desk.flush()
    shard.state.config = config
    assert (fetched(desk), fetched(desk, topic="audit")) == (1, -1)


def test_an_operator_deletes_offsets_of_topics_that_are_not_read__kip496() -> None:
    desk = Desk()
    (leader,) = stable_group(desk, 1)
    desk.ask(commit(1, 1, leader), COMMIT)
    desk.ask(commit(2, 1, leader, topic="audit"), COMMIT)
    rows = [OffsetDeleteRequestPartition(0), OffsetDeleteRequestPartition(9)]
    topics = [OffsetDeleteRequestTopic("orders", rows), OffsetDeleteRequestTopic("audit", rows)]
    answer = desk.ask(OffsetDeleteRequest("g", topics), 0)
    errors = {
        topic.name: {row.partition_index: row.error_code for row in topic.partitions}
        for topic in answer.topics
    }
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors == {
        "orders": {0: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, 9: unknown},
        "audit": {0: ErrorCode.NONE, 9: unknown},
    }
    assert (fetched(desk), fetched(desk, topic="audit")) == (1, -1)
    assert desk.ask(OffsetDeleteRequest("none", []), 0).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_topic_without_partitions_is_answered_if_it_is_unknown() -> None:
    desk = Desk()
    desk.ask(commit(1), COMMIT)
    names = ("orders", "none")
    asked = [OffsetDeleteRequestTopic(name, []) for name in names]
    assert [topic.name for topic in desk.ask(OffsetDeleteRequest("g", asked), 0).topics] == ["none"]
    request = txn_commit(1, 7)
    request.topics += [TxnOffsetCommitRequestTopic(name, []) for name in names]
    answer = desk.ask(request, 3)
    assert [(topic.name, len(topic.partitions)) for topic in answer.topics] == [("none", 0), ("orders", 1)]


def test_an_operator_deletes_groups_without_members() -> None:
    desk = Desk()
    (leader,) = stable_group(desk, 1, "busy")
    desk.ask(commit(1), COMMIT)
    desk.ask(txn_commit(2, 5, partition=1), 3)
    results = desk.ask(DeleteGroupsRequest(("g", "busy", "none", "g")), 2).results
    errors = {row.group_id: row.error_code for row in results}
    assert errors == {
        "g": ErrorCode.NONE,
        "busy": ErrorCode.NON_EMPTY_GROUP,
        "none": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert len(results) == 3
    assert (fetched(desk), fetched(desk, partition=1, stable=True)) == (-1, -1)
    end_transaction(desk, 5, True)
    assert fetched(desk, partition=1) == -1, "the tombstone removed the pending offset too"
    assert leader


def test_offsets_of_deleted_topics_go() -> None:
    desk = Desk()
    desk.ask(commit(1), COMMIT)
    desk.ask(commit(2, topic="audit"), COMMIT)
    desk.step(
        TopicsDeleted({"orders": desk.topics.topic_id("orders") or b"", "audit": b"another one" + bytes(5)})
    )
    desk.flush()
    assert (fetched(desk), fetched(desk, topic="audit")) == (-1, 2)


def test_offsets_of_a_transaction_count_once_it_is_committed__kip447() -> None:
    desk = Desk()
    desk.ask(commit(1), COMMIT)
    assert desk.ask(txn_commit(10, 5), 3).topics[0].partitions[0].error_code == 0
    assert fetched(desk) == 1
    stable = desk.ask(fetch(stable=True), FETCH).groups[0].topics[0].partitions[0]
    assert (stable.error_code, stable.committed_offset) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    all_of_it = desk.ask(fetch(topic=None, stable=True), FETCH).groups[0].topics[0].partitions[0]
    assert all_of_it.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
    desk.reload()
    end_transaction(desk, 5, True)
    assert fetched(desk, stable=True) == 10
    desk.reload()
    assert fetched(desk, stable=True) == 10


def test_offsets_of_an_aborted_transaction_never_count() -> None:
    desk = Desk()
    desk.ask(commit(1), COMMIT)
    desk.ask(txn_commit(10, 5), 3)
    desk.ask(txn_commit(11, 6), 3)
    end_transaction(desk, 5, False)
    assert fetched(desk) == 1
    end_transaction(desk, 6, True)
    assert fetched(desk, stable=True) == 11


def test_a_later_commit_beats_an_earlier_one_of_a_transaction() -> None:
    desk = Desk()
    desk.ask(txn_commit(10, 5), 3)
    desk.ask(commit(20), COMMIT)
    end_transaction(desk, 5, True)
    assert fetched(desk) == 20
    desk.reload()
    assert fetched(desk) == 20


def test_a_marker_that_cannot_be_appended_is_taken_back() -> None:
    desk = Desk()
    desk.ask(txn_commit(10, 5), 3)
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    ends: list[ErrorCode] = []
    desk.perform(desk.coordinator.end_transaction(0, Producer(5, 0), 0, True, 0, ends.append, desk.now_ms))
    desk.flush()
    assert ends == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    desk.failure = None
    assert fetched(desk) == -1
    end_transaction(desk, 5, True)
    assert fetched(desk) == 10


def test_a_group_with_an_open_transaction_is_not_removed() -> None:
    desk = Desk()
    desk.ask(txn_commit(10, 5), 3)
    desk.wait(8 * DAY_MS)
    assert [row.group_id for row in desk.ask(ListGroupsRequest(), 5).groups] == ["g"]


def test_a_record_too_large_for_a_batch_is_refused() -> None:
    desk = Desk(GroupConfig(max_batch_bytes=2_000, offset_metadata_max_bytes=4_000))
    assert error_of(desk, commit(1, metadata="x" * 2_000)) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert error_of(desk, commit(2, metadata="x" * 1_500)) == 0
    big = desk.send(join(metadata=bytes(3_000)), 3)
    desk.wait(3_000)
    assert desk.answers[big].error_code == 0, "a member's metadata is written with the assignment"
    assert JOIN


def test_the_topic_limits_a_batch_at_any_time() -> None:
    desk = Desk()
    desk.coordinator.limit_batches(1_000)
    assert error_of(desk, commit(3, metadata="x" * 1_500)) == ErrorCode.UNKNOWN_SERVER_ERROR
    desk.coordinator.limit_batches(4_000)
    assert error_of(desk, commit(4, metadata="x" * 1_500)) == 0
