"""Fetches of very many partitions, in slices: the work between two pauses, and what happens meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Generator
from random import Random
from typing import Any

import pytest

from kraftd.fetch.parked_fetches import Completed, ParkedFetches
from kraftd.fetch.session_cache import CacheLimits
from kraftd.fetch.sessions import FetchSessions
from kraftd.ground import pace
from kraftd.ground.pace import at_once
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftd.wire.error_code import ErrorCode
from testkit.synthetic import SyntheticPartitions, topic_id
from tests.fetch.test_sessions import ALL_BYTES, VERSION, Client, Server, fetch_request, partitions_of

COUNT = 10_000
MOST_A_SLICE = 500  # partitions that are examined or read
Fetching = Generator[None, None, list[Completed]]


class Reader:
    """One reader of many partitions, a slice at a time; `most` is the work of the largest slice."""

    def __init__(self, count: int = COUNT) -> None:
        self.source = SyntheticPartitions()
        self.source.create("many", topic_id(0), count)
        self.parked = ParkedFetches(
            FetchSessions(self.source, CacheLimits(), Random(1).getrandbits(20).__int__)
        )
        self.all = FetchTopic(
            "", topic_id(0), [FetchPartition(n, partition_max_bytes=99) for n in range(count)]
        )
        self.slices = 0
        self.most = 0

    def fetch(self, request: FetchRequest) -> Fetching:
        return self.parked.fetch(object(), request, VERSION, 0)

    def first(self, **fields: Any) -> FetchRequest:
        return FetchRequest(session_epoch=0, topics=[self.all], **fields)

    def grow(self, changed: Callable[[tuple[str, int]], object]) -> None:
        for index, partition in enumerate(self.source.topics["many"][1]):
            partition.append(70)
            partition.high_watermark += 1
            changed(("many", index))

    def run(self, work: Fetching) -> list[Completed]:
        self.slices = self.most = 0
        while True:
            self.source.examined = self.source.reads = 0
            self.slices += 1
            try:
                next(work)
            except StopIteration as end:
                done: list[Completed] = end.value
                return done
            finally:
                self.most = max(self.most, self.source.examined + self.source.reads)


def check(reader: Reader, done: list[Completed]) -> None:
    (completed,) = done
    assert len(partitions_of(completed.response)) == COUNT  # type: ignore[arg-type]
    assert reader.slices > COUNT // MOST_A_SLICE
    assert reader.most <= MOST_A_SLICE


def test_a_first_fetch_of_ten_thousand_partitions_is_answered_in_slices() -> None:
    reader = Reader()
    check(reader, reader.run(reader.fetch(reader.first(max_bytes=ALL_BYTES))))


def test_a_parked_fetch_of_ten_thousand_partitions_is_answered_in_slices() -> None:
    reader = Reader()
    assert reader.run(reader.fetch(reader.first(max_bytes=ALL_BYTES, max_wait_ms=500, min_bytes=1))) == []
    check(reader, reader.run(reader.parked.expire(500)))


def test_ten_thousand_changes_of_a_session_are_answered_in_slices() -> None:
    reader = Reader()
    (full,) = at_once(reader.fetch(reader.first(max_bytes=ALL_BYTES)))
    reader.grow(lambda key: at_once(reader.parked.changed(key, 0)))
    request = fetch_request(full.response.session_id, 1, {})  # type: ignore[union-attr]
    check(reader, reader.run(reader.fetch(request)))


def test_what_follows_from_a_followers_progress_counts_as_work_of_its_slice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Marks that move wake others. With 300 partitions a slice, this held the event loop for 20 ms."""
    reader = Reader(1_000)
    fetched = reader.source.fetched
    monkeypatch.setattr(reader.source, "fetched", lambda *some: (fetched(*some)[0], 92))
    request = reader.first(min_bytes=1, max_wait_ms=500, replica_state=ReplicaState(2, 1))
    reader.run(reader.fetch(request))
    assert reader.most <= 1 + pace.MAX_SLICE_WORK_US // 100


def test_a_fetch_of_a_session_waits_while_another_is_in_slices() -> None:
    reader = Reader(1_000)
    (full,) = at_once(reader.fetch(reader.first(max_bytes=ALL_BYTES)))
    session_id = full.response.session_id  # type: ignore[union-attr]
    reader.grow(lambda key: at_once(reader.parked.changed(key, 0)))
    one, repeated = (reader.fetch(fetch_request(session_id, 1, {})) for _ in range(2))
    following = reader.fetch(fetch_request(session_id, 2, {}))
    next(one)
    examined = reader.source.examined
    for other in (repeated, following):
        next(other)
    assert reader.source.examined == examined
    (first,) = at_once(one)
    assert len(partitions_of(first.response)) == 1_000  # type: ignore[arg-type]
    (second,), (third,) = at_once(following), at_once(repeated)
    assert not second.response.error_code  # type: ignore[union-attr]
    assert third.response.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH  # type: ignore[union-attr]


def test_a_session_may_be_closed_while_its_fetch_is_in_slices() -> None:
    reader = Reader(1_000)
    (full,) = at_once(reader.fetch(reader.first(max_bytes=ALL_BYTES)))
    session_id = full.response.session_id  # type: ignore[union-attr]
    for slices in range(20):
        reader.grow(lambda key: at_once(reader.parked.changed(key, 0)))
        fetching = reader.fetch(fetch_request(session_id, 1, {}))
        is_over = False
        for _ in range(slices):
            is_over = is_over or next(fetching, "over") == "over"
        (other,) = at_once(reader.fetch(fetch_request(session_id, 0, {(topic_id(0), 0): 0})))
        done = [] if is_over else at_once(fetching)
        assert all(not isinstance(one.response, Exception) for one in done)
        assert len(reader.parked.sessions.watchers) == 1  # that of the other session alone
        at_once(reader.parked.close_session(other.response.session_id, 0))  # type: ignore[union-attr]
        (full,) = at_once(reader.fetch(reader.first(max_bytes=ALL_BYTES)))
        session_id = full.response.session_id  # type: ignore[union-attr]


class ChangingServer(Server):
    """Partitions change between the slices of a fetch, while it is `restless`."""

    restless = True

    def fetch(self, request: FetchRequest, fetch_id: object = "fetch") -> Any:
        assert self.parked is not None
        work = self.parked._sliced.fetch(fetch_id, request, VERSION, self.now_ms)
        while True:
            try:
                next(work)
            except StopIteration as end:
                return next(one.response for one in end.value if one.fetch_id is fetch_id)
            if self.restless and self.random.random() < 0.5:
                self.change()

    def change(self) -> None:
        name, (_, partitions) = self.random.choice(sorted(self.world.source.topics.items()))
        index = self.random.randrange(len(partitions))
        partitions[index].append(100)
        if self.random.random() < 0.7:
            partitions[index].high_watermark = partitions[index].log_end_offset
        self._changed((name, index))


class PatientClient(Client):
    """Compares what it knows once nothing has changed between the slices of an answer."""

    def compare_with_full_fetch(self, answer: Any, max_bytes: int) -> None:
        if not self.server.restless:  # type: ignore[attr-defined]
            super().compare_with_full_fetch(answer, max_bytes)


@pytest.mark.parametrize("seed", range(20))
def test_no_change_between_slices_is_lost__s20(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(pace, "MAX_SLICE_WORK_US", 1)  # a pause after each partition
    server = ChangingServer(seed)
    client = PatientClient(server, server.random.choice([-1, 5]))
    for _ in range(30):
        server.restless = not server.restless
        client.fetch(ALL_BYTES, is_lost=False)


@pytest.mark.parametrize("seed", range(20))
def test_no_change_while_a_session_begins_is_lost__s20(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """A session begins with all partitions, in slices, and its next fetch gives what came between."""
    monkeypatch.setattr(pace, "MAX_SLICE_WORK_US", 1)
    server = ChangingServer(seed)
    client = PatientClient(server, server.random.choice([-1, 5]))
    begun = 0
    for _ in range(30):
        client.epoch = 0  # the request closes the session before
        for server.restless in (True, False):
            client.fetch(ALL_BYTES, is_lost=False)
        begun += client.epoch == 2
    assert begun > 20
