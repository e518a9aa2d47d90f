"""How a replica enters each of its states, and learns epochs and leaders from other replicas."""

from __future__ import annotations

from kraftd.raft.checks import LARGEST_EPOCH, A_co, ElectionResponse, only_partition, reported_leader
from kraftd.raft.leader import become_leader, leave_leadership
from kraftd.raft.quorum.majority import Votes
from kraftd.raft.quorum.voters import Listeners
from kraftd.raft.replica import Replica
from kraftd.raft.roles import Candidate, Follower, Prospective, Resigned, Unattached
from kraftd.raft.transitions import Cause
from kraftd.wire.error_code import ErrorCode


def become_unattached(replica: Replica, epoch: int) -> None:
    """Enter a higher epoch of unknown leader: forget the vote and keep the rest of the election timeout."""
    was = replica.role
    deadline_ms = replica.election_deadline_ms()
    if replica.may_be_elected and (
        isinstance(was, Candidate | Resigned | Unattached)
        or (isinstance(was, Prospective) and not was.votes.lost)
    ):
        deadline_ms = was.deadline_ms if was.deadline_ms is not None else deadline_ms
    with leave_leadership(replica):
        replica.become(Cause.HIGHER_EPOCH, Unattached(deadline_ms), epoch=epoch)


def become_follower(replica: Replica, epoch: int, leader_id: int, listeners: Listeners) -> None:
    """Follow the leader of this epoch or a higher one.  Within an epoch the vote is kept."""
    same_epoch = epoch == replica.epoch
    was = replica.role
    role = replica.new_follower()
    if same_epoch and isinstance(was, Follower):
        role = was  # only its endpoints are new
    with leave_leadership(replica):
        replica.become(
            Cause.LEADER_FOUND if same_epoch else Cause.LEADER_OF_HIGHER_EPOCH,
            role,
            epoch=epoch,
            leader_id=leader_id,
            leader_listeners=listeners,
            voted=replica.voted if same_epoch else None,
        )
    replica.measured.leader_found(replica.now_ms)


def become_prospective(replica: Replica, cause: Cause) -> None:
    """Ask for pre-votes: they show whether it can win, before it disturbs the others (KIP-996)."""
    votes = Votes((voter.key for voter in replica.voters), replica.config.node_id)
    replica.become(
        cause,
        Prospective(votes, replica.now_ms + replica.random_election_timeout_ms()),
        leader_id=replica.leader_id,
        leader_listeners=replica.leader_listeners,
        voted=replica.voted,
    )
    if votes.won:
        become_candidate(replica)
    else:
        replica.measured.election_began(replica.now_ms)


def become_candidate(replica: Replica) -> None:
    """Start an election in the next epoch. The vote for itself is durable before it asks for others (S3)."""
    votes = Votes((voter.key for voter in replica.voters), replica.config.node_id)
    replica.become(
        Cause.PRE_VOTES_WON,
        Candidate(votes, replica.now_ms + replica.random_election_timeout_ms()),
        epoch=replica.epoch + 1,
        voted=replica.key,
    )
    if votes.won:
        become_leader(replica)
    else:
        replica.measured.election_began(replica.now_ms)


def lose_pre_vote(replica: Replica) -> None:
    """Follow the leader again if one is known and reachable, else wait for the rest of this round's time.

    A round that has timed out has no time left, so the next one follows at once.
    """
    role = replica.role
    if replica.leader_id is not None and replica.leader_listeners:
        replica.become(
            Cause.PRE_VOTES_LOST_TO_LEADER,
            replica.new_follower(),
            leader_id=replica.leader_id,
            leader_listeners=replica.leader_listeners,
            voted=replica.voted,
        )
        return
    deadline_ms = replica.election_deadline_ms()
    if isinstance(role, Prospective) and not role.votes.lost and replica.may_be_elected:
        deadline_ms = role.deadline_ms
    replica.become(
        Cause.PRE_VOTES_LOST, Unattached(deadline_ms), leader_id=replica.leader_id, voted=replica.voted
    )


def learn(replica: Replica, epoch: int, leader_id: int | None, listeners: Listeners) -> bool:
    """Learn an epoch, and perhaps its leader, from a request or response.

    Returns false, and changes nothing, if it contradicts what is known: a second leader of one epoch, or this
    replica named as a leader while it does not lead.
    """
    if epoch > LARGEST_EPOCH:
        return False
    if leader_id == replica.config.node_id:
        return epoch < replica.epoch or (epoch == replica.epoch and replica.leader_id == leader_id)
    if epoch > replica.epoch:
        if leader_id is None or not listeners:
            become_unattached(replica, epoch)
        else:
            become_follower(replica, epoch, leader_id, listeners)
    elif epoch == replica.epoch and leader_id is not None:
        if replica.leader_id not in (None, leader_id):
            return False
        if listeners and (replica.leader_id is None or len(listeners) > len(replica.leader_listeners)):
            become_follower(replica, epoch, leader_id, listeners)
    return True


def move_leader(replica: Replica, listeners: Listeners) -> None:
    """Store new endpoints of the known leader; listeners that the message does not name keep theirs."""
    if replica.leader_id not in (None, replica.config.node_id):
        by_name = {one.listener: one for one in (*replica.leader_listeners, *listeners)}
        replica.leader_listeners = tuple(by_name.values())


def on_common_response(
    replica: Replica, error: int, epoch: int, leader_id: int | None, listeners: Listeners
) -> bool | None:
    """Learn what every response carries: an epoch and a leader.

    Returns None if the caller should go on with the response, else whether its sender may be asked again at
    once.
    """
    if epoch < replica.epoch or error == ErrorCode.UNKNOWN_LEADER_EPOCH:
        return True
    if epoch > replica.epoch or error in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER):
        return learn(replica, epoch, leader_id, listeners)
    if leader_id is not None and (replica.leader_id is None or isinstance(replica.role, Unattached)):
        if not learn(replica, epoch, leader_id, listeners):
            return False
        return None if error == ErrorCode.NONE and isinstance(replica.role, Follower) else True
    if error in (ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_VOTER_KEY):
        return False
    return None


def partition_answered(replica: Replica, response: ElectionResponse[A_co]) -> A_co | bool:
    """The response's partition if the caller should go on with it; else whether its sender may be asked again
    at once.
    """
    if response.error_code:
        return False
    partition = only_partition(response.topics)
    if partition is None:
        return False
    reported = reported_leader(replica, partition.leader_id, response.node_endpoints)
    handled = on_common_response(replica, partition.error_code, partition.leader_epoch, *reported)
    if handled is not None:
        return handled
    return False if partition.error_code else partition
