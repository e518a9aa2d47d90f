"""Exact bounds of fetch sessions: refused growth, counted evictions, and slots that may be parked."""

from __future__ import annotations

import pytest

from kraftd.fetch.session_cache import EVICTION_MS, CacheLimits
from kraftd.fetch.sessions import names_more_than
from kraftd.fetch.slots import SLOT_BYTES, slot_bytes
from kraftd.fetch.source import Reader
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from kraftd.messages.fetch_response import FetchResponse
from kraftd.wire.error_code import ErrorCode
from tests.fetch.test_sessions import Server, fetch_request, partitions_of


def test_the_size_of_a_slot_includes_its_name_in_bytes() -> None:
    assert slot_bytes(("abc", 0)) == SLOT_BYTES + 3
    assert slot_bytes(("äbc", 0)) == SLOT_BYTES + 12
    assert slot_bytes((bytes(16), 0)) == SLOT_BYTES + 16


def test_a_session_that_may_not_grow_is_closed_as_unknown() -> None:
    server = Server(limits=CacheLimits(partitions=2))
    one, _ = server.world.source.topics["a"]
    first = server.fetch(fetch_request(0, 0, {(one, 0): 0, (one, 1): 0}))
    assert first is not None and first.session_id
    grown = server.fetch(fetch_request(first.session_id, 1, {(one, 2): 0}))
    assert grown is not None and grown.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert not len(server.sessions.cache)


def test_default_limits_of_the_cache__kip227() -> None:
    assert (CacheLimits().slots, CacheLimits().eviction_ms) == (1_000, 120_000)


def test_a_cache_without_slots_makes_no_session__kip227() -> None:
    server = Server(limits=CacheLimits(slots=0))
    assert session_of(server, 1) == 0


def test_each_eviction_is_counted_once() -> None:
    server = Server(limits=CacheLimits(slots=1))
    one, _ = server.world.source.topics["a"]
    for count in (1, 2):
        server.now_ms += 1_000_000
        server.fetch(fetch_request(0, 0, {(one, 0): 0}))
        assert server.sessions.cache.evictions == count - 1


def test_fetches_without_a_session_park_up_to_the_limit_of_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraftd.fetch.parked_fetches.MAX_PARKED_SLOTS", 2)
    server = Server()
    one, _ = server.world.source.topics["a"]
    for number in range(2):
        assert server.fetch(fetch_request(0, -1, {(one, 0): 0}, max_wait_ms=500), f"parked {number}") is None
    refused = server.fetch(fetch_request(0, -1, {(one, 0): 0}, max_wait_ms=500), "one too many")
    assert refused is not None and not refused.error_code
    assert server.parked is not None and len(server.parked.expire(500)) == 2
    assert server.fetch(fetch_request(0, -1, {(one, 0): 0}, max_wait_ms=500), "again") is None


def test_parked_fetches_of_evicted_sessions_are_answered() -> None:
    server = Server(limits=CacheLimits(partitions=2))
    one, _ = server.world.source.topics["a"]
    for index in range(2):
        first = server.fetch(fetch_request(0, 0, {(one, index): 0}))
        assert first is not None and first.session_id
        assert (
            server.fetch(fetch_request(first.session_id, 1, {}, max_wait_ms=5_000_000), f"of {index}") is None
        )
    server.now_ms += 1_000_000
    larger = server.fetch(fetch_request(0, 0, {(one, 0): 0, (one, 1): 0}))
    assert larger is not None and larger.session_id
    assert sorted(str(completed.fetch_id) for completed in server.completed) == ["of 0", "of 1"]
    assert server.sessions.cache.evictions == 2


def test_a_fetch_of_a_lost_connection_is_dropped_and_frees_its_slots(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kraftd.fetch.parked_fetches.MAX_PARKED_SLOTS", 1)
    server = Server()
    one, _ = server.world.source.topics["a"]
    assert server.parked is not None
    assert server.fetch(fetch_request(0, -1, {(one, 0): 0}, max_wait_ms=500), "gone") is None
    server.parked.abandon("gone", 0)
    server.parked.abandon("never parked", 0)
    assert not len(server.parked) and not len(server.sessions.watchers)
    assert server.fetch(fetch_request(0, -1, {(one, 0): 0}, max_wait_ms=500), "next") is None
    assert [completed.fetch_id for completed in server.parked.expire(500)] == ["next"]


def session_of(server: Server, count: int, *, replica_id: int = -1) -> int:
    """The id of a new session with `count` partitions; 0 if the cache is full."""
    (one, _), *_ = server.world.source.topics.values()
    answer = server.fetch(
        fetch_request(0, 0, {(one, index): 0 for index in range(count)}, replica_id=replica_id)
    )
    assert answer is not None and not answer.error_code
    return answer.session_id


def test_a_session_is_idle_only_after_two_minutes() -> None:
    server = Server(limits=CacheLimits(slots=1))
    first = session_of(server, 1)
    server.now_ms = EVICTION_MS
    assert first and not session_of(server, 1)
    server.now_ms += 1
    assert session_of(server, 1)


def test_a_session_is_old_only_at_a_fetch_after_more_than_two_minutes() -> None:
    server = Server(limits=CacheLimits(slots=1))
    first = session_of(server, 1)
    for epoch, now_ms in ((1, EVICTION_MS), (2, EVICTION_MS + 1)):
        server.now_ms = now_ms
        server.fetch(fetch_request(first, epoch, {}))
        assert bool(session_of(server, 2)) == (now_ms > EVICTION_MS)


def test_an_old_session_gives_way_to_a_larger_one_only() -> None:
    server = Server(limits=CacheLimits(slots=1))
    first = session_of(server, 2)
    server.now_ms = EVICTION_MS + 1
    server.fetch(fetch_request(first, 1, {}))
    assert not session_of(server, 1)
    assert not session_of(server, 2), "of equal size the one that is there stays"
    assert session_of(server, 3)


def test_a_followers_session_takes_the_place_of_a_consumers_not_the_reverse() -> None:
    server = Server(limits=CacheLimits(slots=1))
    assert session_of(server, 3)
    assert session_of(server, 1, replica_id=5)
    assert not session_of(server, 3)
    assert not session_of(server, 3, replica_id=6), "the other follower's is not old"


@pytest.mark.parametrize(
    "limits", [CacheLimits(partitions=2), CacheLimits(session_partitions=2), CacheLimits(size_bytes=1_997)]
)
def test_a_session_that_fits_nowhere_evicts_none(limits: CacheLimits) -> None:
    server = Server(limits=limits)
    first = session_of(server, 2)
    server.now_ms = EVICTION_MS + 1
    assert first and not session_of(server, 3)
    assert [one.id for one in server.sessions.cache] == [first]
    assert server.sessions.cache.evictions == 0


def test_a_session_grows_as_far_as_the_cache_has_room() -> None:
    size_bytes = slot_bytes((bytes(16), 0))
    for limits in (CacheLimits(partitions=3), CacheLimits(size_bytes=3 * size_bytes)):
        server = Server(limits=limits)
        one, _ = server.world.source.topics["a"]
        first = session_of(server, 1)
        grown = server.fetch(fetch_request(first, 1, {(one, 1): 0, (one, 2): 0}))
        assert grown is not None and not grown.error_code
        assert (server.sessions.cache.partitions, server.sessions.cache.size_bytes) == (3, 3 * size_bytes)
        refused = server.fetch(fetch_request(first, 2, {(one, 3): 0}))
        assert refused is not None and refused.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert (server.sessions.cache.partitions, server.sessions.cache.size_bytes) == (0, 0)


def test_a_topic_without_partitions_counts_as_one() -> None:
    partitions = [FetchPartition(0), FetchPartition(1)]
    request = FetchRequest(
        topics=[FetchTopic("a"), FetchTopic("b", partitions=partitions)],
        forgotten_topics_data=[ForgottenTopic("c"), ForgottenTopic("d", partitions=(0, 1, 2))],
    )
    count = 1 + 2 + 1 + 3
    assert [names_more_than(request, limit) for limit in (0, count - 1, count)] == [True, True, False]


@pytest.mark.parametrize("max_bytes", [0, -5])
def test_a_fetch_of_no_bytes_does_not_wait_for_any(max_bytes: int) -> None:
    server = Server()
    one, _ = server.world.source.topics["a"]
    answer = server.fetch(fetch_request(0, 0, {(one, 0): 0}, max_bytes=max_bytes, max_wait_ms=500))
    assert answer is not None and not answer.error_code


def test_fetches_whose_time_is_over_are_answered_a_few_at_a_time() -> None:
    server = Server()
    one, _ = server.world.source.topics["a"]
    assert server.parked is not None
    for number in range(3):
        wait_ms = 500 + number
        assert server.fetch(fetch_request(0, -1, {(one, 0): 0}, max_wait_ms=wait_ms), str(number)) is None
    assert [one.fetch_id for one in server.parked.expire(600, 1)] == ["0"]
    assert [one.fetch_id for one in server.parked.expire(600, 2)] == ["1", "2"]


def test_partitions_with_records_may_be_forgotten_before_they_are_read() -> None:
    server = Server()
    topic = bytes(15) + b"\x77"
    for partition in server.world.source.create("many", topic, 5):
        partition.append(100)
        partition.high_watermark = 1
    first = server.fetch(fetch_request(0, 0, {(topic, index): 0 for index in range(5)}, max_bytes=100))
    assert first is not None and [len(data.records or b"") for data in partitions_of(first).values()] == [
        100,
        0,
        0,
        0,
        0,
    ]
    second = server.fetch(
        fetch_request(first.session_id, 1, {}, forgotten=((topic, 0), (topic, 1), (topic, 3)))
    )
    assert second is not None
    assert {key[1]: len(data.records or b"") for key, data in partitions_of(second).items()} == {
        2: 100,
        4: 100,
    }


def test_the_longest_idle_session_goes_first() -> None:
    server = Server(limits=CacheLimits(slots=3))
    ids = []
    for now_ms in (0, 0, 10):
        server.now_ms = now_ms
        ids.append(session_of(server, 1))
    for now_ms in (EVICTION_MS + 1, EVICTION_MS + 2):
        server.now_ms = now_ms
        ids.append(session_of(server, 1))
    assert all(ids)
    assert {one.id for one in server.sessions.cache} == {ids[2], *ids[3:]}
    server.now_ms = EVICTION_MS + 11
    assert session_of(server, 1)
    assert ids[2] not in {one.id for one in server.sessions.cache}


def test_of_sessions_that_are_idle_as_long_the_lowest_id_goes() -> None:
    server = Server(limits=CacheLimits(slots=2))
    ids = [session_of(server, 1), session_of(server, 1)]
    server.now_ms = EVICTION_MS + 1
    assert session_of(server, 1)
    assert min(ids) not in {one.id for one in server.sessions.cache}


def test_a_session_that_forgets_its_partitions_takes_less_room_and_in_the_end_none() -> None:
    server = Server()
    one, _ = server.world.source.topics["a"]
    size_bytes, cache = slot_bytes((one, 0)), server.sessions.cache
    first = session_of(server, 3)
    assert (cache.partitions, cache.size_bytes) == (3, 3 * size_bytes)
    server.fetch(fetch_request(first, 1, {}, forgotten=((one, 1), (one, 77))))
    assert (cache.partitions, cache.size_bytes) == (2, 2 * size_bytes)
    assert len(server.sessions.watchers) == 2
    last = server.fetch(fetch_request(first, 2, {}, forgotten=((one, 0), (one, 2))))
    assert last is not None and (last.error_code, last.session_id, last.responses) == (0, 0, [])
    assert (len(cache), cache.partitions, cache.size_bytes) == (0, 0, 0)


def test_a_parked_fetch_that_the_next_displaces_is_refused_under_its_session() -> None:
    server = Server()
    first = session_of(server, 1)
    assert server.fetch(fetch_request(first, 1, {}, max_wait_ms=500), "displaced") is None
    assert server.fetch(fetch_request(first, 2, {}), "next") is not None
    (displaced,) = server.completed
    assert displaced.fetch_id == "displaced"
    assert displaced.response == FetchResponse(
        error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=first
    )


def test_a_session_that_is_closed_answers_its_parked_fetch() -> None:
    server = Server()
    assert server.parked is not None
    first, second = session_of(server, 1), session_of(server, 1)
    assert server.fetch(fetch_request(first, 1, {}, max_wait_ms=500), "parked") is None
    assert server.parked.close_session(first + second, 0) == []
    (closed,) = server.parked.close_session(first, 0)
    assert closed.fetch_id == "parked"
    assert closed.response == FetchResponse(session_id=first)
    assert server.parked.close_session(second, 0) == []
    assert not len(server.sessions.cache) and not len(server.sessions.watchers)


def test_a_session_that_another_identity_continues_is_examined_anew() -> None:
    server = Server()
    first = session_of(server, 3)
    for epoch, identity, examined in ((1, "me", 3), (2, "me", 0), (3, "you", 3)):
        before = server.world.source.examined
        context = server.sessions.begin(fetch_request(first, epoch, {}), 17, 0, identity)
        assert context.subscription.reader == Reader(-1, 0, identity)
        assert server.world.source.examined - before == examined
        server.sessions.answer(context, 0)


def test_a_reader_has_the_isolation_level_of_its_request() -> None:
    request = fetch_request(0, 0, {})
    request.isolation_level = 1
    assert Server().sessions.begin(request, 17, 0, "me").subscription.reader == Reader(-1, 1, "me")


def test_partitions_of_deleted_and_of_unknown_topics_are_refused_in_each_answer() -> None:
    server = Server()
    deleted, unknown = server.world.source.topics["a"][0], bytes(15) + b"\x99"
    first = server.fetch(
        fetch_request(0, 0, {(unknown, 1): 0, (deleted, 0): 0, (deleted, 1): 0, (unknown, 0): 0})
    )
    assert first is not None
    server.world.delete("a")
    for epoch in (1, 2):
        answer = server.fetch(fetch_request(first.session_id, epoch, {}))
        assert answer is not None
        assert {key: data.error_code for key, data in partitions_of(answer).items()} == {
            (deleted, 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            (deleted, 1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            (unknown, 0): ErrorCode.UNKNOWN_TOPIC_ID,
            (unknown, 1): ErrorCode.UNKNOWN_TOPIC_ID,
        }
        assert {one.topic for one in answer.responses if one.topic_id == unknown} == {""}


def test_a_fetch_gives_up_when_many_first_batches_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraftd.fetch.subscription.MAX_MISSES_PER_FETCH", 3)
    server, topic = Server(), bytes(15) + b"\x77"
    for index, partition in enumerate(server.world.source.create("many", topic, 9)):
        partition.append(100 if index < 2 else 400)
        partition.high_watermark = 1
    first = server.fetch(fetch_request(0, 0, {(topic, index): 0 for index in range(9)}, max_bytes=0))
    assert first is not None
    for epoch, max_bytes, reads in ((1, 100, 1), (2, 200, 1 + 3)):
        before = server.world.source.reads
        answer = server.fetch(fetch_request(first.session_id, epoch, {}, max_bytes=max_bytes))
        assert answer is not None
        assert [len(data.records or b"") for data in partitions_of(answer).values()] == [100]
        assert server.world.source.reads - before == reads


def test_a_session_may_not_grow_beyond_what_one_session_may_have() -> None:
    server = Server(limits=CacheLimits(session_partitions=3))
    one, _ = server.world.source.topics["a"]
    first = session_of(server, 1)
    refused = server.fetch(fetch_request(first, 1, {(one, index): 0 for index in (1, 2, 3)}))
    assert refused is not None and refused.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_the_bytes_that_a_fetch_waits_for_are_those_of_its_partitions_now() -> None:
    server, topic = Server(), bytes(15) + b"\x77"
    partitions = server.world.source.create("many", topic, 3)
    first = server.fetch(fetch_request(0, 0, {(topic, index): 0 for index in range(3)}))
    assert first is not None
    (session,) = server.sessions.cache
    for index, size_bytes in ((0, 100), (1, 200), (0, 50), (2, 400)):
        partitions[index].append(size_bytes)
        partitions[index].high_watermark += 1
        server.world.changed(("many", index))
    server.fetch(fetch_request(first.session_id, 1, {}, max_bytes=0))
    assert session.subscription.available_bytes == 750
    server.fetch(fetch_request(first.session_id, 2, {(topic, 0): 1}, forgotten=((topic, 1),), max_bytes=0))
    assert session.subscription.available_bytes == 450


def test_a_partition_of_which_one_byte_is_wanted_brings_a_batch() -> None:
    server, topic = Server(), bytes(15) + b"\x77"
    (partition,) = server.world.source.create("one", topic, 1)
    request = fetch_request(0, 0, {(topic, 0): 0})
    request.topics[0].partitions[0].partition_max_bytes = 1
    first = server.fetch(request)
    assert first is not None
    partition.append(100)
    partition.high_watermark = 1
    server.world.changed(("one", 0))
    answer = server.fetch(fetch_request(first.session_id, 1, {}))
    assert answer is not None and len(partitions_of(answer)[topic, 0].records or b"") == 100


def test_a_batch_of_the_smallest_size_fills_an_answer() -> None:
    server, topic = Server(), bytes(15) + b"\x77"
    for partition, size_bytes in zip(server.world.source.create("two", topic, 3), (61, 100, 61), strict=True):
        partition.append(size_bytes)
        partition.high_watermark = 1
    first = server.fetch(fetch_request(0, 0, {(topic, index): 0 for index in range(3)}, max_bytes=0))
    assert first is not None
    answer = server.fetch(fetch_request(first.session_id, 1, {}, max_bytes=61))
    assert answer is not None and [len(data.records or b"") for data in partitions_of(answer).values()] == [
        61
    ]
    answer = server.fetch(fetch_request(first.session_id, 2, {}, max_bytes=161))
    assert answer is not None
    assert [len(data.records or b"") for data in partitions_of(answer).values()] == [100, 61]
