"""A voter whose directory is new: no `quorum-state`, no record.

Its volume may have been lost, and with it votes and acknowledged records. So until it knows better, it grants
no vote and starts no election. Pre-vote requests show it the epochs of the other voters:

- All others are in epoch 0, so no voter has a log: this is the first election.
- A leader answers that was seen without a log: it was elected since this voter started.
- Another leader answers: the quorum lives. This voter follows it, and votes once it has what is committed.

Apache Kafka 4.3 has no such rule: there, two voters that lost their volumes elect each other.
"""

from __future__ import annotations

from kraftd.ground.destination import Destination
from kraftd.messages.vote_request import PartitionData
from kraftd.messages.vote_response import VoteResponse
from kraftd.raft.becoming import learn
from kraftd.raft.checks import knows_no_live_leader, only_partition, reported_leader
from kraftd.raft.quorum.voters import Listeners, replica_key
from kraftd.raft.replica import Replica
from kraftd.raft.roles import Follower, NewVoter, Prospective, Unattached
from kraftd.raft.transitions import Cause
from kraftd.wire.error_code import ErrorCode


def begin(replica: Replica) -> None:
    """Note, at the start, whether this replica is such a voter."""
    config = replica.config
    others = set(replica.voters.ids) - {config.node_id}
    if replica.starts_new and replica.is_voter and others:
        replica.new_voter = NewVoter(others, config.first_election_without, rejoins=config.rejoins)


def note_log_of_candidate(replica: Replica, vote: PartitionData) -> None:
    """Note whether a voter that asks for a pre-vote has a log. Without one it may be in a later epoch than 0,
    that of a leader which is lost since.
    """
    candidate = replica_key(vote.replica_id, vote.replica_directory_id)
    if vote.pre_vote and replica.voters.has_voter(candidate) and knows_no_live_leader(replica):
        has_log = vote.last_offset > 0 or vote.last_offset_epoch > 0
        (replica.without_log.discard if has_log else replica.without_log.add)(candidate.id)


def on_vote_request(replica: Replica, new: NewVoter, vote: PartitionData) -> None:
    """Learn from a pre-vote request of epoch 0 that its sender has no log. The request is refused."""
    candidate = replica_key(vote.replica_id, vote.replica_directory_id)
    has_log = vote.replica_epoch or vote.last_offset or vote.last_offset_epoch
    if vote.pre_vote and not has_log and replica.voters.has_voter(candidate):
        new.note(candidate.id, 0)
        _found_if_all_are_empty(replica, new)


def on_vote_response(replica: Replica, new: NewVoter, source: Destination, response: VoteResponse) -> bool:
    """Note the epoch of a voter, and follow the leader that it names. Returns whether the answer is valid.

    An epoch without a leader is not adopted: others may still ask whether this voter has a log.
    """
    partition = only_partition(response.topics)
    if response.error_code or partition is None:
        return False
    if partition.error_code not in (ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH):
        return False
    new.note(source.node_id, partition.leader_epoch)
    if isinstance(replica.role, Prospective):
        replica.role.votes.record(source.node_id, False)
    leader = reported_leader(replica, partition.leader_id, response.node_endpoints)
    if not on_leader_named(replica, partition.leader_epoch, *leader):
        _found_if_all_are_empty(replica, new)
    return True


def on_leader_named(replica: Replica, epoch: int, leader_id: int | None, listeners: Listeners) -> bool:
    """Follow the leader in an answer, if it names one. Returns whether it does."""
    known = epoch >= max(replica.epoch, 1) and leader_id is not None and bool(listeners)
    return known and learn(replica, epoch, leader_id, listeners)


def on_older_voter(replica: Replica, new: NewVoter, voter_id: int) -> None:
    """Handle a voter that knows no pre-votes (before KIP-996): as with Apache Kafka, it is not asked."""
    new.note(voter_id, 0)
    _found_if_all_are_empty(replica, new)


def _found_if_all_are_empty(replica: Replica, new: NewVoter) -> None:
    """Become an ordinary voter in the first election; those of lower ids ask for votes first."""
    if not new.may_found:
        return
    _become_ordinary(replica)
    deadline_ms = replica.now_ms + replica.stagger_ms()
    if isinstance(replica.role, Prospective):
        replica.become(Cause.PRE_VOTES_LOST, Unattached(deadline_ms))
    elif isinstance(replica.role, Unattached):
        replica.role.deadline_ms = deadline_ms


def _become_ordinary(replica: Replica) -> None:
    replica.new_voter = None
    replica.persist_election()


# --- following ---------------------------------------------------------------------------------------


def may_fetch(replica: Replica, new: NewVoter) -> bool:
    """Return whether a follower may fetch as a voter. One that is to join under a fresh directory id must not
    count for the leader of a living quorum.
    """
    return replica.leader_id in new.empty or not new.rejoins


def on_leader_answer(replica: Replica, new: NewVoter) -> None:
    """Become an ordinary voter if the leader, which has answered itself, was seen without a log.

    Others may name a leader that has lost its volume since.
    """
    if replica.leader_id in new.empty:
        _become_ordinary(replica)


def on_high_watermark(replica: Replica, role: Follower) -> None:
    """Become an ordinary voter once this replica has everything that the leader knows is committed."""
    if 0 < role.leader_high_watermark <= replica.log.synced_end_offset:
        _become_ordinary(replica)
