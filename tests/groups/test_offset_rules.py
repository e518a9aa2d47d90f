"""Committed offsets at their limits: which commits and fetches are refused, and when offsets go."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.groups.config import GroupConfig
from kraftd.groups.events import HighWatermarkAdvanced, TopicsDeleted
from kraftd.groups.offsets.commit import is_too_long
from kraftd.groups.offsets.fetch import fetch_offsets
from kraftd.groups.offsets.removal import expire_offsets
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
from kraftd.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kraftd.wire.error_code import ErrorCode, error_name
from tests.groups.consumer.members import HEARTBEAT, Consumer, joining, settle
from tests.groups.desk import Desk
from tests.groups.requests import (
    COMMIT,
    FETCH,
    commit,
    fetch,
    fetched,
    join,
    members,
    txn_commit,
)
from tests.groups.requests import (
    settle as settle_classic,
)
from tests.groups.test_offsets import end_transaction, error_of

MINUTE_MS = 60_000


# Commits


@pytest.mark.parametrize("generation", [-1, 0, 1])
@pytest.mark.parametrize("version", [8, 9])
def test_only_a_consumer_without_generation_makes_a_group(version: int, generation: int) -> None:
    desk = Desk()
    expected = "NONE"
    if generation >= 0:
        expected = "ILLEGAL_GENERATION" if version < 9 else "GROUP_ID_NOT_FOUND"
    assert error_name(error_of(desk, commit(1, generation), version)) == expected
    in_transaction = txn_commit(1, 7, group="other")
    in_transaction.generation_id = generation
    answer = desk.ask(in_transaction, 3)
    expected = "NONE" if generation < 0 else "ILLEGAL_GENERATION"
    assert error_name(answer.topics[0].partitions[0].error_code) == expected


def test_each_partition_is_answered_by_its_name_and_index() -> None:
    desk = Desk(GroupConfig(offset_metadata_max_bytes=1))
    rows = [OffsetCommitRequestPartition(index, 1, -1, "x" * index) for index in (2, 1)]
    topics = [OffsetCommitRequestTopic(name, partitions=rows) for name in ("orders", "audit")]
    answer = desk.ask(OffsetCommitRequest("g", topics=topics), COMMIT)
    found = [
        (topic.name, row.partition_index, error_name(row.error_code))
        for topic in answer.topics
        for row in topic.partitions
    ]
    too_large, unknown = "OFFSET_METADATA_TOO_LARGE", "UNKNOWN_TOPIC_OR_PARTITION"
    assert sorted(found) == [
        ("audit", 1, "NONE"),
        ("audit", 2, unknown),
        ("orders", 1, "NONE"),
        ("orders", 2, too_large),
    ]
    topic_id = desk.topics.topic_id("orders") or b""
    named = OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic("", topic_id, rows[1:])])
    (topic,) = desk.ask(named, 10).topics
    assert (topic.topic_id, [row.partition_index for row in topic.partitions]) == (topic_id, [1])
    assert desk.ask(fetch(), FETCH).groups[0].group_id == "g"


def test_a_static_member_that_was_replaced_commits_nothing() -> None:
    desk = Desk()
    number = desk.send(join(instance="i"), 9)
    desk.wait(3_000)
    leader = desk.answers[number].member_id
    settle_classic(desk, [leader])
    request = commit(1, 1, leader)
    request.group_instance_id = "i"
    assert error_of(desk, request) == 0
    again = desk.varied
    assert again.take(900, [2], [-1], desk.now_ms)
    desk.flush()
    desk.ask(join(instance="i"), 9)  # its successor
    in_transaction = txn_commit(1, 7)
    in_transaction.member_id, in_transaction.generation_id = leader, 1
    in_transaction.group_instance_id = "i"
    for answer in (desk.ask(request, COMMIT), desk.ask(in_transaction, 3)):
        assert answer.topics[0].partitions[0].error_code == ErrorCode.FENCED_INSTANCE_ID
    assert again.take(901, [3], [-1], desk.now_ms) is False


def transactional(desk: Desk, member: str, generation: int) -> str:
    request = txn_commit(1, 7)
    request.member_id, request.generation_id = member, generation
    return error_name(desk.ask(request, 3).topics[0].partitions[0].error_code)


def test_a_transaction_commits_for_a_member_in_its_generation_or_for_none() -> None:
    desk = Desk()
    (leader,) = members(desk, 1)
    assert transactional(desk, leader, 1) == "NONE"  # even while it waits for its assignment
    settle_classic(desk, [leader])
    found = [transactional(desk, leader, number) for number in (0, 1, 2)]
    assert found == ["ILLEGAL_GENERATION", "NONE", "ILLEGAL_GENERATION"]
    assert transactional(desk, "stranger", 1) == "UNKNOWN_MEMBER_ID"
    assert transactional(desk, "", -1) == "NONE"


def test_a_consumer_commits_in_an_older_epoch_only_what_it_has_had_since() -> None:
    """So a commit counts that was sent before the answer with the new epoch came."""
    desk = Desk()
    one = Consumer(desk.ask, "m1")
    one.join()
    first = one.epoch
    Consumer(desk.ask, "m2").join()
    desk.wait(5_000)
    settle(one)
    assert one.epoch > first
    (had,) = one.has.values()
    lost = next(index for index in range(4) if index not in had)
    codes = {}
    for name, index, epoch in (
        ("had", had[0], first),
        ("lost", lost, first),
        ("older", had[0], first - 1),
        ("newer", had[0], one.epoch + 1),
        ("now", lost, one.epoch),
    ):
        code = error_of(desk, commit(5, epoch, "m1", partition=index))
        in_transaction = txn_commit(6, 7, partition=index)
        in_transaction.member_id, in_transaction.generation_id = "m1", epoch
        other = desk.ask(in_transaction, 3).topics[0].partitions[0].error_code
        codes[name] = error_name(code), error_name(other)
    stale = "STALE_MEMBER_EPOCH", "ILLEGAL_GENERATION"
    none = "NONE", "NONE"
    assert codes == {"had": none, "lost": stale, "older": stale, "newer": stale, "now": none}
    named = commit(7, first, "m1", partition=had[0])
    named.topics[0].name, named.topics[0].topic_id = "", desk.topics.topic_id("orders") or b""
    assert error_of(desk, named, 10) == 0


@pytest.mark.parametrize(
    ("metadata", "limit"),
    [("", 0), ("abc", 3), ("äöü", 3), ("𝄞", 2), ("𝄞𝄞a", 5), ("ä𝄞", 3), ("\ud800x", 2)],
)
def test_metadata_is_measured_in_units_of_utf16(metadata: str, limit: int) -> None:
    for most in range(10):
        assert is_too_long(metadata, most) is (most < limit)


# Fetches


def fetched_rows(desk: Desk, request: OffsetFetchRequest) -> dict[tuple[str, int], int | str]:
    """The offset of each partition of an answer, or its error."""
    (group,) = desk.ask(request, FETCH).groups
    names = [topic.name for topic in group.topics]
    assert len(set(names)) == len(names)
    rows: dict[tuple[str, int], int | str] = {}
    for topic in group.topics:
        for row in topic.partitions:
            error = error_name(row.error_code) if row.error_code else None
            rows[topic.name, row.partition_index] = error or row.committed_offset
    return rows


@pytest.mark.parametrize("topic", ["orders", None])
def test_a_group_that_is_missing_has_no_offsets(topic: str | None) -> None:
    desk = Desk()
    desk.ask(commit(1), COMMIT)
    for stable in (False, True):
        rows = fetched_rows(desk, fetch("none", topic=topic, stable=stable))
        assert rows == ({} if topic is None else {("orders", 0): -1})


def test_a_reader_sees_a_group_once_it_is_committed_and_a_stable_one_waits_for_it() -> None:
    desk = Desk()
    desk.is_held = True
    desk.send(commit(2), COMMIT)
    assert fetched(desk) == -1
    assert fetched_rows(desk, fetch(topic=None)) == {}
    waiting = [desk.send(fetch(topic=topic, stable=True), FETCH) for topic in ("orders", None)]
    desk.release()
    for number in waiting:
        (topic,) = desk.answers[number].groups[0].topics
        assert topic.partitions[0].committed_offset == 2


def test_all_offsets_of_a_group_are_listed_by_topic() -> None:
    desk = Desk()
    for partition in range(3):
        desk.ask(commit(10 + partition, partition=partition, leader_epoch=4, metadata="m"), COMMIT)
    desk.ask(commit(20, topic="audit"), COMMIT)
    desk.ask(txn_commit(11, 7, partition=1), 3)
    desk.is_held = True
    desk.send(commit(99), COMMIT)
    all_of_it = {("orders", 0): 10, ("orders", 1): 11, ("orders", 2): 12, ("audit", 0): 20}
    assert fetched_rows(desk, fetch(topic=None)) == all_of_it
    number = desk.send(fetch(topic=None, stable=True), FETCH)
    desk.release()
    rows = {
        (topic.name, row.partition_index): (row.error_code, row.committed_offset)
        for topic in desk.answers[number].groups[0].topics
        for row in topic.partitions
    }
    assert rows["orders", 1] == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    assert (rows["orders", 0], rows["audit", 0]) == ((0, 99), (0, 20))
    row = desk.ask(fetch(topic=None), FETCH).groups[0].topics[0].partitions[2]
    assert (row.committed_leader_epoch, row.metadata) == (4, "m")


@pytest.mark.parametrize(
    ("of_offset", "of_topic", "is_shown"),
    [(b"", b"", True), (b"", b"a", True), (b"a", b"a", True), (b"a", b"", True), (b"a", b"b", False)],
)
def test_an_offset_of_another_topic_of_the_same_name_is_not_shown(
    of_offset: bytes, of_topic: bytes, is_shown: bool
) -> None:
    """An offset, or a request, without a topic id is of whichever topic has the name."""
    desk = Desk()
    state = desk.coordinator.shards[0].state
    desk.ask(commit(5), COMMIT)
    ids = [of.ljust(16, b"\0") for of in (of_offset, of_topic)]
    place, offsets = ("orders", 0), state.offsets.by_group["g"]
    offsets[place] = type(offsets[place])(5, -1, "", 0, -1, ids[0], 0)
    topics = [OffsetFetchRequestTopics("orders", ids[1], partition_indexes=(0,))]
    answer = fetch_offsets(state, OffsetFetchRequestGroup("g", topics=topics), False)
    assert answer.topics[0].partitions[0].committed_offset == (5 if is_shown else -1)
    assert answer.topics[0].topic_id == ids[1]


@pytest.mark.parametrize("stable", [False, True])
def test_a_consumer_fetches_in_its_epoch(stable: bool) -> None:
    desk = Desk()
    one = Consumer(desk.ask, "m1")
    one.join()
    codes = []
    for member, epoch in ((None, -1), ("m1", one.epoch), ("m1", one.epoch + 1), ("m2", one.epoch)):
        request = fetch(stable=stable)
        request.groups[0].member_id, request.groups[0].member_epoch = member, epoch
        codes.append(error_name(desk.ask(request, FETCH).groups[0].error_code))
    assert codes == ["NONE", "NONE", "STALE_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"]


def test_a_consumer_whose_group_is_not_committed_yet_finds_no_offset() -> None:
    desk = Desk()
    desk.is_held = True
    desk.send(joining("m1"), HEARTBEAT)
    desk.wait(1_000)
    request = fetch()
    request.groups[0].member_id, request.groups[0].member_epoch = "m1", 1
    assert fetched_rows(desk, request) == {("orders", 0): -1}
    request.require_stable = True
    number = desk.send(request, FETCH)
    desk.release()
    (group,) = desk.answers[number].groups
    assert group.error_code == ErrorCode.STALE_MEMBER_EPOCH


# Deletion and expiry


def deleting(*names: str) -> OffsetDeleteRequest:
    rows = [OffsetDeleteRequestPartition(index) for index in (0, 1)]
    return OffsetDeleteRequest("g", [OffsetDeleteRequestTopic(name, rows) for name in names])


def test_offsets_are_deleted_if_no_member_may_read_them() -> None:
    desk = Desk()
    number = desk.send(join("g", kind="connect"), 3)
    desk.wait(6_000)
    assert desk.answers[number].error_code == 0
    desk.ask(txn_commit(1, 7), 3)
    assert desk.ask(deleting("orders"), 0).error_code == ErrorCode.NON_EMPTY_GROUP
    desk.wait(300_000)  # its session is over
    desk.ask(commit(1, partition=1), COMMIT)
    before = len(desk.records())
    assert desk.ask(deleting("orders", "audit"), 0).error_code == 0
    assert len(desk.records()) == before + 2  # one of them is of an open transaction
    assert desk.coordinator.counts.offset_deletions == 2
    assert desk.ask(deleting("orders"), 0).error_code == 0
    assert desk.coordinator.counts.offset_deletions == 2


def quick_desk(**settings: Any) -> Desk:
    """Offsets are kept for a minute, which is looked at each second."""
    config = GroupConfig(offsets_retention_minutes=1, offsets_retention_check_interval_ms=1_000, **settings)
    return Desk(config)


def group_ids(desk: Desk) -> list[str]:
    return [row.group_id for row in desk.ask(ListGroupsRequest(), 5).groups]


def test_an_offset_goes_with_its_group_once_its_time_is_over() -> None:
    desk = quick_desk()
    desk.ask(commit(1), COMMIT)
    desk.wait(MINUTE_MS - 1)
    assert fetched(desk) == 1
    desk.wait(1)
    assert fetched(desk) == -1 and group_ids(desk) == []
    assert desk.coordinator.counts.offset_expirations == 1


def test_an_offset_may_have_a_time_of_its_own() -> None:
    desk = quick_desk()
    desk.ask(commit(1, retention_ms=2 * MINUTE_MS), 4)
    desk.ask(commit(1, retention_ms=5_000, partition=1), 4)
    desk.wait(4_999)
    assert fetched(desk, partition=1) == 1
    desk.wait(1)
    assert (fetched(desk), fetched(desk, partition=1)) == (1, -1)
    desk.wait(2 * MINUTE_MS - 5_001)
    assert fetched(desk) == 1
    desk.wait(1)
    assert group_ids(desk) == []


def test_a_group_stays_while_it_has_an_offset_or_a_member_or_a_transaction() -> None:
    desk = quick_desk()
    desk.ask(commit(1, group="old"), COMMIT)
    desk.ask(commit(1, group="both"), COMMIT)
    desk.ask(txn_commit(1, 7, group="open"), 3)
    desk.ask(commit(2, group="open", partition=1), COMMIT)
    consumer = Consumer(desk.ask, "m1", "new")
    consumer.join()
    desk.wait(30_000)
    consumer.beat()
    desk.ask(commit(1, group="both", partition=1), COMMIT)
    desk.wait(30_000)
    consumer.beat()
    assert group_ids(desk) == ["both", "open", "new"]
    assert fetched(desk, "both") == fetched(desk, "open", partition=1) == -1
    end_transaction(desk, 7, False)
    desk.wait(31_000)
    assert group_ids(desk) == ["new"]


def test_an_offset_stays_while_a_transaction_has_one_for_its_partition() -> None:
    desk = quick_desk()
    for partition in range(2):
        desk.ask(commit(1, partition=partition), COMMIT)
    desk.ask(txn_commit(5, 7), 3)
    desk.wait(MINUTE_MS)
    assert [fetched(desk, partition=partition) for partition in range(2)] == [1, -1]


def test_a_classic_group_that_is_empty_goes_by_itself() -> None:
    desk = quick_desk()
    desk.ask(join("g"), 9)
    desk.wait(1_000)
    assert group_ids(desk) == []


def test_a_group_that_has_gone_meanwhile_does_not_expire() -> None:
    state = quick_desk().coordinator.shards[0].state
    assert expire_offsets(state, ["none"]).records == []


def test_very_many_offsets_go_in_several_batches() -> None:
    desk = quick_desk(max_batch_bytes=500)
    for partition in range(4):
        for group in "abcdefgh":
            desk.ask(commit(1, group=group, partition=partition), COMMIT)
    topic_id = desk.topics.topic_id("orders") or b""
    desk.ask(commit(1, topic="audit"), COMMIT)
    desk.ask(commit(1, topic="orders"), COMMIT)
    desk.step(TopicsDeleted({"audit": desk.topics.topic_id("audit") or b""}))
    desk.flush()
    assert (fetched(desk, topic="audit"), fetched(desk)) == (-1, 1)
    desk.wait(MINUTE_MS)
    assert group_ids(desk) == []
    for partition in range(4):
        for group in "abcdefgh":
            desk.ask(commit(1, group=group, partition=partition), COMMIT)
    desk.step(TopicsDeleted({"orders": topic_id}))
    desk.flush()
    desk.wait(10)
    assert {fetched(desk, group, partition=index) for group in "abcdefgh" for index in range(4)} == {-1}


def test_offsets_of_open_transactions_go_with_their_topic() -> None:
    desk = Desk()
    for topic in ("orders", "audit"):
        desk.ask(txn_commit(5, 7, topic=topic), 3)
    desk.step(TopicsDeleted({"orders": desk.topics.topic_id("orders") or b""}))
    desk.flush()
    end_transaction(desk, 7, True)
    assert (fetched(desk), fetched(desk, topic="audit")) == (-1, 5)


# Transactions


def test_all_offsets_of_a_transaction_count_together() -> None:
    desk = Desk()
    for partition in range(3):
        desk.ask(txn_commit(10 + partition, 7, partition=partition), 3)
    desk.ask(txn_commit(20, 7, group="h"), 3)
    end_transaction(desk, 7, True)
    assert [fetched(desk, partition=partition) for partition in range(3)] == [10, 11, 12]
    assert fetched(desk, "h") == 20


@pytest.mark.parametrize("order", [(5, 6), (6, 5)])
def test_an_offset_is_unstable_until_the_last_transaction_has_ended(order: tuple[int, int]) -> None:
    desk = Desk()
    for producer_id in (5, 6):
        desk.ask(txn_commit(producer_id, producer_id), 3)
    request = fetch(stable=True)
    end_transaction(desk, order[0], True)
    assert fetched_rows(desk, request) == {("orders", 0): "UNSTABLE_OFFSET_COMMIT"}
    end_transaction(desk, order[1], True)
    assert fetched_rows(desk, request) == {("orders", 0): 6}  # of the later record


def test_offsets_that_are_deleted_are_gone_from_their_transactions() -> None:
    desk = Desk()
    for partition in range(2):
        desk.ask(txn_commit(10, 7, partition=partition), 3)
    rows = [OffsetDeleteRequestPartition(0)]
    desk.ask(OffsetDeleteRequest("g", [OffsetDeleteRequestTopic("orders", rows)]), 0)
    end_transaction(desk, 7, True)
    assert [fetched(desk, partition=partition, stable=True) for partition in range(2)] == [-1, 10]


def test_nothing_is_kept_of_groups_whose_offsets_are_gone() -> None:
    """Whatever made their entries, and whatever has removed the last one."""
    desk = quick_desk()
    store = desk.coordinator.shards[0].state.offsets

    def kept() -> tuple[set[str], set[str], set[int]]:
        return set(store.by_group), set(store.open_producers), set(store.pending)

    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    desk.ask(commit(1), COMMIT)
    desk.ask(txn_commit(1, 7, group="other"), 3)
    assert kept() == (set(), set(), set())
    desk.failure = None
    desk.ask(commit(1), COMMIT)
    desk.ask(txn_commit(1, 7, group="open"), 3)
    desk.ask(txn_commit(1, 8, group="gone"), 3)
    assert kept() == ({"g"}, {"open", "gone"}, {7, 8})
    desk.is_held = True
    desk.send(commit(2), COMMIT)
    desk.send(deleting("orders"), 0)
    desk.step(HighWatermarkAdvanced(0, len(desk.logs[0]) - 1))
    assert kept() == ({"g"}, {"open", "gone"}, {7, 8})  # what the last record did may be taken back
    desk.release()
    assert kept() == (set(), {"open", "gone"}, {7, 8})
    end_transaction(desk, 7, False)
    assert kept() == (set(), {"gone"}, {8})
    request = deleting("orders")
    request.group_id = "gone"
    desk.ask(request, 0)
    assert not store.open_producers and not store.by_group
    desk.ask(commit(1), COMMIT)
    desk.ask(txn_commit(2, 9), 3)
    end_transaction(desk, 9, True)
    assert kept() == ({"g"}, set(), {8})
    desk.wait(MINUTE_MS)
    assert kept() == (set(), set(), {8})
    assert not store._maybe_empty
