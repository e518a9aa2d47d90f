"""A follower's rounds without a step have the outcome of its steps: equal logs, marks, requests, lines."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from kraftd.log.data.data_log import DataLog
from kraftd.log.errors import DiskFull
from kraftd.messages.fetch_request import FetchRequest
from kraftd.messages.fetch_response import EpochEndOffset, PartitionData
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.records import build_records_batch
from tests.broker_node.test_following import BACKOFF_MS, Follower, batch

ANSWERS = 40


class Twins:
    """Two followers that get the same answers, one of them by steps alone."""

    def __init__(self, tmp_path: Path) -> None:
        self.both = []
        for name in ("frames", "steps"):
            (tmp_path / name).mkdir()
            self.both.append(Follower(tmp_path / name, sends_frames=name == "frames"))
        self.ends = [0, 0]  # of the leader's logs

    def answer(self, *parts: PartitionData, error_code: int = 0) -> None:
        for one in self.both:
            one.answer_fetch(*parts, error_code=error_code)

    def take(self) -> FetchRequest | None:
        """The request that both have sent, if any."""
        first, second = [one.take_fetch() if one.asked else None for one in self.both]
        if first is not None and second is not None:
            for request in (first, second):  # their brokers and topics have other ids
                request.replica_state.replica_epoch = 0
                for each in (*request.topics, *request.forgotten_topics_data):
                    each.topic_id = bytes(16)
        assert first == second
        return first

    def assert_equal(self) -> None:
        frames, steps = [_state(one) for one in self.both]
        assert frames == steps


def _state(follower: Follower) -> list[Any]:
    hosted = [follower.harness.broker.replicas.get("t", index) for index in range(2)]
    found: list[Any] = [follower.harness.broker_lines.texts()]
    for index in range(2):
        partition, one = follower.partition(index), hosted[index]
        assert one is not None
        found += [
            follower.log(index),
            (partition.log_start_offset, partition.high_watermark, partition.log_end_offset),
            (partition.next_offset, partition.last_stable_offset, partition.epochs.entries),
            dict(partition.producers.entries),
            one.traffic.replication_bytes_in,
        ]
    return found


def _records(random: Random, end: int) -> tuple[bytes, int]:
    """What a leader has behind an offset, nearly always plain records, and where it ends."""
    data = b""
    for _ in range(random.choice((1, 1, 1, 2, 5))):
        count, header = random.randint(1, 4), dict[str, int]()
        match random.randrange(12):
            case 0 | 1 | 2:
                sequence = random.randrange(9)
                header = {"producer_id": 7, "producer_epoch": 0, "base_sequence": sequence}
            case 3:
                header = {"producer_id": 8, "producer_epoch": 0, "base_sequence": 0, "attributes": 0x10}
            case 4:
                end += random.choice((0, 0, 3))  # a gap, as of compaction
        data += batch(end, count, **header)
        end += count
    return data, end


def _part(random: Random, twins: Twins, index: int) -> PartitionData:
    end = twins.ends[index]
    mark = max(0, end - random.choice((0, 1, 3)))
    kind = random.randrange(20)
    if kind == 0:
        return PartitionData(index, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    if kind == 1 and end > 2:
        twins.ends[index] = end - 1
        return PartitionData(index, 0, mark, -1, 0, diverging_epoch=EpochEndOffset(0, end - 1))
    if kind < 5:
        return PartitionData(index, 0, mark, -1, min(mark, random.choice((0, 0, 2))), records=b"")
    data, after = _records(random, end)
    if kind == 5:
        data = data[:-1] + bytes([data[-1] ^ 1])  # damaged
    elif kind == 6:
        data = data[:-5]  # torn
    elif kind == 7:
        data = batch(end, 1, epoch=1)  # of a later leader
    return PartitionData(index, 0, max(mark, min(end, after)), -1, 0, records=data)


@pytest.mark.parametrize("seed", range(6))
def test_random_answers_have_the_same_outcome(tmp_path: Path, seed: int) -> None:
    random, twins = Random(seed), Twins(tmp_path)
    twins.take()
    for _ in range(ANSWERS):
        indexes = random.choice(((0,), (1,), (0, 1), (0, 1), (), (0, 0)))
        twins.answer(*[_part(random, twins, index) for index in indexes])
        for _ in range(20):
            if twins.take() is not None:
                break
            for one in twins.both:
                one.harness.pass_time(BACKOFF_MS)
        twins.assert_equal()
        twins.ends = [twins.both[0].partition(index).log_end_offset for index in range(2)]
    assert twins.both[0].rounds > ANSWERS // 8 and not twins.both[1].rounds


@pytest.mark.parametrize("failing", [(0,), (1,), (0, 1)])
def test_what_cannot_be_written_waits_and_is_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: tuple[int, ...]
) -> None:
    twins = Twins(tmp_path)
    twins.take()
    first = [PartitionData(index, 0, 0, -1, 0, records=batch(0, 2)) for index in range(2)]
    twins.answer(*first)  # the epoch begins: no plain round
    twins.take()
    appended = DataLog.append

    def append(log: DataLog, *arguments: Any) -> bool:
        if log.partition in failing:
            raise DiskFull("no room")
        return appended(log, *arguments)

    monkeypatch.setattr(DataLog, "append", append)
    twins.answer(*[PartitionData(index, 0, 2, -1, 0, records=batch(2, 2)) for index in range(2)])
    twins.assert_equal()
    ends = [twins.both[0].partition(index).log_end_offset for index in range(2)]
    assert ends == [2 if index in failing else 4 for index in range(2)]
    monkeypatch.undo()
    for _ in range(3):
        twins.take()
        twins.answer()
        for one in twins.both:
            one.harness.pass_time(BACKOFF_MS)
    offsets = {}
    while request := twins.take():
        offsets |= {key: one.fetch_offset for key, one in twins.both[0].named(request).items()}
        twins.answer(*[PartitionData(index, 0, 4, -1, 0, records=batch(2, 2)) for index in offsets])
        if not offsets:
            break
        offsets = {}
    twins.assert_equal()


def test_after_any_change_the_fetcher_handles_the_answer(tmp_path: Path) -> None:
    follower = Follower(tmp_path)
    follower.send(0, batch(0))
    for end in range(1, 3):
        follower.send(0, batch(end), high_watermark=end)
    assert follower.rounds == 2
    follower.harness.create_topic("another")  # the metadata moves
    follower.send(0, batch(3), high_watermark=3)
    assert follower.rounds == 2
    follower.send(0, batch(4), high_watermark=4)
    assert follower.rounds == 3
    fetcher = next(iter(follower.harness.broker.fetchers))
    hosted = follower.harness.broker.replicas.get("t", 1)
    fetcher.remove((follower.topic_id, 1))
    follower.send(0, batch(5), high_watermark=5)
    assert follower.rounds == 3 and hosted is not None
    assert [one.partitions for one in follower.take_fetch().forgotten_topics_data] == [(1,)]


def test_an_answer_with_the_largest_batches_of_several_partitions_is_one(tmp_path: Path) -> None:
    """By default a batch has up to 1 MiB, and a busy leader answers with several of them."""
    follower, partitions = Follower(tmp_path), 2
    for end in range(2):
        large = build_records_batch([(0, None, bytes(1_000_000), ())], base_offset=end, leader_epoch=0)
        follower.take_fetch()
        follower.answer_fetch(*[PartitionData(at, 0, 0, -1, 0, records=large) for at in range(partitions)])
    assert follower.rounds == 1, "the first begins their epoch"
    assert [follower.partition(at).log_end_offset for at in range(partitions)] == [2, 2]


def test_a_throttled_follower_makes_no_such_rounds(tmp_path: Path) -> None:
    follower = Follower(tmp_path)
    follower.harness.set_broker_config("follower.replication.throttled.rate", "1000000")
    for end in range(4):
        follower.send(0, batch(end), high_watermark=end)
    assert follower.rounds == 0 and follower.partition().log_end_offset == 4
