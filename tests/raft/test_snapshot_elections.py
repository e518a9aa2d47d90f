"""A voter that has only a snapshot votes and leads with the snapshot's end as its log end (KIP-630)."""

from __future__ import annotations

import pytest

from kraftd.messages.quorum_state_data import QuorumStateData
from kraftd.raft.effects import AppendRecords, RespondRecords
from kraftd.types import OffsetAndEpoch
from kraftd.wire.batch import parse_header
from tests.raft.lone import EPOCH, LOG_END, Lone, fetch, partition_of, vote

ELECTION = QuorumStateData(leader_id=-1, leader_epoch=EPOCH - 1)


def only_a_snapshot() -> Lone:
    """A voter with a snapshot of the first ten records and an empty log after it."""
    return Lone(ELECTION, log_start=LOG_END.offset, log_end=LOG_END, snapshots={LOG_END: 100})


@pytest.mark.parametrize(
    ("last", "granted"),
    [((10, 4), True), ((11, 4), True), ((1, 5), True), ((9, 4), False), ((99, 3), False), ((0, 0), False)],
)
@pytest.mark.parametrize("pre_vote", [False, True])
def test_it_votes_for_a_log_at_least_as_long_as_the_snapshot(
    last: tuple[int, int], granted: bool, pre_vote: bool
) -> None:
    answer = only_a_snapshot().ask(vote(2, EPOCH + 1, last=last, pre_vote=pre_vote))
    assert partition_of(answer).vote_granted is granted


def test_it_starts_an_election_with_the_end_of_the_snapshot() -> None:
    lone = only_a_snapshot()
    for send in (*lone.become_prospective(), *lone.become_candidate()):
        partition = send.message.topics[0].partitions[0]  # type: ignore[attr-defined]
        assert (partition.last_offset, partition.last_offset_epoch) == LOG_END


def test_its_leadership_starts_at_the_end_of_the_snapshot() -> None:
    lone = only_a_snapshot().lead()
    [appended] = [one for one in lone.effects if isinstance(one, AppendRecords)]
    assert parse_header(memoryview(appended.data)).base_offset == LOG_END.offset
    lone.sync()
    epoch = lone.core.epoch
    lone.ask(fetch(2, epoch, *LOG_END))
    assert isinstance(lone.effects[-1], RespondRecords), (
        "a replica with the snapshot gets the records behind it"
    )
    for offset, of_epoch in ((0, 0), (9, 4), (10, 3)):
        partition = partition_of(lone.ask(fetch(3, epoch, offset, of_epoch)))
        assert OffsetAndEpoch(partition.snapshot_id.end_offset, partition.snapshot_id.epoch) == LOG_END
    lone.ask(fetch(2, epoch, lone.core.log_end_offset, epoch))
    assert lone.core.high_watermark == lone.core.log_end_offset
