"""Hostile Fetch requests on a client listener: a node keeps no more than its bounds allow."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from kraftd.fetch.session_cache import CacheLimits, FetchSession
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftd.wire.api import ApiKey
from tests.metadata_topic_node.clients import ClientHarness

LIMITS = CacheLimits(slots=4, partitions=40, size_bytes=30_000, eviction_ms=3)
PARKED_SLOTS = 30
CONNECTIONS = range(1000, 1006)
VERSIONS = (4, 7, 11, 12, 13, 17, 18)
INTEGERS = (0, 0, 1, 1, 2, -1, 500, 1 << 20, 2**31 - 1, -(2**31))
TOPICS = [
    (METADATA_TOPIC, METADATA_TOPIC_ID),
    ("t", bytes(15) + b"t"),
    ("a" * 200, bytes(15) + b"a"),
    ("", bytes(16)),
]


def hostile_fetch(rng: Random, version: int, sessions: list[FetchSession], end_offset: int) -> FetchRequest:
    """An invalid fetch; half of them wait long at the end of the log."""
    is_sane = rng.random() < 0.5

    def place() -> tuple[str, bytes, int]:
        name, one = TOPICS[0] if is_sane else rng.choice(TOPICS)
        index = 0 if is_sane else rng.choice((0, 0, 1, -1, rng.randrange(50)))
        return ("", one, index) if version >= 13 else (name, bytes(16), index)

    def partition(index: int) -> FetchPartition:
        if is_sane:
            return FetchPartition(index, fetch_offset=end_offset, partition_max_bytes=1 << 20)
        epoch, offset, last_epoch, max_bytes = (rng.choice(INTEGERS) for _ in range(4))
        last_epoch = last_epoch if version >= 12 else -1
        return FetchPartition(
            index, epoch if version >= 9 else -1, offset, last_epoch, partition_max_bytes=max_bytes
        )

    places = [place() for _ in range(rng.choice((0, 1, 1, 4, 30)))]
    request = FetchRequest(
        max_wait_ms=2**31 - 1 if is_sane else rng.choice(INTEGERS),
        min_bytes=1 << 20 if is_sane else rng.choice(INTEGERS),
        max_bytes=1 << 20 if is_sane else rng.choice(INTEGERS),
        topics=[FetchTopic(name, one, [partition(index)]) for name, one, index in places],
    )
    if version >= 7:
        request.session_id = rng.choice(INTEGERS)
        request.session_epoch = rng.choice((0, 0, 0, *INTEGERS))
        if sessions and rng.random() < 0.5:
            session = rng.choice(sessions)
            request.session_id = session.id
            request.session_epoch = session.epoch if rng.random() < 0.8 else rng.choice(INTEGERS)
        forgotten = [place() for _ in range(rng.choice((0, 0, 1, 20)))]
        request.forgotten_topics_data = [
            ForgottenTopic(name, one, (index,)) for name, one, index in forgotten
        ]
    return request


def test_hostile_fetches_leave_no_more_behind_than_the_bounds_allow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kraftd.fetch.parked_fetches.MAX_PARKED_SLOTS", PARKED_SLOTS)
    harness = ClientHarness(tmp_path)
    harness.start()
    harness.unfenced(1)
    harness.create("t", partitions=2)
    node, rng = harness.clients, Random(1)
    cache, fetches = node.fetches.sessions.cache, node.fetches
    cache.limits = LIMITS
    most_sessions = most_parked = 0
    for number in range(2_000):
        version = rng.choice(VERSIONS)
        request = hostile_fetch(rng, version, list(cache), harness.view.high_watermark)
        harness.client_send(ApiKey.FETCH, version, request, connection_id=rng.choice(CONNECTIONS))
        harness.client_advance(rng.choice((0, 1, 1, 5)))
        if number % 50 == 0:
            harness.create(f"created-{number}")
        if number % 100 == 0:
            harness.client_closed(rng.choice(CONNECTIONS))
        slots = sum(len(session.subscription) for session in cache)
        assert len(cache) <= LIMITS.slots and slots == cache.partitions <= LIMITS.partitions
        assert (
            sum(session.subscription.size_bytes for session in cache) == cache.size_bytes <= LIMITS.size_bytes
        )
        watched = sum(
            len(fetches.sessions.watchers.under(key)) for key in list(fetches.sessions.watchers._first)
        )
        assert watched <= LIMITS.partitions + PARKED_SLOTS
        assert (
            len(fetches) == sum(map(len, node.client_fetches.calls.values())) <= LIMITS.slots + PARKED_SLOTS
        )
        assert not node.source._noted
        most_sessions, most_parked = max(most_sessions, len(cache)), max(most_parked, len(fetches))
        harness.answers.clear()
    assert most_sessions == LIMITS.slots and most_parked > 10 and cache.evictions
    assert not node.boundary.failures
