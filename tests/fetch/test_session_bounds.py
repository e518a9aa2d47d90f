"""Bounds of fetch sessions, exactly: growth that is refused, evictions counted, slots that may be parked."""

from __future__ import annotations

import pytest

from kraftd.fetch.session_cache import CacheLimits
from kraftd.fetch.slots import SLOT_BYTES, slot_bytes
from kraftd.wire.error_code import ErrorCode
from tests.fetch.test_sessions import House, asking


def test_the_size_of_a_slot_includes_its_name_in_bytes() -> None:
    assert slot_bytes(("abc", 0)) == SLOT_BYTES + 3
    assert slot_bytes(("äbc", 0)) == SLOT_BYTES + 12
    assert slot_bytes((bytes(16), 0)) == SLOT_BYTES + 16


def test_a_session_that_may_not_grow_is_closed_as_unknown() -> None:
    house = House(limits=CacheLimits(partitions=2))
    one, _ = house.world.source.topics["a"]
    first = house.fetch(asking(0, 0, {(one, 0): 0, (one, 1): 0}))
    assert first is not None and first.session_id
    grown = house.fetch(asking(first.session_id, 1, {(one, 2): 0}))
    assert grown is not None and grown.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert not len(house.sessions.cache)


def test_each_eviction_is_counted_once() -> None:
    house = House(limits=CacheLimits(slots=1))
    one, _ = house.world.source.topics["a"]
    for count in (1, 2):
        house.now_ms += 1_000_000
        house.fetch(asking(0, 0, {(one, 0): 0}))
        assert house.sessions.cache.evictions == count - 1


def test_fetches_without_a_session_park_up_to_the_limit_of_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraftd.fetch.parked_fetches.MAX_PARKED_SLOTS", 2)
    house = House()
    one, _ = house.world.source.topics["a"]
    for number in range(2):
        assert house.fetch(asking(0, -1, {(one, 0): 0}, max_wait_ms=500), f"parked {number}") is None
    refused = house.fetch(asking(0, -1, {(one, 0): 0}, max_wait_ms=500), "one too many")
    assert refused is not None and not refused.error_code
    assert house.parked is not None and len(house.parked.expire(500)) == 2
    assert house.fetch(asking(0, -1, {(one, 0): 0}, max_wait_ms=500), "again") is None


def test_parked_fetches_of_evicted_sessions_are_answered() -> None:
    house = House(limits=CacheLimits(partitions=2))
    one, _ = house.world.source.topics["a"]
    for index in range(2):
        first = house.fetch(asking(0, 0, {(one, index): 0}))
        assert first is not None and first.session_id
        assert house.fetch(asking(first.session_id, 1, {}, max_wait_ms=5_000_000), f"of {index}") is None
    house.now_ms += 1_000_000
    larger = house.fetch(asking(0, 0, {(one, 0): 0, (one, 1): 0}))
    assert larger is not None and larger.session_id
    assert sorted(str(completed.fetch_id) for completed in house.completed) == ["of 0", "of 1"]
    assert house.sessions.cache.evictions == 2


def test_a_fetch_of_a_lost_connection_is_dropped_and_frees_its_slots(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kraftd.fetch.parked_fetches.MAX_PARKED_SLOTS", 1)
    house = House()
    one, _ = house.world.source.topics["a"]
    assert house.parked is not None
    assert house.fetch(asking(0, -1, {(one, 0): 0}, max_wait_ms=500), "gone") is None
    house.parked.abandon("gone", 0)
    house.parked.abandon("never parked", 0)
    assert not len(house.parked) and not len(house.sessions.watchers)
    assert house.fetch(asking(0, -1, {(one, 0): 0}, max_wait_ms=500), "next") is None
    assert [completed.fetch_id for completed in house.parked.expire(500)] == ["next"]
