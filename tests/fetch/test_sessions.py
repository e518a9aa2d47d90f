"""Fetch sessions over artificial partitions: the answers to a client (S20), and their cost."""

from __future__ import annotations

import gc
import tracemalloc
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftd.fetch.parked_fetches import Completed, ParkedFetches
from kraftd.fetch.session_cache import MAX_EPOCH, CacheLimits, next_epoch
from kraftd.fetch.sessions import FetchSessions
from kraftd.fetch.slots import Slot, slot_bytes
from kraftd.fetch.source import Reader
from kraftd.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from kraftd.messages.fetch_response import FetchResponse, PartitionData
from kraftd.wire.error_code import ErrorCode
from testkit.synthetic import SyntheticPartitions
from tests.fetch.at_once import AtOnce
from tests.fetch.histories import NAMES, World, topic_id

VERSION = 17
ALL_BYTES = 1 << 30
# A session remembers a deleted topic's name, and may find another topic with that name.
DELETED_TOPIC_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.INCONSISTENT_TOPIC_ID,
}
NO_LIMITS = CacheLimits()


class Server:
    """Fetch sessions over the partitions of a world."""

    def __init__(self, seed: int = 0, limits: CacheLimits = NO_LIMITS) -> None:
        self.random = Random(seed)
        self.now_ms = 0
        self.completed: list[Completed] = []
        self.parked: AtOnce | None = None
        self.world = World(self.random, self._changed)
        sessions = FetchSessions(self.world.source, limits, lambda: self.random.randint(1, 1 << 20))
        self.sessions, self.parked = AtOnce(sessions), AtOnce(ParkedFetches(sessions))

    def _changed(self, key: object) -> None:
        if self.parked is not None:
            self.completed += self.parked.changed(key, self.now_ms)

    def fetch(self, request: FetchRequest, fetch_id: object = "fetch") -> FetchResponse | None:
        """The answer to a fetch, or None if it is parked."""
        assert self.parked is not None
        done = self.parked.fetch(fetch_id, request, VERSION, self.now_ms)
        self.completed += [one for one in done if one.fetch_id is not fetch_id]
        mine = [one.response for one in done if one.fetch_id is fetch_id]
        assert len(mine) <= 1
        return mine[0] if mine else None


def fetch_request(
    session_id: int,
    epoch: int,
    positions: dict[tuple[bytes, int], int],
    *,
    forgotten: tuple[tuple[bytes, int], ...] = (),
    max_bytes: int = ALL_BYTES,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    replica_id: int = -1,
) -> FetchRequest:
    return FetchRequest(
        replica_state=ReplicaState(replica_id),
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_id=session_id,
        session_epoch=epoch,
        topics=[
            FetchTopic("", one, [FetchPartition(index, fetch_offset=offset, partition_max_bytes=1 << 20)])
            for (one, index), offset in positions.items()
        ],
        forgotten_topics_data=[ForgottenTopic("", one, (index,)) for one, index in forgotten],
    )


def partitions_of(response: FetchResponse) -> dict[tuple[bytes, int], PartitionData]:
    return {(t.topic_id, p.partition_index): p for t in response.responses for p in t.partitions}


class Client:
    """A client that knows only the answers that it got. Messages are lost, repeated and reordered."""

    def __init__(self, server: Server, replica_id: int) -> None:
        self.server = server
        self.replica_id = replica_id
        self.session_id = 0
        self.epoch = 0
        self.positions: dict[tuple[bytes, int], int] = {}
        self.news: dict[tuple[bytes, int], int] = {}  # positions that the session does not know yet
        self.known: dict[tuple[bytes, int], PartitionData] = {}

    def fetch(self, max_bytes: int, *, is_lost: bool) -> None:
        random, world = self.server.random, self.server.world
        for one in random.sample(world.ids, min(2, len(world.ids))):
            key = (one, random.randrange(4))
            if key not in self.positions and random.random() < 0.5:
                self.positions[key] = self.news[key] = 0
        forgotten: list[tuple[bytes, int]] = []
        if self.epoch and random.random() < 0.2:
            forgotten = random.sample(sorted(self.positions), min(1, len(self.positions)))
            for key in forgotten:
                del self.positions[key]
                self.known.pop(key, None)
                self.news.pop(key, None)
        positions = self.news if self.epoch else self.positions
        request = fetch_request(
            self.session_id,
            self.epoch,
            positions,
            forgotten=tuple(forgotten),
            max_bytes=max_bytes,
            replica_id=self.replica_id,
        )
        response = self.server.fetch(request)
        assert response is not None
        if is_lost:
            self.epoch = 0  # the client cannot know whether the fetch arrived, so it starts a new session
        elif response.error_code:
            assert response.error_code in (
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
            )
            self.epoch = 0
        else:
            self.learn(response, max_bytes)

    def learn(self, response: FetchResponse, max_bytes: int) -> None:
        if not self.epoch:
            self.known.clear()
        answer = partitions_of(response)
        self.known |= answer
        self.compare_with_full_fetch(answer, max_bytes)
        self.news = {}
        for key, data in answer.items():
            if data.records:
                name = self.server.world.source.names[key[0]]
                self.positions[key] = self.news[key] = self.server.world.source.next_offset(
                    name, key[1], self.positions[key], len(data.records)
                )
            elif data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                topic = self.server.world.source.topics[self.server.world.source.names[key[0]]]
                self.positions[key] = self.news[key] = topic[1][key[1]].log_start_offset
        self.session_id = response.session_id
        self.epoch = next_epoch(self.epoch) if response.session_id else 0

    def compare_with_full_fetch(self, answer: dict[tuple[bytes, int], PartitionData], max_bytes: int) -> None:
        """Require that the client knows the answer of a full fetch from the same positions (S20)."""
        full = partitions_of(full_fetch(self.server.world.source, self.positions, self.replica_id))
        assert self.known.keys() == full.keys()
        has_records = any(data.records for data in answer.values())
        for key, data in full.items():
            known = self.known[key]
            assert (
                known.error_code == data.error_code
                or {known.error_code, data.error_code} <= DELETED_TOPIC_ERRORS
            )
            assert known.log_start_offset == data.log_start_offset
            assert known.high_watermark == data.high_watermark
            if data.records and (key not in answer or not answer[key].records):
                assert max_bytes < ALL_BYTES and has_records, "the response had space for its records"


def full_fetch(
    source: SyntheticPartitions, positions: dict[tuple[bytes, int], int], replica_id: int
) -> FetchResponse:
    alone = AtOnce(ParkedFetches(FetchSessions(source, CacheLimits(slots=0), int)))
    request = fetch_request(0, -1, positions, replica_id=replica_id)
    return alone.fetch("full", request, VERSION, 0)[0].response


@settings(max_examples=120, deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(5, 60), slots=st.integers(1, 3))
def test_incremental_answers_add_up_to_a_full_fetch__kip227(seed: int, steps: int, slots: int) -> None:
    server = Server(seed, CacheLimits(slots=slots, eviction_ms=50))
    random = server.random
    clients = [Client(server, random.choice([-1, -1, 4])) for _ in range(3)]
    for _ in range(steps):
        server.now_ms += random.choice([1, 1, 30])
        for _ in range(random.randrange(4)):
            server.world.change()
        client = random.choice(clients)
        if random.random() < 0.05:
            client.epoch += random.choice([-1, 1]) if client.epoch > 1 else 0  # reordered
        client.fetch(random.choice([200, 1000, ALL_BYTES, ALL_BYTES]), is_lost=random.random() < 0.1)
    assert not server.completed


def test_parked_fetch_is_answered_once_when_it_has_min_bytes() -> None:
    server = Server()
    one, (partition, *_) = server.world.source.topics["a"]
    request = fetch_request(0, 0, {(one, 0): 0}, max_wait_ms=500, min_bytes=150)
    assert server.fetch(request) is None
    for _ in range(2):
        assert not server.completed
        partition.append(100)
        partition.high_watermark = partition.log_end_offset
        server._changed(("a", 0))
    assert server.parked is not None and not len(server.parked)
    (completed,) = server.completed
    (data,) = partitions_of(completed.response).values()
    assert len(data.records or b"") == 200
    server.now_ms = 10_000
    assert server.parked.expire(server.now_ms) == [] and server.parked.deadline_ms() is None


def test_parked_fetch_is_answered_at_its_deadline_and_at_once_on_an_error() -> None:
    server = Server()
    assert server.parked is not None
    one, (partition, *_) = server.world.source.topics["a"]
    first = server.fetch(fetch_request(0, 0, {(one, 0): 0}))
    assert first is not None
    assert server.fetch(fetch_request(first.session_id, 1, {}, max_wait_ms=500)) is None
    assert server.parked.expire(499) == []
    (completed,) = server.parked.expire(500)
    assert completed.response == FetchResponse(session_id=first.session_id)
    assert server.fetch(fetch_request(first.session_id, 2, {}, max_wait_ms=500)) is None
    partition.error_code = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    server._changed(("a", 0))
    (failed,) = server.completed
    assert [data.error_code for data in partitions_of(failed.response).values()] == [partition.error_code]


def test_fetch_of_the_next_epoch_replaces_the_parked_one() -> None:
    server = Server()
    one, _ = server.world.source.topics["a"]
    first = server.fetch(fetch_request(0, 0, {(one, 0): 0}))
    assert first is not None
    assert server.fetch(fetch_request(first.session_id, 1, {}, max_wait_ms=500), "older") is None
    assert server.fetch(fetch_request(first.session_id, 2, {}, max_wait_ms=500), "newer") is None
    (completed,) = server.completed
    assert completed.fetch_id == "older"
    assert completed.response.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_closing_a_session_answers_its_parked_fetch_and_watches_nothing() -> None:
    server = Server()
    one, _ = server.world.source.topics["a"]
    first = server.fetch(fetch_request(0, 0, {(one, 0): 0}))
    assert first is not None
    assert server.fetch(fetch_request(first.session_id, 1, {}, max_wait_ms=500), "parked") is None
    server.fetch(fetch_request(first.session_id, -1, {}))
    assert [one.fetch_id for one in server.completed] == ["parked"]
    assert not len(server.sessions.watchers) and not len(server.sessions.cache)


def test_epochs_wrap_to_one_and_unknown_ids_are_not_found() -> None:
    assert next_epoch(MAX_EPOCH) == 1
    server = Server()
    for session_id in (5, -5, 2147483647, -2147483648):
        response = server.fetch(fetch_request(session_id, 1, {}))
        assert response is not None and response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("epoch", [1, 3, 2**31 - 1])
def test_a_repeated_or_skipped_epoch_is_refused_and_the_session_stays__kip227(epoch: int) -> None:
    server = Server()
    first = server.fetch(fetch_request(0, 0, {(topic_id(0), 0): 0}))
    assert first is not None
    assert server.fetch(fetch_request(first.session_id, 1, {})) is not None
    refused = server.fetch(fetch_request(first.session_id, epoch, {}))
    assert refused == FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    next_one = server.fetch(fetch_request(first.session_id, 2, {}))
    assert next_one is not None and (next_one.error_code, next_one.session_id) == (0, first.session_id)


def test_a_partition_that_a_request_names_and_forgets_is_forgotten__kip227() -> None:
    server = Server()
    kept, gone = (topic_id(0), 0), (topic_id(0), 1)
    first = server.fetch(fetch_request(0, 0, {kept: 0, gone: 0}))
    assert first is not None
    server.fetch(fetch_request(first.session_id, 1, {gone: 0}, forgotten=(gone,)))
    session = server.sessions.cache.get(first.session_id)
    assert session is not None and list(session.subscription.slots) == [kept]


def test_an_answer_without_a_session_has_the_id_0__kip227() -> None:
    server = Server()
    response = server.fetch(fetch_request(0, -1, {(topic_id(0), 0): 0}))
    assert response is not None and (response.error_code, response.session_id) == (0, 0)
    assert len(server.sessions.cache) == 0


def test_epoch_0_ends_the_session_that_it_names_and_begins_another__kip227() -> None:
    server, wanted = Server(), {(topic_id(0), 0): 0}
    first = server.fetch(fetch_request(0, 0, wanted))
    assert first is not None and first.session_id > 0
    second = server.fetch(fetch_request(first.session_id, 0, wanted))
    assert second is not None and second.session_id not in (0, first.session_id)
    assert len(server.sessions.cache) == 1 and len(partitions_of(second)) == 1
    gone = server.fetch(fetch_request(first.session_id, 1, {}))
    assert gone is not None and gone.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    closed = server.fetch(fetch_request(second.session_id, -1, {}))
    assert closed is not None and closed.session_id == 0 and len(server.sessions.cache) == 0


def test_a_fetch_that_closes_a_session_is_a_full_one__kip227() -> None:
    server, wanted = Server(), {(topic_id(0), 0): 0}
    first = server.fetch(fetch_request(0, 0, wanted))
    assert first is not None and len(partitions_of(first)) == 1
    unchanged = server.fetch(fetch_request(first.session_id, 1, wanted))
    assert unchanged is not None and not partitions_of(unchanged)
    closed = server.fetch(fetch_request(first.session_id, -1, wanted))
    assert closed is not None and len(partitions_of(closed)) == 1
    assert len(server.sessions.cache) == 0


def test_no_two_sessions_have_the_same_id__kip227(monkeypatch: pytest.MonkeyPatch) -> None:
    server, drawn = Server(), iter((7, 7, 0, 9))
    monkeypatch.setattr(server.random, "randint", lambda *_: next(drawn))
    answers = [server.fetch(fetch_request(0, 0, {(topic_id(0), 0): 0})) for _ in range(2)]
    assert [one.session_id for one in answers if one is not None] == [7, 9]


def test_progress_of_a_follower_is_noted_where_it_or_the_partition_changed() -> None:
    server = Server()
    source = server.world.source
    one, (partition, *_) = source.topics["a"]
    key = (one, 0)

    def fetch(
        at_ms: int, session_id: int, epoch: int, positions: dict[tuple[bytes, int], int]
    ) -> FetchResponse:
        server.now_ms = at_ms
        source.progress.clear()
        answer = server.fetch(fetch_request(session_id, epoch, positions, replica_id=3))
        assert answer is not None
        return answer

    def noted() -> list[tuple[int, int]]:
        return [(offset, last_fetch_ms) for _, offset, last_fetch_ms in source.progress]

    session_id = fetch(10, 0, 0, {key: 0}).session_id
    assert noted() == [(0, -1)]
    slot = source.progress[0][0]
    fetch(20, session_id, 1, {})
    assert noted() == [] and slot.last_fetch_ms == 20
    partition.append(100)
    server._changed(("a", 0))
    fetch(30, session_id, 2, {})
    assert noted() == [(0, 20)]
    fetch(40, session_id, 3, {key: 1})
    assert noted() == [(1, 30)]
    forgetting = fetch_request(session_id, 4, {(one, 1): 0}, forgotten=(key,), replica_id=3)
    server.now_ms = 50
    server.fetch(forgetting)
    fetch(60, session_id, 5, {})
    assert slot.last_fetch_ms == 40  # the session goes on without the partition


def test_the_progress_of_consumers_is_not_noted() -> None:
    server = Server()
    source = server.world.source
    one, _ = source.topics["a"]
    server.fetch(fetch_request(0, 0, {(one, 0): 0}))
    assert source.progress == []


def subscribed(count: int) -> tuple[AtOnce, SyntheticPartitions, int]:
    source = SyntheticPartitions()
    source.create("many", topic_id(0), count)
    parked = AtOnce(ParkedFetches(FetchSessions(source, CacheLimits(), lambda: 7)))
    partitions = [FetchPartition(index, partition_max_bytes=1 << 20) for index in range(count)]
    request = FetchRequest(session_epoch=0, topics=[FetchTopic("", topic_id(0), partitions)])
    (completed,) = parked.fetch(0, request, VERSION, 0)
    return parked, source, completed.response.session_id


@pytest.mark.parametrize("count", [1_000, 20_000])
def test_incremental_fetch_examines_only_changed_partitions(count: int) -> None:
    parked, source, session_id = subscribed(count)
    partitions = source.topics["many"][1]
    source.examined = source.reads = 0
    for index in range(0, 100, 10):
        for _ in range(5):
            partitions[index].append(100)
            partitions[index].high_watermark += 1
            parked.changed(("many", index), 0)
    (completed,) = parked.fetch(0, fetch_request(session_id, 1, {}), VERSION, 0)
    assert len(partitions_of(completed.response)) == 10
    assert source.examined == 10 and source.reads == 10
    parked.fetch(
        0, fetch_request(session_id, 2, {(topic_id(0), n): 5 for n in range(0, 100, 10)}), VERSION, 0
    )
    source.examined = source.reads = 0
    (completed,) = parked.fetch(0, fetch_request(session_id, 3, {}), VERSION, 0)
    assert completed.response == FetchResponse(session_id=session_id)
    assert source.examined == source.reads == 0


def test_backlog_that_does_not_fit_is_read_round_robin_at_bounded_cost() -> None:
    parked, source, session_id = subscribed(1000)
    for index, partition in enumerate(source.topics["many"][1]):
        partition.append(100)
        parked.changed(("many", index), 0)
    parked.fetch(0, fetch_request(session_id, 1, {}), VERSION, 0)
    for index, partition in enumerate(source.topics["many"][1]):
        partition.high_watermark = 1
        parked.changed(("many", index), 0)
    read_indexes: list[int] = []
    moved: dict[tuple[bytes, int], int] = {}
    for epoch in range(2, 102):
        before = source.reads
        request = fetch_request(session_id, epoch, moved, max_bytes=1000)
        answer = partitions_of(parked.fetch(0, request, VERSION, 0)[0].response)
        moved = {key: 1 for key, data in answer.items() if data.records}
        assert len(moved) == 10
        assert epoch == 2 or source.reads - before <= 20
        read_indexes += [index for _, index in moved]
    assert sorted(read_indexes) == list(range(1000))


hostile_ints = st.sampled_from([0, 1, -1, 2, 5, 1 << 20, 2147483647, -2147483648])
hostile_keys = st.tuples(st.integers(0, 5).map(topic_id), st.integers(-2, 40))


@settings(max_examples=60, deadline=None)
@given(
    requests=st.lists(
        st.tuples(
            hostile_ints,
            hostile_ints,
            st.lists(hostile_keys, max_size=30),
            st.lists(hostile_keys, max_size=30),
            hostile_ints,
        ),
        max_size=40,
    )
)
def test_hostile_fetches_stay_within_the_bounds_of_the_cache(requests: list[tuple]) -> None:  # type: ignore[type-arg]
    limits = CacheLimits(slots=4, partitions=60, size_bytes=40_000, eviction_ms=3)
    server = Server(1, limits)
    assert server.parked is not None
    for number, (session_id, epoch, fetched, forgotten, many) in enumerate(requests):
        server.now_ms += 1
        server.world.change()
        known = [session.id for session in server.sessions.cache]
        request = fetch_request(
            known[session_id % len(known)] if known and number % 3 else session_id,
            epoch,
            dict.fromkeys(fetched, many),
            forgotten=tuple(forgotten),
            max_bytes=many,
            min_bytes=many,
        )
        assert server.fetch(request) is not None
        cache = server.sessions.cache
        slots = sum(len(session.subscription) for session in cache)
        assert len(cache) <= limits.slots and slots == cache.partitions <= limits.partitions
        size = sum(session.subscription.size_bytes for session in cache)
        assert size == cache.size_bytes <= limits.size_bytes
        watched = sum(len(server.sessions.watchers.under(key)) for key in keys_of(server))
        assert watched <= slots
        for session in cache:
            assert len(session.subscription._ready) <= 2 * len(session.subscription) + 1


def keys_of(server: Server) -> list[object]:
    return list(server.sessions.watchers._first)


def test_slots_take_no_more_memory_than_their_counted_size() -> None:
    parked, _, _ = subscribed(2_000)
    names = ["many", "other"]
    topics = [FetchTopic(name, bytes(16), [FetchPartition(n) for n in range(1_000)]) for name in names]
    request = FetchRequest(session_epoch=0, topics=topics)
    parked.sessions.cache._new_id = lambda: 8
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        parked.fetch(0, request, 12, 0)
        taken_bytes = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    (_, session) = parked.sessions.cache
    assert session.cached_bytes / 2 < taken_bytes <= session.cached_bytes


@pytest.mark.parametrize("is_notified", [True, False])
def test_unknown_topic_id_is_reported_until_the_topic_exists(is_notified: bool) -> None:
    server = Server()
    if not is_notified:
        server.world.changed = lambda _: None  # the fetch itself must notice the change
    new = topic_id(len(server.world.ids))
    first = server.fetch(fetch_request(0, 0, {(new, 0): 0}))
    assert first is not None
    assert partitions_of(first)[new, 0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    again = server.fetch(fetch_request(first.session_id, 1, {}))
    assert again is not None and partitions_of(again)[new, 0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    server.world.create(NAMES[3])
    resolved = server.fetch(fetch_request(first.session_id, 2, {}))
    assert resolved is not None and not partitions_of(resolved)[new, 0].error_code
    nothing = server.fetch(fetch_request(first.session_id, 3, {}))
    assert nothing is not None and not nothing.responses


def test_objects_of_a_session_show_themselves_in_one_line() -> None:
    server = Server()
    one, _ = server.world.source.topics["a"]
    server.fetch(fetch_request(0, 0, {(one, 0): 0}))
    (session,) = server.sessions.cache
    subscription = session.subscription
    (slot,) = subscription.slots.values()
    assert isinstance(slot, Slot) and Reader(3).is_follower
    size_bytes = slot_bytes((one, 0))
    cache = f"<SessionCache of 1 sessions, 1 partitions, {size_bytes} bytes>"
    assert repr(server.sessions) == f"<FetchSessions {cache}, <Watchers of 1 keys>>"
    assert repr(server.parked) == f"<ParkedFetches 0 wait, {server.sessions!r}>"
    assert repr(session) == f"<FetchSession {session.id} of a consumer, epoch 1, 1 partitions>"
    assert repr(subscription) == "<Subscription to 1 partitions, 0 dirty, 0 bytes available>"
    assert repr(slot) == "<Slot a-0 at 0, 0 bytes available, reported 0>"
    context = server.sessions.begin(fetch_request(session.id, 1, {}), VERSION, 0)
    assert repr(context) == f"<FetchContext incremental of {session!r}>"
    refused = server.sessions.begin(fetch_request(session.id, 1, {}), VERSION, 0)
    assert repr(refused) == f"<FetchContext refused of {refused.subscription!r}>"


def test_a_parked_follower_and_an_unknown_topic_show_so() -> None:
    server = Server()
    one, _ = server.world.source.topics["a"]
    first = server.fetch(fetch_request(0, 0, {(one, 0): 0}, replica_id=3))
    assert first is not None
    assert (
        server.fetch(fetch_request(first.session_id, 1, {}, replica_id=3, max_wait_ms=500), "parked") is None
    )
    (session,) = server.sessions.cache
    assert repr(session) == f"<FetchSession {session.id} of a follower, epoch 2, 1 partitions>"
    assert repr(session.subscription) == "<Subscription to 1 partitions, 0 dirty, 0 bytes available, parked>"
    unknown = topic_id(99)
    server.fetch(fetch_request(session.id, 2, {(unknown, 5): 7}, replica_id=3))
    assert repr(session.subscription.slots[unknown, 5]) == (
        f"<Slot {unknown.hex()}-5 at 7, 0 bytes available, reported -1>"
    )


@pytest.mark.parametrize("keeps_session", [False, True])
def test_what_a_fetch_needed_is_freed_without_a_collection_of_garbage(keeps_session: bool) -> None:
    server = Server()
    positions = dict.fromkeys(((topic_id(number), 0) for number in range(3)), 0)

    def fetch() -> None:
        if not keeps_session:
            server.fetch(fetch_request(0, -1, positions))
            return
        opened = server.fetch(fetch_request(0, 0, positions))
        assert opened is not None and opened.session_id
        server.sessions.close(opened.session_id)

    gc.collect()
    gc.disable()
    try:
        fetch()
        assert not [one for one in gc.get_objects() if isinstance(one, Slot)]
    finally:
        gc.enable()
