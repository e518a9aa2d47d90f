"""Commits that are taken again with other offsets, without being decoded, do what decoded ones do."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from kraftd.groups.batches import BATCH_BYTES, size_of
from kraftd.groups.events import PartitionResigned
from kraftd.groups.offsets.repeated_commit import may_repeat, places_of_numbers
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kraftd.messages.delete_groups_request import DeleteGroupsRequest
from kraftd.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftd.wire.codec import encode_bytes
from kraftd.wire.error_code import ErrorCode
from tests.groups.consumer.members import Consumer
from tests.groups.desk import Desk
from tests.groups.requests import commit, fetch, join, leave, stable_group

VERSION = 9
TOPICS = {"orders": 4, "audit": 2}


def request_of(
    member: str, numbers: list[tuple[int, int]], metadata: list[str | None], generation: int = 1
) -> OffsetCommitRequest:
    """A commit of all six partitions."""
    rows = [
        OffsetCommitRequestPartition(index, *pair, text)
        for index, pair, text in zip((0, 1, 2, 3, 0, 1), numbers, metadata, strict=True)
    ]
    topics = [
        OffsetCommitRequestTopic("orders", partitions=rows[:4]),
        OffsetCommitRequestTopic("audit", partitions=rows[4:]),
    ]
    return OffsetCommitRequest("g", generation, member, topics=topics)


def drawn(random: Random) -> list[tuple[int, int]]:
    return [(random.getrandbits(63), random.randrange(-1, 1 << 31)) for _ in range(6)]


def offsets_of(desk: Desk) -> Any:
    """All offsets as they are in memory, with topic ids and the offsets of their records."""
    return desk.coordinator.shards[0].state.offsets.by_group


@pytest.mark.parametrize("seed", range(20))
def test_a_repeated_commit_writes_what_a_decoded_one_writes(seed: int) -> None:
    random = Random(seed)
    metadata = [random.choice([None, "", "x" * random.randrange(300), "ä"]) for _ in range(6)]
    short, full = Desk(), Desk()
    (name,), _ = stable_group(short, 1), stable_group(full, 1)
    for desk in (short, full):
        desk.ask(request_of(name, drawn(Random(seed)), metadata), VERSION)
    assert short.varied is not None
    for token in range(1000, 1010):
        numbers = drawn(random)
        short.wait(1000)
        full.wait(1000)
        assert short.varied.take(token, *zip(*numbers, strict=True), short.now_ms)
        short.flush()
        assert short.answers[token] is None
        full.ask(request_of(name, numbers, metadata), VERSION)
    assert short.logs == full.logs
    assert offsets_of(short) == offsets_of(full)
    assert short.ask(fetch("g"), 8) == full.ask(fetch("g"), 8)
    assert short.coordinator.counts.offset_commits == full.coordinator.counts.offset_commits
    short.reload()
    assert short.ask(fetch("g"), 8) == full.ask(fetch("g"), 8)


@pytest.mark.parametrize("version", range(6, 11))
def test_the_places_of_offsets_are_found_in_every_version(version: int) -> None:
    random = Random(version)
    numbers = drawn(random)
    request = request_of("m", numbers, ["", None, "text", "ä", "", "y" * 200])
    encoded = encode_bytes(request, version)
    places = places_of_numbers(request, version)
    found = [encoded[len(encoded) - place :][:12] for place in places]
    assert found == [a.to_bytes(8, "big") + b.to_bytes(4, "big", signed=True) for a, b in numbers]


def of_member(desk: Desk) -> Any:
    """What takes the commit of the only member of a classic group again."""
    (name,) = stable_group(desk, 1)
    desk.ask(commit(1, 1, name), VERSION)
    return desk.varied


def of_consumer(desk: Desk) -> Any:
    one = Consumer(desk.ask, "m1")
    one.join()
    desk.ask(commit(1, one.epoch, "m1"), VERSION)
    return desk.varied


def recreate_topics(desk: Desk) -> None:
    desk.topics.image_version += 1
    desk.topics.topic_id = lambda _: b"\2" * 16  # type: ignore[method-assign]


def delete_group(desk: Desk) -> None:
    """All members leave, and an operator deletes the group."""
    (name,) = desk.coordinator.shards[0].state.groups["g"].members  # type: ignore[attr-defined]
    desk.ask(leave((name, None)), 5)
    assert desk.ask(DeleteGroupsRequest(("g",)), 2).results[0].error_code == 0


@pytest.mark.parametrize("begin", [of_member, of_consumer])
@pytest.mark.parametrize(
    "change",
    [
        lambda desk: desk.topics.change("orders", None),
        lambda desk: desk.topics.change("orders", 0),
        recreate_topics,
        lambda desk: desk.step(PartitionResigned(0)),
        lambda desk: setattr(desk.coordinator, "group_version", 0),
        delete_group,
        lambda desk: desk.wait(700_000),  # its session is over
    ],
)
def test_what_a_commit_depends_on_is_looked_at_anew(
    begin: Callable[[Desk], Any], change: Callable[[Desk], object]
) -> None:
    desk = Desk()
    found = begin(desk)
    assert found.take(900, [2], [-1], desk.now_ms)
    desk.flush()
    change(desk)
    for token in (901, 902):  # nor is it known then that it was looked at
        assert found.take(token, [3], [-1], desk.now_ms) is False
        assert token not in desk.answers


def test_a_member_of_another_generation_or_epoch_commits_in_full() -> None:
    classic = Desk()
    found = of_member(classic)
    assert found.take(800, [2], [-1], classic.now_ms)
    classic.flush()
    classic.send(join("g", ""), 3)
    classic.wait(300_000)
    assert found.take(900, [2], [-1], classic.now_ms) is False
    consumers = Desk()
    found = of_consumer(consumers)
    assert found.take(800, [2], [-1], consumers.now_ms)
    consumers.flush()
    Consumer(consumers.ask, "m2").join()
    consumers.wait(5_000)
    Consumer(consumers.ask, "m1").join()
    assert found.take(900, [2], [-1], consumers.now_ms) is False


def test_a_member_that_left_after_its_partition_was_loaded_again_commits_in_full() -> None:
    desk = Desk()
    found = of_consumer(desk)
    assert found.take(900, [2], [-1], desk.now_ms)
    desk.flush()
    desk.step(PartitionResigned(0))
    desk.load(2)
    assert found.take(901, [3], [-1], desk.now_ms)
    desk.flush()
    desk.ask(ConsumerGroupHeartbeatRequest("g", "m1", -1), 1)
    assert found.take(902, [4], [-1], desk.now_ms) is False


def test_a_repeated_commit_is_a_sign_of_life_of_a_classic_member() -> None:
    desk = Desk()
    found = of_member(desk)
    for token in range(900, 910):
        desk.wait(9_999)
        assert found.take(token, [2], [-1], desk.now_ms)
        desk.flush()
    desk.wait(10_000)
    assert found.take(999, [2], [-1], desk.now_ms) is False


def test_a_repeated_commit_is_answered_once_it_is_committed() -> None:
    desk = Desk()
    found = of_member(desk)
    desk.is_held = True
    found.take(900, [5], [-1], desk.now_ms)
    desk.flush()
    assert 900 not in desk.answers
    desk.release()
    assert desk.answers[900] is None


def test_a_repeated_commit_that_cannot_be_appended_is_refused_and_taken_back() -> None:
    desk = Desk()
    found = of_member(desk)
    before = desk.ask(fetch("g"), 8)
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    found.take(900, [5], [-1], desk.now_ms)
    desk.flush()
    (topic,) = desk.answers[900].topics
    assert [row.error_code for row in topic.partitions] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    desk.failure = None
    assert desk.ask(fetch("g"), 8) == before


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (commit(5), VERSION),  # of no member: the audit looks at it
        (commit(5, 1, "?", metadata="x" * 5000), VERSION),  # too long
        (commit(5, 1, "?", partition=7), VERSION),
        (commit(5, 1, "?", retention_ms=1000), 4),
        (commit(5, 1, "?"), 5),  # it has no leader epochs
    ],
)
def test_other_commits_are_taken_in_full(request_: OffsetCommitRequest, version: int) -> None:
    desk = Desk()
    if request_.member_id:
        (request_.member_id,) = stable_group(desk, 1)
    else:
        desk.ask(commit(1), VERSION)
    desk.ask(request_, version)
    assert desk.varied is None


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_repeated_commit_goes_into_one_batch_or_is_taken_in_full(partitions: int) -> None:
    desk = Desk()
    (name,) = stable_group(desk, 1)
    rows = [OffsetCommitRequestPartition(index, 1) for index in range(partitions)]
    topics = [OffsetCommitRequestTopic("orders", partitions=rows)]
    desk.ask(OffsetCommitRequest("g", 1, name, topics=topics), VERSION)
    found, numbers = desk.varied, ([2] * partitions, [-1] * partitions)
    assert found.take(900, *numbers, desk.now_ms)
    desk.flush()
    written: list[Any] = [what for what, _ in desk.logs[0][-partitions:]]
    needed = BATCH_BYTES + sum(size_of(record) for record in written)
    desk.coordinator.limit_batches(needed - 1)
    assert found.take(901, *numbers, desk.now_ms) is False
    desk.coordinator.limit_batches(needed)
    assert found.take(902, *numbers, desk.now_ms)


@pytest.mark.parametrize(
    ("changes", "version", "record_count", "expected"),
    [
        ({}, 6, 1, True),
        ({}, 5, 1, False),
        ({"generation_id_or_member_epoch": 0}, 9, 1, True),
        ({"generation_id_or_member_epoch": -1}, 9, 1, False),
        ({"member_id": ""}, 9, 1, False),
        ({"retention_time_ms": 0}, 9, 1, False),
        ({}, 9, 2, False),
        ({"topics": 32}, 9, 32, True),
        ({"topics": 33}, 9, 33, False),
    ],
)
def test_small_commits_of_members_may_be_repeated(
    changes: dict[str, Any], version: int, record_count: int, expected: bool
) -> None:
    request = commit(1, 1, "m")
    for name, value in changes.items():
        setattr(request, name, request.topics * value if name == "topics" else value)
    assert may_repeat(request, version, record_count) is expected


def test_bytes_behind_a_request_are_not_taken_for_offsets() -> None:
    desk = Desk()
    (name,) = stable_group(desk, 1)
    request = commit(1, 1, name)
    desk.ask(request, VERSION)
    known = commit(1, 1, name)
    known.topics[0].topic_id = desk.topics.topic_id("orders") or b""
    frame = b"header" + encode_bytes(request, VERSION)
    assert len(desk.varied.places(frame)) == 1
    assert desk.varied.places(frame + b"\0") == []
