"""Elections: granting and requesting votes and pre-votes (KIP-595, KIP-996), and finding the elected leader.

Vote (52), v0-2.  Errors: INCONSISTENT_CLUSTER_ID and INVALID_REQUEST (another topic partition) for the whole
request; FENCED_LEADER_EPOCH (an older epoch), INVALID_REQUEST (impossible ids, epochs or offsets) and
INVALID_VOTER_KEY (meant for another replica) for the partition.
"""

from __future__ import annotations

from kraftd.ground.destination import Destination
from kraftd.messages.vote_request import PartitionData, TopicData, VoteRequest
from kraftd.messages.vote_response import VoteResponse
from kraftd.raft import answers, checks, new_voter
from kraftd.raft.becoming import (
    become_candidate,
    become_prospective,
    become_unattached,
    lose_pre_vote,
    partition_answered,
)
from kraftd.raft.effects import HighWatermarkMoved
from kraftd.raft.events import RequestReceived
from kraftd.raft.follower import fetch_from_any_server
from kraftd.raft.leader import become_leader, note_older_epoch
from kraftd.raft.quorum.majority import Votes
from kraftd.raft.quorum.voters import replica_key
from kraftd.raft.replica import STAGGER_MS, ConsensusBroken, Replica
from kraftd.raft.roles import Candidate, Follower, Prospective, Resigned, Unattached
from kraftd.raft.transitions import Cause
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC, ZERO_UUID, ReplicaKey
from kraftd.wire.error_code import ErrorCode

# --- requests of other replicas
# ---------------------------------------------------------------------------------------


def on_vote_request(replica: Replica, request: RequestReceived, message: VoteRequest) -> None:
    error = checks.cluster_and_topic(replica, message.cluster_id, message.topics)
    if error:
        answers.respond(replica, request, VoteResponse(error_code=error))
        return
    partition = message.topics[0].partitions[0]
    new_voter.note_log_of_candidate(replica, partition)
    error, granted = _judge(replica, message.voter_id, partition)
    if error is ErrorCode.FENCED_LEADER_EPOCH:
        candidate = replica_key(partition.replica_id, partition.replica_directory_id)
        note_older_epoch(replica, request.request_id, candidate, partition.replica_epoch)
    answer = answers.vote(replica, request, error, granted)
    if replica.new_voter is not None and not replica.epoch and not error:
        # Refused in the epoch that it asks for, which is not adopted: this voter still says that it is new.
        answer.topics[0].partitions[0].leader_epoch = partition.replica_epoch
    answers.respond(replica, request, answer)


def _judge(replica: Replica, voter_id: int, vote: PartitionData) -> tuple[ErrorCode, bool]:
    """The error of a request that cannot be granted, and whether this replica votes for that candidate."""
    last_epoch = vote.last_offset_epoch
    impossible = last_epoch > vote.replica_epoch if vote.pre_vote else last_epoch >= vote.replica_epoch
    if vote.last_offset < 0 or last_epoch < 0 or impossible:
        return ErrorCode.INVALID_REQUEST, False
    error = checks.voter_only(replica, vote.replica_id, vote.replica_epoch)
    if error:
        return error, False
    is_meant = checks.is_meant_for(replica, voter_id, vote.voter_directory_id)
    if replica.new_voter is not None and is_meant:
        new_voter.on_vote_request(replica, replica.new_voter, vote)
        return ErrorCode.NONE, False
    if vote.replica_epoch > replica.epoch:
        become_unattached(replica, vote.replica_epoch)
    if not is_meant:
        return ErrorCode.INVALID_VOTER_KEY, False
    candidate = replica_key(vote.replica_id, vote.replica_directory_id)
    up_to_date = (last_epoch, vote.last_offset) >= (replica.log.last_epoch, replica.log.end_offset)
    if vote.pre_vote:
        if isinstance(replica.role, Prospective) and not up_to_date:
            replica.role.votes.forget_refusal(candidate)  # it has lost the leader too, so it may grant now
        return ErrorCode.NONE, up_to_date and grants_pre_vote(replica)
    granted = grants_vote(replica, candidate, up_to_date)
    if granted and replica.voted is None:
        _vote_for(replica, candidate)
    return ErrorCode.NONE, granted


def grants_pre_vote(replica: Replica) -> bool:
    """Return whether this replica grants a pre-vote: not while it leads, or gets messages from a leader."""
    return checks.knows_no_live_leader(replica)


def grants_vote(replica: Replica, candidate: ReplicaKey, up_to_date: bool) -> bool:
    """Return whether this replica votes for a candidate of its epoch (S3: never for two)."""
    if not isinstance(replica.role, Unattached | Prospective):
        return False
    if replica.voted is not None:
        voted = replica.voted
        return voted.id == candidate.id and voted.directory_id in (None, candidate.directory_id)
    return replica.leader_id is None and up_to_date


def _vote_for(replica: Replica, candidate: ReplicaKey) -> None:
    """Make the vote durable. The candidate may win as well as this replica, so restart the own timeout."""
    role = replica.role
    if isinstance(role, Prospective):
        fresh: Prospective | Unattached = Prospective(
            Votes((voter.key for voter in replica.voters), replica.config.node_id),
            replica.now_ms + replica.random_election_timeout_ms(),
        )
    else:
        fresh = Unattached(replica.election_deadline_ms())
    replica.become(Cause.VOTE_GRANTED, fresh, voted=candidate)  # a vote is granted while no leader is known


# --- this replica requests votes -----------------------------------------------------------------------


def request_votes(replica: Replica, role: Prospective | Candidate) -> None:
    """Ask every voter that has not answered, while the round can still be won."""
    if not role.votes.lost:
        ask_outstanding(replica, role)


def ask_outstanding(replica: Replica, role: Prospective | Candidate) -> None:
    """Send a request to every voter that has not answered in this round."""
    for key in role.votes.outstanding:
        if replica.connections.has_timed_out(key.id, replica.now_ms):
            replica.unreached.add(key.id)
        if replica.connections.is_ready(key.id, replica.now_ms):
            replica.send(replica.voter_destination(key.id), vote_request(replica, key))
    search_voters(replica, role)


def search_voters(replica: Replica, role: Prospective | Candidate) -> None:
    """Ask bootstrap servers for the votes of voters that are not reached where the log has them (KIP-1347).

    A request names the id and the directory id of its voter, so only that voter grants it, wherever it is.
    Each server is asked for one voter after the other, independently of the other servers. A static quorum's
    addresses are configured, so it searches for none.
    """
    lost = [key for key in role.votes.outstanding if key.id in replica.unreached]
    if not lost or replica.history.kraft_version == 0:
        return
    for server in replica.bootstrap_destinations():
        if server.node_id < 0 and replica.connections.is_ready(server.node_id, replica.now_ms):
            tries = replica.searches.get(server.node_id, -server.node_id)
            replica.searches[server.node_id] = tries + 1
            key = lost[tries % len(lost)]
            replica.send(server, vote_request(replica, key))


def vote_request(replica: Replica, voter: ReplicaKey) -> VoteRequest:
    end = replica.log.end
    return VoteRequest(
        replica.config.cluster_id,
        voter.id,
        [
            TopicData(
                METADATA_TOPIC,
                [
                    PartitionData(
                        METADATA_PARTITION,
                        replica.epoch,
                        replica.config.node_id,
                        replica.config.directory_id,
                        voter.directory_id or ZERO_UUID,
                        end.epoch,
                        end.offset,
                        isinstance(replica.role, Prospective),
                    )
                ],
            )
        ],
    )


def on_vote_response(replica: Replica, source: Destination, response: VoteResponse) -> bool:
    """Count a vote. Returns whether the answer is valid; if not, that node gets no request for a backoff."""
    if response.error_code == ErrorCode.UNSUPPORTED_VERSION and isinstance(replica.role, Prospective):
        on_pre_vote_unsupported(replica, source.node_id)
        return True
    if replica.new_voter is not None:
        return new_voter.on_vote_response(replica, replica.new_voter, source, response)
    partition = partition_answered(replica, response)
    if isinstance(partition, bool):
        return partition
    role = replica.role
    if isinstance(role, Prospective | Candidate):
        role.votes.record(source.node_id, partition.vote_granted)
        if isinstance(role, Candidate):
            if role.votes.won:
                become_leader(replica)
            elif not partition.vote_granted:
                _try_again_soon(replica, role)
        elif role.votes.won:
            become_candidate(replica)
        elif role.votes.lost:
            lose_pre_vote(replica)
    return True


def _try_again_soon(replica: Replica, role: Candidate) -> None:
    """Start another round soon: a voter refused, most likely because it voted for itself. Of two voters that
    start elections at once neither wins.

    Each begins again, with pre-votes, after a wait of its own instead of its election timeout. The wait is
    drawn from a longer span every time.
    """
    if not role.refused:
        role.refused = True
        wait_ms = STAGGER_MS + replica.rng.below(4 * STAGGER_MS << min(replica.split_votes, 5))
        replica.split_votes += 1
        role.deadline_ms = min(role.deadline_ms, replica.now_ms + wait_ms)


def on_pre_vote_unsupported(replica: Replica, voter_id: int) -> None:
    """A voter does not support pre-votes: start the election at once, as before KIP-996."""
    if replica.new_voter is not None:
        new_voter.on_older_voter(replica, replica.new_voter, voter_id)
    elif isinstance(replica.role, Prospective):
        become_candidate(replica)


# --- time ---------------------------------------------------------------------------------------------


def poll_unattached(replica: Replica, role: Unattached) -> int | None:
    """Ask other nodes for the leader; when the election timeout is over, start an election."""
    if replica.new_voter is not None:
        if not replica.shutting_down:
            become_prospective(replica, Cause.ELECTION_TIMEOUT)
        return None
    if replica.may_be_elected:
        if replica.shutting_down:
            return None
        if role.deadline_ms is None:
            role.deadline_ms = replica.election_deadline_ms()
        elif replica.now_ms >= role.deadline_ms:
            become_prospective(replica, Cause.ELECTION_TIMEOUT)
            return None
    fetch_from_any_server(replica)
    return role.deadline_ms if replica.may_be_elected else None


def poll_prospective(replica: Replica, role: Prospective) -> int | None:
    if not replica.shutting_down and replica.now_ms >= role.deadline_ms:
        lose_pre_vote(replica)
        return None
    if replica.new_voter is None:
        request_votes(replica, role)
    elif not replica.shutting_down:
        ask_outstanding(replica, role)
        if not replica.epoch:  # in epoch 0 a fetch gets no records; later it would count as this voter's
            fetch_from_any_server(replica)
    return None if replica.shutting_down else role.deadline_ms


def poll_candidate(replica: Replica, role: Candidate) -> int | None:
    """Request votes; after the timeout, ask for pre-votes again."""
    if not replica.shutting_down and replica.now_ms >= role.deadline_ms:
        become_prospective(replica, Cause.ELECTION_TIMEOUT)
        return None
    request_votes(replica, role)
    return None if replica.shutting_down else role.deadline_ms


# --- the start ----------------------------------------------------------------------------------------


def start(replica: Replica) -> None:
    """Resume the state in which the replica stopped, as far as that is safe.

    A former leader is Resigned in its epoch, for it may have lost records of it that others hold. A former
    candidate keeps its vote for itself. If quorum-state was lost, the log still has the epoch. Records in a
    snapshot were committed.
    """
    snapshot, log_epoch = replica.log.latest_snapshot, replica.log.last_epoch
    new_voter.begin(replica)
    if snapshot is not None and snapshot.offset > 0:
        if snapshot.offset > replica.log.end_offset or snapshot.epoch > log_epoch:
            raise ConsensusBroken(f"{replica!r} has snapshot {snapshot}, later than the end of its log")
        replica.high_watermark = snapshot.offset
        replica.emit(HighWatermarkMoved(snapshot.offset))
    if replica.epoch < log_epoch:
        replica.epoch, replica.leader_id, replica.voted = log_epoch, None, None
        replica.role = Unattached(replica.election_deadline_ms())
    elif replica.leader_id == replica.config.node_id:
        others = set(replica.voters.ids) - {replica.config.node_id}
        replica.leader_listeners = replica.config.listeners
        replica.role = Resigned(replica.now_ms + replica.random_election_timeout_ms(), others, [])
    elif replica.new_voter is not None and not replica.epoch:
        replica.role = Unattached(replica.now_ms)
    elif replica.may_be_elected and replica.leader_id is None and _voted_for_itself(replica):
        votes = Votes((voter.key for voter in replica.voters), replica.config.node_id)
        replica.role = Candidate(votes, replica.now_ms + replica.random_election_timeout_ms())
    elif replica.leader_id is not None and replica.voters.listeners(replica.leader_id):
        replica.leader_listeners = replica.voters.listeners(replica.leader_id)
        replica.role = replica.new_follower()
    else:
        replica.role = Unattached(replica.election_deadline_ms())
    if replica.is_only_voter and isinstance(replica.role, Unattached | Follower | Resigned):
        become_prospective(replica, Cause.STARTED)
        return
    replica.persist_election()
    if isinstance(replica.role, Candidate) and replica.role.votes.won:
        become_leader(replica)


def _voted_for_itself(replica: Replica) -> bool:
    voted = replica.voted
    return (
        voted is not None
        and voted.id == replica.config.node_id
        and voted.directory_id in (None, replica.config.directory_id)
    )
