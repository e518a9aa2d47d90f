"""Partitions that a broker follows: fetched, truncated, reset, led afterwards. The test plays the leader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kraftd.answers.effects import Answered, MetadataMoved, SendToNode
from kraftd.broker_node.events import LogTruncated
from kraftd.broker_node.fetching import fetcher
from kraftd.broker_node.fetching.fetchers import fetch_version
from kraftd.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kraftd.messages.fetch_request import FetchPartition, FetchRequest
from kraftd.messages.fetch_response import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kraftd.messages.list_offsets_request import ListOffsetsRequest
from kraftd.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kraftd.partition.partition import Partition, Role
from kraftd.partition.producers import ProducerStates
from kraftd.wire.api import ApiKey
from kraftd.wire.codec import decode, encode
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import encode_response, parse_response
from kraftd.wire.message import Message
from tests.broker_node.harness import BrokerHarness, records

LEADER = 1
BACKOFF_MS = 200


def batch(base_offset: int, count: int = 1, epoch: int = 0, **header: int) -> bytes:
    """A batch as a leader sends it."""
    return bytes(records(count, base_offset=base_offset, leader_epoch=epoch, **header))


class Follower:
    """Broker 100 follows partitions 0 and 1 of a topic; broker 1 leads both."""

    def __init__(self, tmp_path: Path, *, sends_frames: bool = True) -> None:
        """With `sends_frames`, answers come as they do from a connection, and `rounds` counts those that
        another fetch followed without a step."""
        self.sends_frames, self.rounds = sends_frames, 0
        self.harness = BrokerHarness(tmp_path, broker={"replica.fetch.backoff.ms": str(BACKOFF_MS)})
        self.harness.run()
        self.leader_epoch = self.harness.unfenced(LEADER)
        replicas = [CreatableReplicaAssignment(index, (LEADER, 100)) for index in range(2)]
        request = CreateTopicsRequest([CreatableTopic("t", -1, -1, replicas)], 30_000)
        answer = self.harness.ask(ApiKey.CREATE_TOPICS, 7, request, 8)
        assert not answer.topics[0].error_code, answer
        self.topic_id = answer.topics[0].topic_id
        self.harness.pass_time(50)
        self.session_id = 7
        self.first = self.asked[0]
        self.take_fetch()
        self.answer_fetch()

    @property
    def asked(self) -> list[SendToNode]:
        """What leaders are asked."""
        return self.harness.wire.to_brokers

    def partition(self, index: int = 0) -> Partition:
        hosted = self.harness.broker.replicas.get("t", index)
        assert hosted is not None and hosted.partition is not None
        return hosted.partition

    def take(self) -> SendToNode:
        """The only request that is under way."""
        (effect,) = self.asked
        self.asked.clear()
        return effect

    def take_fetch(self) -> FetchRequest:
        effect = self.take()
        assert isinstance(effect.message, FetchRequest), effect
        self._last = effect
        return effect.message

    def fetched_next(self, index: int) -> FetchPartition:
        """Partition as it is requested next; meanwhile the leader has nothing new."""
        for _ in range(3):
            named = self.named(self.take_fetch())
            if index in named:
                return named[index]
            self.harness.pass_time(BACKOFF_MS)
            self.answer_fetch()
        raise AssertionError(f"partition {index} is not fetched")

    def named(self, request: Message) -> dict[int, FetchPartition]:
        assert isinstance(request, FetchRequest)
        return {part.partition: part for topic in request.topics for part in topic.partitions}

    def answer(self, effect: SendToNode, message: Any) -> None:
        if not self.sends_frames or not isinstance(message, FetchResponse):
            self.harness.broker_step(Answered(effect.request_id, message))
            return
        version = effect.version
        assert version is not None
        frame = memoryview(b"".join(encode_response(ApiKey.FETCH, version, 3, message)))[4:]
        following = self.harness.executor.follow(effect.request_id, version, frame)
        if following is False:
            message = parse_response(ApiKey.FETCH, version, frame)[1]
            self.harness.broker_step(Answered(effect.request_id, message))
            return
        if following is not True:
            self.rounds += 1
            data = b"".join(map(bytes, encode(following, version)))  # the next round changes it
            self.asked.append(replace(effect, message=decode(FetchRequest, version, data)))
        self.harness.timer.run_soon()

    def answer_fetch(self, *parts: PartitionData, error_code: int = 0) -> None:
        """Answer the fetch that was taken last."""
        topics = [FetchableTopicResponse("", self.topic_id, list(parts))]
        self.answer(self._last, FetchResponse(0, error_code, self.session_id, topics))

    def send(self, index: int, data: bytes, high_watermark: int = 0, log_start: int = 0) -> None:
        """Answer the fetch that is under way with records of one partition."""
        self.take_fetch()
        self.answer_fetch(PartitionData(index, 0, high_watermark, -1, log_start, records=data))

    def log(self, index: int = 0) -> bytes:
        log = self.harness.directories.logs["t", index]
        return bytes(log.read(log.log_start, 1 << 20) or b"")


@pytest.fixture
def follower(tmp_path: Path) -> Follower:
    return Follower(tmp_path)


def test_a_broker_that_led_for_no_time_has_no_epoch_of_its_own(follower: Follower) -> None:
    """After a freeze it learns at once that it was elected, and another after it. An epoch of its own would
    be later than those of the records that it lacks: they would count as corrupt.
    """
    follower.send(0, batch(0))
    image = follower.harness.node.image
    state, changes = image.partition(follower.topic_id, 0), image.replica_changes
    assert state is not None and changes is not None
    follower.take_fetch()
    for number, leader in enumerate((100, LEADER), 1):
        after = replace(
            state,
            leader=leader,
            leader_epoch=state.leader_epoch + number,
            partition_epoch=state.partition_epoch + number,
        )
        changes.note(0, follower.topic_id, "t", 0, state, after)
    follower.harness.broker_step(MetadataMoved())
    follower.answer_fetch()
    part = follower.fetched_next(0)
    assert (part.current_leader_epoch, part.fetch_offset, part.last_fetched_epoch) == (2, 1, 0)
    follower.answer_fetch(PartitionData(0, 0, 1, -1, 0, records=batch(1)))
    assert follower.log() == batch(0) + batch(1)
    assert follower.partition().epochs.entries == [(0, 0)]


def test_a_follower_fetches_as_the_metadata_version_wants__kip227(follower: Follower) -> None:
    effect, request = follower.first, follower.first.message
    assert isinstance(request, FetchRequest)
    assert (effect.version, effect.client_id, effect.listener) == (18, "broker-100-fetcher-0", "PLAINTEXT")
    epoch = follower.harness.broker.lifecycle.broker_epoch
    assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (100, epoch)
    assert (request.session_id, request.session_epoch, request.max_wait_ms) == (0, 0, 500)
    both = {index: FetchPartition(index, 0, 0, -1, 0, 1 << 20) for index in range(2)}
    assert follower.named(request) == both, "their logs were opened together"
    second = follower.take_fetch()
    assert (second.session_id, second.session_epoch) == (7, 1)
    assert follower.named(second) == {}
    assert [fetch_version(level) for level in (7, 9, 10, 19, 21, 26, 27, 30)] == [
        13, 14, 15, 16, 17, 17, 18, 18,
    ]  # fmt: skip


def test_an_answer_is_processed_in_slices_of_few_appends() -> None:
    """Each append may open three files: a hundred of them held the event loop for 17 ms."""
    following = fetcher.Fetcher(LEADER, 0, None, None)  # type: ignore[arg-type]
    following.session.named = {(bytes(16), index): FetchPartition(index) for index in range(100)}
    for data, slices in ((b"", 1), (b"records", 10)):
        parts = [PartitionData(index, 0, 0, -1, 0, records=data) for index in range(100)]
        answer = FetchResponse(0, 0, 7, [FetchableTopicResponse("", bytes(16), parts)])
        assert len(list(following._process(answer))) + 1 == slices


def test_what_is_fetched_is_the_log_and_moves_the_marks(follower: Follower) -> None:
    first, second = batch(0, 2), batch(5, 3, producer_id=9, producer_epoch=0, base_sequence=0)
    follower.send(0, first, high_watermark=0)
    partition = follower.partition()
    assert (partition.log_end_offset, partition.high_watermark) == (2, 0)
    request = follower.take_fetch()
    assert (request.session_id, request.session_epoch) == (7, 2)
    (named,) = follower.named(request).values()
    assert (named.partition, named.fetch_offset, named.last_fetched_epoch) == (0, 2, 0)
    follower.answer_fetch(PartitionData(0, 0, 5, -1, 1, records=second))
    assert follower.log()[len(first) :] == second or follower.log().endswith(second)
    assert (partition.log_end_offset, partition.high_watermark, partition.log_start_offset) == (8, 5, 1)
    assert 9 in partition.producers.entries
    follower.take_fetch()
    follower.answer_fetch(PartitionData(0, 0, 8, -1, 1, records=b""))
    assert partition.high_watermark == 8
    assert follower.take_fetch().topics == []


def test_a_diverging_log_is_truncated_with_its_producers__kip320(follower: Follower) -> None:
    kept = batch(0, 2, producer_id=9, producer_epoch=0, base_sequence=0)
    follower.send(0, kept + batch(2, 1, producer_id=8, producer_epoch=0, base_sequence=0), 2)
    partition = follower.partition()
    assert set(partition.producers.entries) == {8, 9}
    request = follower.take_fetch()
    assert follower.named(request)[0].fetch_offset == 3
    data = PartitionData(0, 0, 2, -1, 0, records=b"", diverging_epoch=EpochEndOffset(0, 2))
    follower.answer_fetch(data)
    assert (partition.log_end_offset, partition.high_watermark) == (2, 2)
    assert follower.log() == kept and set(partition.producers.entries) == {9}
    assert partition.producers.end_offset == 2
    assert follower.fetched_next(0).fetch_offset == 2


def test_a_log_without_epochs_is_truncated_to_its_high_watermark(follower: Follower) -> None:
    follower.send(0, batch(0, 2), high_watermark=2)
    follower.send(0, batch(2, 3), high_watermark=2)
    follower.harness.directories.logs["t", 0].epochs.clear()  # as after the loss of their checkpoint
    fetchers, hosted = follower.harness.broker.fetchers, follower.harness.broker.replicas.get("t", 0)
    for each in (None, hosted):
        fetchers.follow((follower.topic_id, 0), each)
    follower.harness.broker_step(MetadataMoved())
    partition = follower.partition()
    assert (partition.log_end_offset, partition.high_watermark) == (2, 2)
    assert follower.log() == batch(0, 2)
    follower.take_fetch()  # it was under way before
    follower.answer_fetch()
    assert follower.fetched_next(0).fetch_offset == 2


def test_leadership_waits_for_a_truncation(follower: Follower) -> None:
    follower.send(0, batch(0, 3), 3)
    follower.harness.threads.held = held = list[Callable[[], None]]()
    follower.take_fetch()
    follower.answer_fetch(PartitionData(0, 0, 2, -1, 0, diverging_epoch=EpochEndOffset(0, 0)))
    follower.harness.pass_time(10_000)  # the leader's session ends
    assert follower.partition(1).role is Role.LEADER and follower.partition(0).role is Role.FOLLOWER
    follower.harness.threads.held = None
    for work in held:
        work()
    follower.harness.pass_time(10)
    leading = follower.partition(0)
    assert (leading.role, leading.log_end_offset, leading.next_offset) == (Role.LEADER, 0, 0)
    assert not follower.harness.produce("t", records()).error_code


def test_the_end_of_a_former_logs_truncation_ends_no_other(follower: Follower) -> None:
    """As when a topic is deleted and made again meanwhile: the log would be fetched from where it ended."""
    follower.send(0, batch(0, 3), 3)
    follower.harness.threads.held = held = list[Callable[[], None]]()
    follower.take_fetch()
    follower.answer_fetch(PartitionData(0, 0, 2, -1, 0, diverging_epoch=EpochEndOffset(0, 0)))
    former: Any = object()
    follower.harness.broker_step(LogTruncated("t", 0, former, ProducerStates()))
    hosted = follower.harness.broker.replicas.get("t", 0)
    assert hosted is not None and hosted.is_truncating
    assert 0 not in follower.named(follower.take_fetch())
    follower.harness.threads.held = None
    for work in held:
        work()
    follower.harness.pass_time(10)
    assert not hosted.is_truncating and follower.partition(0).log_end_offset == 0


def test_a_failing_partition_waits_alone(follower: Follower) -> None:
    follower.take_fetch()
    follower.answer_fetch(
        PartitionData(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1),
        PartitionData(1, 0, 0, -1, 0, records=batch(0)),
    )
    request = follower.take_fetch()
    assert list(follower.named(request)) == [1]
    assert [one.partitions for one in request.forgotten_topics_data] == [(0,)]
    follower.harness.pass_time(BACKOFF_MS)
    follower.answer_fetch()
    assert list(follower.named(follower.take_fetch())) == [0]


def test_a_request_names_some_of_many_new_partitions_and_does_not_wait_long(
    follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetcher, "NEWLY_NAMED", 1)
    follower.answer(follower.take(), None)
    follower.harness.pass_time(BACKOFF_MS)
    seen = []
    for _ in range(3):
        request = follower.take_fetch()
        seen.append((len(follower.named(request)), request.session_epoch, request.max_wait_ms))
        follower.answer_fetch()
    assert seen == [(1, 0, 250), (1, 1, 500), (0, 2, 500)]


def test_partitions_take_turns_where_the_leader_makes_no_session(
    follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetcher, "NEWLY_NAMED", 1)
    follower.session_id = 0
    follower.answer(follower.take(), None)
    follower.harness.pass_time(BACKOFF_MS)
    turns = []
    for _ in range(4):
        request = follower.take_fetch()
        assert request.session_epoch == 0
        (index,) = follower.named(request)
        turns.append(index)
        follower.answer_fetch(PartitionData(index))
    assert turns == [turns[0], turns[1]] * 2 and set(turns) == {0, 1}


def test_a_new_number_of_fetchers_divides_the_partitions_at_once__kip226(
    follower: Follower,
) -> None:
    follower.take_fetch()
    under_way = follower._last
    follower.harness.set_broker_config("num.replica.fetchers", "2")
    (moved,) = follower.named(follower.take_fetch())  # of the other fetcher
    other_fetch = follower._last
    line = ("info", "num.replica.fetchers changes", {"now": 2, "before": 1})
    assert line in follower.harness.broker_lines.all

    topics = [
        FetchableTopicResponse(
            "", follower.topic_id, [PartitionData(n, 0, 0, -1, 0, records=batch(0)) for n in range(2)]
        )
    ]
    follower.answer(under_way, FetchResponse(0, 0, 7, topics))
    assert [follower.partition(n).log_end_offset for n in range(2)] == [int(n != moved) for n in range(2)]
    request = follower.take_fetch()  # of the former fetcher, which closes the moved partition
    assert list(follower.named(request)) == [1 - moved]
    assert [one.partitions for one in request.forgotten_topics_data] == [(moved,)]
    follower._last = other_fetch
    follower.session_id = 8
    follower.answer_fetch(PartitionData(moved, 0, 0, -1, 0, records=batch(0)))
    assert follower.partition(moved).log_end_offset == 1


@pytest.mark.parametrize("is_torn", [False, True])
def test_corrupt_records_are_not_written(follower: Follower, is_torn: bool) -> None:
    damaged = bytearray(batch(0, 2))
    damaged[-1] ^= 1
    follower.send(0, bytes(damaged[:-9] if is_torn else damaged))
    assert follower.partition().log_end_offset == 0
    assert [one.partitions for one in follower.take_fetch().forgotten_topics_data] == [(0,)]


def test_an_answer_that_names_a_partition_twice_is_taken_once(follower: Follower) -> None:
    """As Kafka's follower takes it, which keeps one of the two."""
    follower.take_fetch()
    part = PartitionData(0, 0, 2, -1, 0, records=batch(0, 2))
    follower.answer_fetch(part, part)
    assert (follower.partition().log_end_offset, follower.log()) == (2, batch(0, 2))
    assert follower.fetched_next(0).fetch_offset == 2


@pytest.mark.parametrize("base_offset", [2, 0, (1 << 63) - 1])
def test_a_partition_with_wrong_offsets_is_fetched_again_much_later(
    follower: Follower, base_offset: int
) -> None:
    """The other partitions go on: none asks for an offset that no request can carry."""
    follower.send(0, batch(0))
    follower.take_fetch()
    right = PartitionData(1, 0, 1, -1, 0, records=batch(0))
    follower.answer_fetch(PartitionData(0, 0, 1, -1, 0, records=batch(base_offset)), right)
    assert list(follower.named(follower.take_fetch())) == [1]
    follower.harness.pass_time(10 * BACKOFF_MS - 1)
    follower.answer_fetch()
    assert not follower.named(follower.take_fetch())
    assert follower.harness.broker.fetchers.failed_count() == 1
    follower.harness.pass_time(1)
    follower.answer_fetch()
    assert follower.named(follower.take_fetch())[0].fetch_offset == 1
    assert follower.harness.broker.fetchers.failed_count() == 0
    follower.answer_fetch(PartitionData(0, 0, 1, -1, 0, records=batch(1)))
    assert follower.log() == batch(0) + batch(1)


def test_a_gap_past_the_high_watermark_is_believed_the_second_time(follower: Follower) -> None:
    """A leader that has lost its high watermark, and misses members of the ISR, may have compacted there."""
    for end in (0, 6):
        follower.take_fetch()
        follower.answer_fetch(PartitionData(0, 0, 1, -1, 0, records=batch(5)))
        assert follower.partition().log_end_offset == end
        follower.harness.pass_time(10 * BACKOFF_MS)
        follower.take_fetch()
        follower.answer_fetch()


def test_an_answer_for_what_was_not_requested_changes_nothing_and_is_named(follower: Follower) -> None:
    """As of another topic id. The next request waits: else there would be thousands a second."""
    follower.take_fetch()
    other = PartitionData(7, 0, 1, -1, 0, records=batch(0))
    follower.answer_fetch(other, PartitionData(0, 0, 1, -1, 0, records=batch(0)))
    text = "a leader answered for partitions that were not requested"
    assert follower.harness.broker_lines.all[-1] == ("warning", text, {"node": LEADER, "count": 1})
    assert follower.log() == batch(0) and not follower.asked
    follower.harness.pass_time(BACKOFF_MS)
    assert follower.named(follower.take_fetch())[0].fetch_offset == 1


def test_a_refusal_as_fenced_does_not_last_if_no_metadata_comes(follower: Follower) -> None:
    follower.take_fetch()
    follower.answer_fetch(PartitionData(0, ErrorCode.FENCED_LEADER_EPOCH, -1))
    assert follower.harness.broker.fetchers.failed_count() == 1
    follower.take_fetch()
    follower.harness.pass_time(10 * BACKOFF_MS)
    follower.answer_fetch()
    assert list(follower.named(follower.take_fetch())) == [0]


def test_a_fetch_without_an_answer_is_made_again_later(follower: Follower) -> None:
    for answer in (None, FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)):
        effect = follower.take()
        follower.answer(effect, answer)
        assert not follower.asked
        follower.harness.pass_time(BACKOFF_MS)
        assert set(follower.named(follower.asked[0].message)) == {0, 1}


@pytest.mark.parametrize(("leader_start", "leader_end", "end"), [(0, 1, 1), (5, 9, 5), (0, 9, 3), (1, 1, 1)])
def test_a_log_whose_end_the_leader_does_not_have_follows_it(
    follower: Follower, leader_start: int, leader_end: int, end: int
) -> None:
    for offset in range(3):
        follower.send(0, batch(offset), high_watermark=1)
    follower.take_fetch()
    follower.answer_fetch(PartitionData(0, ErrorCode.OFFSET_OUT_OF_RANGE, -1))
    for timestamp, offset in ((-1, leader_end), (-2, leader_start)):
        effect = follower.take()
        assert isinstance(effect.message, ListOffsetsRequest)
        (asked,) = effect.message.topics[0].partitions
        assert (asked.timestamp, asked.current_leader_epoch, effect.message.replica_id) == (timestamp, 0, 100)
        found = ListOffsetsPartitionResponse(0, 0, -1, offset, 0)
        follower.answer(effect, ListOffsetsResponse(0, [ListOffsetsTopicResponse("t", [found])]))
    partition = follower.partition()
    assert partition.log_end_offset == partition.next_offset == end
    assert follower.fetched_next(0).fetch_offset == end


@pytest.mark.parametrize("topics", [[], [ListOffsetsTopicResponse("t", [])]], ids=str)
def test_an_answer_without_the_bounds_that_were_asked_for_is_none(
    follower: Follower, topics: list[ListOffsetsTopicResponse]
) -> None:
    follower.take_fetch()
    follower.answer_fetch(PartitionData(0, ErrorCode.OFFSET_OUT_OF_RANGE, -1))
    follower.answer(follower.take(), ListOffsetsResponse(0, topics))
    assert [one.partitions for one in follower.take_fetch().forgotten_topics_data] == [(0,)]
    follower.harness.pass_time(BACKOFF_MS)
    follower.answer_fetch()
    assert list(follower.named(follower.take_fetch())) == [0]


def test_a_new_leader_epoch_is_fetched_with_and_the_old_answer_is_dropped(follower: Follower) -> None:
    follower.take_fetch()
    old = follower._last
    state = follower.harness.node.image.partition(follower.topic_id, 0)
    assert state is not None and state.leader_epoch == 0
    follower.harness.pass_time(10_000)  # broker 1 is fenced: broker 100 leads
    assert follower.partition().role is Role.LEADER
    topics = [
        FetchableTopicResponse("", follower.topic_id, [PartitionData(0, 0, 9, -1, 0, records=batch(0))])
    ]
    follower.answer(old, FetchResponse(0, 0, 7, topics))
    assert follower.partition().log_end_offset == 0
    assert not follower.harness.produce("t", records()).error_code
