"""How far the log start of a replica may move, and the snapshot bytes of one answer (KIP-630)."""

from __future__ import annotations

import pytest

from kraftd.messages.fetch_snapshot_request import (
    FetchSnapshotRequest,
    PartitionSnapshot,
    SnapshotId,
    TopicSnapshot,
)
from kraftd.raft.effects import RespondSnapshot
from kraftd.raft.quorum.progress import LIVE_REPLICA_MS
from kraftd.types import METADATA_TOPIC, OffsetAndEpoch
from tests.raft.lone import EPOCH, Lone, fetch

LEADS = EPOCH + 1
END = 11
FETCH_TIMEOUT_MS = 2000


def leader(**options: int) -> Lone:
    """A leader of epoch 6; replica 2 has fetched its log, so all of it is committed."""
    lone = Lone(**options).lead()
    lone.sync()
    keep_fetching(lone)
    return lone


def keep_fetching(lone: Lone, offset: int = END) -> None:
    lone.ask(fetch(2, LEADS, offset, LEADS if offset == END else 4))


def settled(lone: Lone) -> Lone:
    """Wait for the first fetch timeout, while replica 2 fetches all the time."""
    for _ in range(4):
        lone.wait(FETCH_TIMEOUT_MS // 4)
        keep_fetching(lone)
    return lone


def test_a_new_leader_of_several_waits_a_fetch_timeout_for_its_replicas__kip630() -> None:
    lone = leader()
    assert lone.core.live_replicas_end == -1
    lone.wait(FETCH_TIMEOUT_MS // 2)
    keep_fetching(lone)
    assert lone.core.live_replicas_end == -1
    lone.wait(FETCH_TIMEOUT_MS // 2)
    keep_fetching(lone)
    assert lone.core.live_replicas_end == END


def test_the_slowest_live_replica_counts_observers_included__kip630() -> None:
    lone = settled(leader())
    lone.ask(fetch(3, LEADS, 7, 4))
    assert lone.core.live_replicas_end == 7
    lone.ask(fetch(9, LEADS, 5, 4))
    assert lone.core.live_replicas_end == 5
    lone.ask(fetch(9, LEADS, END, LEADS))
    assert lone.core.live_replicas_end == 7


def test_a_replica_that_stopped_fetching_does_not_count__kip630() -> None:
    lone = settled(leader())
    lone.ask(fetch(9, LEADS, 5, 4))
    asked_ms = lone.now_ms
    while lone.now_ms + 500 < asked_ms + LIVE_REPLICA_MS:
        lone.wait(500)
        keep_fetching(lone)
    assert lone.core.live_replicas_end == 5
    lone.wait(asked_ms + LIVE_REPLICA_MS - lone.now_ms)
    keep_fetching(lone)
    assert lone.core.live_replicas_end == END


def test_a_lone_voter_without_observers_does_not_wait__kip630() -> None:
    lone = Lone(voters=(1,))
    lone.sync()
    assert lone.core.is_leader
    assert lone.core.live_replicas_end is None


def test_a_follower_waits_for_no_replica_but_its_leader__kip630() -> None:
    lone = Lone().follow()
    assert lone.core.live_replicas_end is None
    assert lone.core.log_start_limit == -1


@pytest.mark.parametrize(
    ("max_bytes", "configured", "sent"),
    [(40, 100, 40), (40, 30, 30), (500, 400, 100), (40, 0, 1), (0, 0, 0)],
)
def test_a_piece_of_a_snapshot_is_at_most_what_the_leader_allows__kip630(
    max_bytes: int, configured: int, sent: int
) -> None:
    at = OffsetAndEpoch(5, 4)
    lone = Lone(snapshots={at: 100}, fetch_response_max_bytes=configured).lead()
    partition = PartitionSnapshot(0, LEADS, SnapshotId(*at), 0)
    lone.ask(FetchSnapshotRequest("cluster", 9, max_bytes, [TopicSnapshot(METADATA_TOPIC, [partition])]))
    (piece,) = (one for one in lone.effects if isinstance(one, RespondSnapshot))
    assert piece.max_bytes == sent
