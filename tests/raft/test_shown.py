"""The text form of the core's objects in a test, a trace or a debugger: one line each."""

from __future__ import annotations

from kraftd.ground.destination import Destination
from kraftd.messages.quorum_state_data import QuorumStateData
from kraftd.messages.vote_request import VoteRequest
from kraftd.messages.vote_response import VoteResponse
from kraftd.raft.connections import Connections
from kraftd.raft.effects import AppendRecords, PersistElection, Respond, RespondRecords, Send, WriteSnapshot
from kraftd.raft.events import AppendRequested, RequestReceived, ResponseReceived
from kraftd.raft.log_view import LogView
from kraftd.raft.quorum.majority import Votes
from kraftd.raft.quorum.voters import VoterNode
from kraftd.raft.roles import Download
from kraftd.types import Endpoint, OffsetAndEpoch, ReplicaKey
from tests.raft.lone import EPOCH, Lone, begin
from tests.raft.world import key_of


def test_a_replica_shows_its_epoch_leader_log_and_deadline() -> None:
    lone = Lone()
    due_ms = lone.core.deadline_ms()
    assert due_ms is not None
    unattached = f"<Unattached {key_of(1)} epoch {EPOCH}, log end 10, hw -1"
    assert repr(lone.core) == f"{unattached}, due in {due_ms - lone.now_ms} ms>"
    assert repr(lone.core._replica) == f"{unattached}>"
    lone.ask(begin(2))
    assert repr(lone.core._replica) == f"<Follower {key_of(1)} epoch {EPOCH} of leader 2, log end 10, hw -1>"


def test_a_core_that_waits_for_nothing_shows_no_deadline() -> None:
    lone = Lone(voters=())
    assert lone.core.deadline_ms() is not None  # the fetch times out
    lone.core._deadline_ms = None
    assert repr(lone.core) == f"<Unattached {key_of(1)} epoch {EPOCH}, log end 10, hw -1>"


def test_connections_show_those_that_are_not_ready() -> None:
    connections = Connections(2000, 20)
    assert repr(connections) == "<Connections all ready>"
    connections.sent(Destination(2, "n2", 9002), VoteRequest(), 0)
    connections.back_off(3, 0)
    assert repr(connections) == "<Connections 2:in flight 3:backing off>"


def test_log_votes_history_and_downloads_show_themselves() -> None:
    log = LogView(3, 10, [(4, 3)])
    log.append(5, 10, 12)
    assert repr(log) == "<LogView 3..12 synced 10, epoch 5>"
    votes = Votes([key_of(1), key_of(2), key_of(3)], 1)
    votes.record(2, False)
    assert repr(votes) == "<Votes 1 of 3 granted, 1 outstanding>"
    history = Lone().core._replica.history
    assert repr(history) == f"<ControlRecordHistory kraft.version 1, {history.voters}>"
    assert repr(Download(OffsetAndEpoch(8, 2), 5)) == "<Download 8@2 at 5 of -1>"


def test_a_voter_shows_all_its_endpoints() -> None:
    at = (Endpoint("CONTROLLER", "n1", 9001), Endpoint("SECOND", "n1", 9002))
    assert repr(VoterNode(ReplicaKey(1), at)) == "<Voter 1:- at CONTROLLER://n1:9001, SECOND://n1:9002>"


def test_effects_and_events_show_what_they_are_about() -> None:
    to, state = Destination(2, "n2", 9002), QuorumStateData(leader_id=2, leader_epoch=5, voted_id=3)
    assert [
        repr(one)
        for one in (
            PersistElection(state, 1),
            AppendRecords(3, 5, 2, b"1234"),
            Respond("asked", VoteResponse(), 2),
            RespondRecords("asked", VoteResponse(), 2, 3, 5, 100),
            Send(7, to, VoteRequest()),
            WriteSnapshot(OffsetAndEpoch(8, 2), 5, b"123"),
            RequestReceived("asked", VoteRequest(), 2),
            ResponseReceived(7, VoteResponse()),
            AppendRequested("one", [b"a", b"b"], 5),
        )
    ] == [
        "<PersistElection epoch 5 leader 2 voted 3>",
        "<AppendRecords [3, 5) epoch 2, 4 bytes>",
        "<Respond asked VoteResponse>",
        "<RespondRecords asked [3, 5) up to 100 bytes>",
        "<Send 7 VoteRequest to 2 at n2:9002>",
        "<WriteSnapshot 8@2 at 5, 3 bytes>",
        "<RequestReceived asked VoteRequest v2>",
        "<ResponseReceived 7 VoteResponse>",
        "<AppendRequested one 2 records in epoch 5>",
    ]
