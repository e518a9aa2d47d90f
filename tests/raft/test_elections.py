"""Votes and pre-votes, granted and requested, in every state (KIP-595, KIP-996)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import structs

from kraftd.ground.effect import Effect
from kraftd.messages.quorum_state_data import QuorumStateData
from kraftd.raft.effects import LeadershipChanged, PersistElection
from kraftd.raft.events import ResignRequested, SendFailed, ShutdownRequested
from kraftd.raft.replica import STAGGER_MS
from kraftd.raft.transitions import State
from kraftd.types import OffsetAndEpoch, ReplicaKey
from kraftd.wire.error_code import ErrorCode
from tests.raft.lone import (
    EPOCH,
    LOG_END,
    Lone,
    begin,
    end,
    fetch_answer,
    partition_of,
    vote,
    vote_answer,
)
from tests.raft.world import directory_id

OLD_LOG = (9, 4)


def voted_for(candidate_id: int, *, generation: int = 0) -> QuorumStateData:
    directory = directory_id(candidate_id, generation)
    return QuorumStateData(
        leader_epoch=EPOCH, leader_id=-1, voted_id=candidate_id, voted_directory_id=directory
    )


def unattached() -> Lone:
    return Lone()


def voted() -> Lone:
    lone = Lone()
    assert partition_of(lone.ask(vote(2))).vote_granted
    return lone


def unattached_with_leader() -> Lone:
    """A replica that knows the leader's id, but not its address."""
    return Lone(QuorumStateData(leader_id=7, leader_epoch=EPOCH))


def prospective() -> Lone:
    lone = Lone()
    lone.become_prospective()
    return lone


def prospective_voted() -> Lone:
    lone = prospective()
    assert partition_of(lone.ask(vote(2))).vote_granted
    assert lone.core.state is State.PROSPECTIVE
    return lone


def candidate() -> Lone:
    lone = Lone(QuorumStateData(leader_id=-1, leader_epoch=EPOCH - 1))
    lone.become_candidate()
    return lone


def follower() -> Lone:
    """A follower that has received no message from its leader yet."""
    return Lone().follow(3)


def follower_that_has_fetched() -> Lone:
    lone = Lone().follow(3)
    lone.answer(lone.sent("Fetch")[0], fetch_answer(EPOCH, leader=3, high_watermark=10))
    return lone


def follower_that_voted() -> Lone:
    return voted().follow(3)


def leader() -> Lone:
    return Lone(QuorumStateData(leader_id=-1, leader_epoch=EPOCH - 1)).lead()


def resigned() -> Lone:
    lone = leader()
    lone.step(ResignRequested(EPOCH))
    assert lone.core.state is State.RESIGNED
    return lone


def observer() -> Lone:
    return Lone(voters=(2, 3, 4))


def observer_that_follows() -> Lone:
    return observer().follow(3)


@pytest.mark.parametrize(
    ("state", "granted_to_2", "granted_to_3"),
    [
        (unattached, True, True),
        (voted, True, False),
        (unattached_with_leader, False, False),
        (prospective, True, True),
        (prospective_voted, True, False),
        (candidate, False, False),
        (follower, False, False),
        (follower_that_voted, False, False),
        (follower_that_has_fetched, False, False),
        (leader, False, False),
        (resigned, False, False),
        (observer, True, True),
        (observer_that_follows, False, False),
    ],
)
def test_vote_of_the_same_epoch_is_granted_if_no_leader_and_no_vote_is_known(
    state: Callable[[], Lone], granted_to_2: bool, granted_to_3: bool
) -> None:
    last = OffsetAndEpoch(11, 4)
    for candidate_id, granted in ((2, granted_to_2), (3, granted_to_3)):
        lone = state()
        before = lone.core.state
        answer = partition_of(lone.ask(vote(candidate_id, lone.core.epoch, last=last)))
        assert (answer.error_code, answer.vote_granted) == (ErrorCode.NONE, granted)
        assert (lone.core.state, lone.core.epoch) == (before, EPOCH)
        assert [one.voted_id for one in lone.persisted] == (
            [candidate_id] if granted and state not in (voted, prospective_voted) else []
        )


@pytest.mark.parametrize(
    ("state", "granted"),
    [
        (unattached, True),
        (voted, True),
        (unattached_with_leader, True),
        (prospective, True),
        (prospective_voted, True),
        (candidate, True),
        (follower, True),
        (follower_that_voted, True),
        (follower_that_has_fetched, False),
        (leader, False),
        (resigned, True),
        (observer, True),
        (observer_that_follows, True),
    ],
)
def test_pre_vote_is_granted_by_a_replica_without_a_live_leader__kip996(
    state: Callable[[], Lone], granted: bool
) -> None:
    lone = state()
    before = lone.core.state
    answer = partition_of(lone.ask(vote(3, lone.core.epoch, last=(99, lone.core.epoch), pre_vote=True)))
    assert (answer.error_code, answer.vote_granted) == (ErrorCode.NONE, granted)
    assert (lone.core.state, lone.core.epoch, lone.persisted) == (before, EPOCH, [])
    answer = partition_of(lone.ask(vote(3, lone.core.epoch, last=OLD_LOG, pre_vote=True)))
    assert answer.vote_granted is False  # its log is behind


@pytest.mark.parametrize("pre_vote", [False, True])
@pytest.mark.parametrize(
    "state",
    [unattached, voted, prospective, candidate, follower_that_has_fetched, leader, resigned, observer],
)
def test_request_of_a_higher_epoch_is_decided_by_the_unattached_replica(
    state: Callable[[], Lone], pre_vote: bool
) -> None:
    for last, granted in (((99, EPOCH), True), (OLD_LOG, False)):
        lone = state()
        answer = partition_of(lone.ask(vote(3, EPOCH + 1, last=last, pre_vote=pre_vote)))
        assert (answer.vote_granted, answer.leader_epoch) == (granted, EPOCH + 1)
        assert (lone.core.state, lone.core.epoch) == (State.UNATTACHED, EPOCH + 1)


@pytest.mark.parametrize("pre_vote", [False, True])
def test_request_of_a_replica_that_does_not_vote_is_decided_like_any_other(pre_vote: bool) -> None:
    """A record that this replica lacks may have made it a voter."""
    for state, granted in ((unattached, True), (leader, True)):
        answer = partition_of(state().ask(vote(9, EPOCH + 1, last=(99, EPOCH), pre_vote=pre_vote)))
        assert answer.vote_granted is granted


@pytest.mark.parametrize("state", [unattached, prospective, candidate, follower, leader, observer])
def test_request_of_an_older_epoch_is_fenced(state: Callable[[], Lone]) -> None:
    for pre_vote in (False, True):
        lone = state()
        answer = partition_of(lone.ask(vote(3, EPOCH - 1, last=(5, 3), pre_vote=pre_vote)))
        assert (answer.error_code, answer.vote_granted) == (ErrorCode.FENCED_LEADER_EPOCH, False)


def test_replica_that_shuts_down_still_votes() -> None:
    lone = unattached()
    lone.step(ShutdownRequested(5_000))
    assert partition_of(lone.ask(vote(2, EPOCH + 1))).vote_granted


# --- elections -----------------------------------------------------------------------------------------


def test_election_goes_from_pre_vote_to_vote_to_leader__kip996() -> None:
    lone = unattached()
    pre_votes = lone.become_prospective()
    assert [one.destination.node_id for one in pre_votes] == [2, 3]
    assert [one.message.topics[0].partitions[0].pre_vote for one in pre_votes] == [True, True]  # type: ignore[attr-defined]
    assert lone.persisted == []  # a pre-vote is not persisted
    lone.answer(pre_votes[0], vote_answer(EPOCH, True))
    assert (lone.core.state, lone.core.epoch) == (State.CANDIDATE, EPOCH + 1)
    assert [(one.leader_epoch, one.voted_id) for one in lone.persisted] == [(EPOCH + 1, 1)]
    lone.answer(lone.sent("Vote")[1], vote_answer(EPOCH + 1, True))
    assert lone.core.state is State.LEADER
    assert lone.receivers("BeginQuorumEpoch") == [2, 3]


def test_vote_request_without_an_answer_is_repeated_after_the_timeout() -> None:
    lone = Lone(request_timeout_ms=200)
    for send in (lone.become_prospective(), lone.become_candidate()):
        assert [one.destination.node_id for one in send] == [2, 3]
        lone.wait(199)
        assert lone.receivers("Vote") == []
        lone.wait(1)
        assert lone.receivers("Vote") == [2, 3]


def test_vote_request_that_could_not_be_sent_is_retried_after_the_backoff() -> None:
    lone = unattached()
    lone.step(SendFailed(lone.become_prospective()[0].send_id))
    assert lone.receivers("Vote") == []
    lone.wait(20)
    assert lone.receivers("Vote") == [2]


def test_pre_vote_that_no_voter_grants_waits_for_the_next_election() -> None:
    lone = unattached()
    for send in lone.become_prospective():
        lone.answer(send, vote_answer(EPOCH, False))
    assert (lone.core.state, lone.core.epoch) == (State.UNATTACHED, EPOCH)
    lone.wait_for(State.PROSPECTIVE)


def test_pre_vote_without_an_answer_restarts_after_the_election_timeout() -> None:
    """The replica has waited for an election timeout already."""
    lone = Lone(request_timeout_ms=60_000)
    lone.become_prospective()
    began_ms, timeout_ms = lone.now_ms, lone.config.election_timeout_ms
    while lone.now_ms - began_ms < 2 * timeout_ms and not lone.wait(1):
        pass
    assert timeout_ms <= lone.now_ms - began_ms < 2 * timeout_ms
    assert (lone.core.state, lone.core.epoch) == (State.PROSPECTIVE, EPOCH)
    assert (lone.receivers("Vote"), lone.receivers("Fetch")) == ([2, 3], [])


def test_lost_pre_vote_returns_to_the_known_leader() -> None:
    lone = follower_that_has_fetched()
    for send in lone.become_prospective():
        lone.answer(send, vote_answer(EPOCH, False))
    assert (lone.core.state, lone.core.leader_id) == (State.FOLLOWER, 3)


def test_lost_pre_vote_waits_if_the_leader_cannot_be_reached() -> None:
    lone = unattached_with_leader()
    for send in lone.become_prospective():
        lone.answer(send, vote_answer(EPOCH, False))
    assert (lone.core.state, lone.core.leader_id) == (State.UNATTACHED, 7)


def test_vote_is_kept_to_the_end_of_its_epoch() -> None:
    """Through lost pre-votes and a leader, and not into the epoch of the next leader (S3)."""
    lone = voted()
    for leader_id, state in ((None, State.UNATTACHED), (3, State.FOLLOWER)):
        if leader_id is not None:
            lone.follow(leader_id)
        for send in lone.become_prospective():
            lone.answer(send, vote_answer(EPOCH, False))
        assert (lone.core.state, lone.core.leader_id) == (state, leader_id)
        assert lone.core._replica.voted == ReplicaKey(2, directory_id(2))
        assert not partition_of(lone.ask(vote(3))).vote_granted
    lone.follow(2, EPOCH + 1)
    assert [one.voted_id for one in lone.persisted] == [-1]


def test_pre_vote_ends_when_an_answer_names_a_leader() -> None:
    lone = prospective()
    lone.answer(lone.sent("Vote")[0], vote_answer(EPOCH, False, leader=3))
    assert (lone.core.state, lone.core.leader_id) == (State.FOLLOWER, 3)
    assert lone.receivers("Fetch") == [3]


def test_prospective_follows_the_leader_that_announces_itself() -> None:
    for state in (prospective, prospective_voted):
        lone = state()
        lone.ask(begin(3))
        assert (lone.core.state, lone.core.leader_id) == (State.FOLLOWER, 3)
        assert [one.voted_id for one in lone.persisted] == [2 if state is prospective_voted else -1]


def test_voter_without_pre_vote_makes_a_prospective_start_an_election__kip996() -> None:
    lone = unattached()
    lone.step(SendFailed(lone.become_prospective()[0].send_id, ErrorCode.UNSUPPORTED_VERSION))
    assert (lone.core.state, lone.core.epoch) == (State.CANDIDATE, EPOCH + 1)
    assert lone.receivers("Vote") == [2, 3]


def test_refused_candidate_retries_after_a_short_random_wait() -> None:
    """If two voters start elections at the same time, neither wins: their next elections come soon."""
    lone = candidate()
    lone.answer(lone.sent("Vote")[0], vote_answer(EPOCH, False))
    assert lone.core.state is State.CANDIDATE  # the other voter may grant its vote
    began_ms = lone.now_ms
    lone.wait_for(State.PROSPECTIVE)
    assert STAGGER_MS <= lone.now_ms - began_ms < 5 * STAGGER_MS
    assert (lone.core.epoch, lone.receivers("Vote")) == (EPOCH, [2, 3])  # once more before the next epoch


def test_wait_after_a_refusal_is_drawn_from_an_increasing_range() -> None:
    lone, longest_ms = candidate(), list[int]()
    lone.core._replica.rng.below = lambda bound: bound - 1  # type: ignore[method-assign]
    for _ in range(9):
        (first, _) = lone.sent("Vote")
        lone.answer(first, vote_answer(lone.core.epoch, False))
        began_ms = lone.now_ms
        lone.wait_for(State.PROSPECTIVE)
        longest_ms.append(lone.now_ms - began_ms)
        for send in lone.sent("Vote"):
            lone.answer(send, vote_answer(lone.core.epoch, True))
            if lone.core.state is State.CANDIDATE:
                break
    assert longest_ms == sorted(longest_ms)
    assert longest_ms[1] == STAGGER_MS + 8 * STAGGER_MS - 1
    assert longest_ms[-1] < 2 * lone.config.election_timeout_ms


def test_candidate_without_an_answer_requests_pre_votes_after_a_timeout() -> None:
    lone = candidate()
    lone.wait_for(State.PROSPECTIVE)
    assert (lone.core.epoch, lone.receivers("Vote")) == (EPOCH, [2, 3])


def test_answer_to_a_vote_is_ignored_once_a_leader_is_followed() -> None:
    for state in (prospective, candidate):
        lone = state()
        votes = lone.sent("Vote")
        lone.ask(begin(3))
        for send in votes:
            assert lone.answer(send, vote_answer(EPOCH, True)) == []
        assert (lone.core.state, lone.core.leader_id) == (State.FOLLOWER, 3)


def test_observer_never_starts_an_election() -> None:
    for state in (observer, observer_that_follows):
        lone = state()
        before = lone.core.state
        lone.wait(20_000)
        assert lone.receivers("Vote") == []
        assert (lone.core.state, lone.core.epoch) == (before, EPOCH)


# --- the leader's end ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("successors", "wait_ms"), [((1, 3), 0), ((3, 1), 500), ((3, 2, 1), 500), ((3,), 1000)]
)
def test_successor_starts_an_election_after_a_wait_set_by_its_rank(
    successors: tuple[int, ...], wait_ms: int
) -> None:
    lone = follower_that_has_fetched()
    answer = partition_of(lone.ask(end(3, EPOCH, successors)))
    assert answer.error_code == ErrorCode.NONE
    if wait_ms:
        lone.wait(wait_ms - 1)
        assert lone.core.state is State.FOLLOWER
        lone.wait(1)
    assert lone.core.state is State.PROSPECTIVE


def test_resigned_leader_is_succeeded_at_once() -> None:
    lone = unattached()
    lone.ask(end(2, EPOCH, (1, 3)))
    assert (lone.core.state, lone.core.leader_id, lone.core.epoch) == (State.PROSPECTIVE, 2, EPOCH)


def test_end_of_an_older_epoch_does_not_disturb_a_candidate() -> None:
    lone = candidate()
    answer = partition_of(lone.ask(end(2, EPOCH - 1)))
    assert (answer.error_code, lone.core.state) == (ErrorCode.FENCED_LEADER_EPOCH, State.CANDIDATE)


# --- starting -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("election", "state"),
    [
        (QuorumStateData(leader_id=-1, leader_epoch=EPOCH), State.UNATTACHED),
        (QuorumStateData(leader_id=2, leader_epoch=EPOCH), State.FOLLOWER),
        (QuorumStateData(leader_id=1, leader_epoch=EPOCH), State.RESIGNED),
        (voted_for(1), State.CANDIDATE),
        (voted_for(1, generation=9), State.UNATTACHED),  # another disk's vote
        (voted_for(2), State.UNATTACHED),
        (QuorumStateData(leader_id=2, leader_epoch=3), State.UNATTACHED),  # the log is of epoch 4
    ],
)
def test_start_restores_the_state_in_quorum_state(election: QuorumStateData, state: State) -> None:
    lone = Lone(election)
    assert lone.core.state is state
    assert lone.core.epoch == max(election.leader_epoch, 4)
    if state is State.FOLLOWER:
        assert lone.receivers("Fetch") == [2]
    if state is State.CANDIDATE:
        assert lone.receivers("Vote") == [2, 3]
        lone.answer(lone.sent("Vote")[0], vote_answer(EPOCH, True))
        assert lone.core.state is State.LEADER


@pytest.mark.parametrize(
    "election",
    [
        QuorumStateData(leader_id=-1, leader_epoch=EPOCH),
        QuorumStateData(leader_id=2, leader_epoch=EPOCH),
        QuorumStateData(leader_id=1, leader_epoch=EPOCH),
        voted_for(1),
        voted_for(2),
    ],
)
@pytest.mark.parametrize("log_end", [LOG_END, OffsetAndEpoch(0, 0)])
def test_only_voter_leads_at_once_with_any_quorum_state(
    election: QuorumStateData, log_end: OffsetAndEpoch
) -> None:
    core = Lone(election, voters=[1], log_end=log_end).core
    goes_on = election.voted_id == 1 and election.leader_id < 0  # a candidacy that had no rival
    assert (core.state, core.epoch) == (State.LEADER, EPOCH if goes_on else EPOCH + 1)


@pytest.mark.parametrize("static", [True, False])
def test_vote_is_persisted_with_static_voters_or_the_directory_of_a_dynamic_quorum(
    static: bool,
) -> None:
    """`quorum-state` versions 0 and 1."""
    lone = Lone(static=static)
    lone.ask(vote(3))
    (written,) = (one for one in lone.effects if isinstance(one, PersistElection))
    voters = [1, 2, 3] if static else []
    directory = bytes(16) if static else directory_id(3)
    assert written.version == (0 if static else 1)
    assert [one.voter_id for one in written.state.current_voters] == voters
    assert (written.state.voted_id, written.state.voted_directory_id) == (3, directory)


def test_every_election_timeout_is_drawn_between_one_and_two_configured_ones() -> None:
    lone, drawn_ms = Lone(), list[int]()
    timeout_ms = lone.config.election_timeout_ms
    for draw in (0, timeout_ms - 1, timeout_ms // 2):
        lone.core._replica.rng.below = lambda bound, draw=draw: min(draw, bound - 1)  # type: ignore[misc]
        for send in lone.become_prospective():
            lone.answer(send, vote_answer(EPOCH, False))  # now the next timeout is drawn
        began_ms = lone.now_ms
        lone.wait_for(State.PROSPECTIVE)
        drawn_ms.append(lone.now_ms - began_ms)
    assert drawn_ms == [timeout_ms, 2 * timeout_ms - 1, timeout_ms + timeout_ms // 2]


@pytest.mark.parametrize("candidate_id", [2, 3])
def test_former_leader_votes_only_in_epochs_after_its_own(candidate_id: int) -> None:
    lone = Lone(QuorumStateData(leader_id=1, leader_epoch=EPOCH))
    assert not partition_of(lone.ask(vote(candidate_id, EPOCH))).vote_granted
    assert partition_of(lone.ask(vote(candidate_id, EPOCH + 1))).vote_granted


def test_former_candidate_votes_only_in_epochs_after_its_own() -> None:
    lone = Lone(voted_for(1))
    assert not partition_of(lone.ask(vote(2, EPOCH))).vote_granted
    assert partition_of(lone.ask(vote(2, EPOCH + 1))).vote_granted


def test_former_leader_that_reaches_no_voter_starts_an_election_in_a_new_epoch() -> None:
    lone = Lone(QuorumStateData(leader_id=1, leader_epoch=EPOCH))
    assert lone.receivers("EndQuorumEpoch") == [2, 3]
    began_ms, timeout_ms = lone.now_ms, lone.config.election_timeout_ms
    assert lone.become_prospective() != []
    assert timeout_ms <= lone.now_ms - began_ms < 2 * timeout_ms  # not another one after that
    assert lone.core.epoch == EPOCH + 1


def test_no_leader_is_reported_while_this_replica_is_a_candidate() -> None:
    lone = candidate()
    assert LeadershipChanged(EPOCH, None) in lone.effects


def test_each_bootstrap_server_is_tried_for_each_unreached_voter__kip1347() -> None:
    """With a counter that the servers share, some server would never be tried for some voter."""
    for addresses in ((("m2", 1), ("m3", 2)), (("m3", 2), ("m2", 1))):
        lone = Lone()
        replica = lone.core._replica
        replica.config = structs.replace(replica.config, bootstrap_servers=addresses)
        receivers: set[tuple[str, int]] = set()
        lone.become_prospective()
        for _ in range(20):
            sends = lone.sent("Vote")
            receivers |= {(one.destination.host, one.message.voter_id) for one in sends}  # type: ignore[attr-defined]
            effects: list[Effect] = []
            for send in sends:
                if send.destination.node_id >= 0:
                    effects += lone.step(SendFailed(send.send_id))
                else:
                    error = ErrorCode.INVALID_VOTER_KEY
                    effects += lone.answer(send, vote_answer(EPOCH, granted=False, error=error))
            lone.effects = effects + lone.wait(50)
        assert {(host, voter) for host, voter in receivers if host.startswith("m")} == {
            (host, voter) for host in ("m2", "m3") for voter in (2, 3)
        }


def test_voters_of_a_static_quorum_are_contacted_at_their_own_address__kip1347() -> None:
    lone = Lone(static=True)
    replica = lone.core._replica
    replica.config = structs.replace(replica.config, bootstrap_servers=(("m2", 1), ("m3", 2)))
    lone.become_prospective()
    receivers: set[int] = set()
    for _ in range(20):
        sends = lone.sent("Vote")
        receivers |= {one.destination.node_id for one in sends}
        effects: list[Effect] = []
        for send in sends:
            effects += lone.step(SendFailed(send.send_id))
        lone.effects = effects + lone.wait(50)
    assert receivers == {2, 3}
