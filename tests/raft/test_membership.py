"""Adding, removing and updating voters step by step, at leader and joining replica (KIP-853, KIP-1186)."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from kraftd.messages.add_raft_voter_response import AddRaftVoterResponse
from kraftd.messages.api_versions_response import ApiVersionsResponse, SupportedFeatureKey
from kraftd.messages.quorum_state_data import QuorumStateData
from kraftd.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftd.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraftd.messages.update_raft_voter_request import KRaftVersionFeature, UpdateRaftVoterRequest
from kraftd.messages.update_raft_voter_request import Listener as UpdateListener
from kraftd.messages.update_raft_voter_response import CurrentLeader, UpdateRaftVoterResponse
from kraftd.raft.effects import AppendCommitted, AppendRecords, AppendRefused, Respond
from kraftd.raft.events import KRaftVersionUpgradeRequested, RequestAbandoned, SendFailed, ShutdownRequested
from kraftd.raft.transitions import State
from kraftd.types import OffsetAndEpoch
from kraftd.wire.error_code import ErrorCode
from tests.raft.lone import EPOCH, Lone, begin, fetch, fetch_answer
from tests.raft.world import directory_id

LEADS = EPOCH + 1
END = 11  # of the log of a leader that has just been elected
REQUEST_TIMEOUT_MS = 1_000


def add_of(voter: int) -> AddRaftVoterRequest:
    listener = Listener("CONTROLLER", f"n{voter}", 9000 + voter)
    return AddRaftVoterRequest("cluster", 1000, voter, directory_id(voter), [listener])


ADD_4 = add_of(4)
ADD_4_EARLY = AddRaftVoterRequest(
    "cluster", 1000, 4, directory_id(4), [Listener("CONTROLLER", "n4", 9004)], ack_when_committed=False
)
REMOVE_3 = RemoveRaftVoterRequest("cluster", 3, directory_id(3))


def update(voter: int, port: int, epoch: int = LEADS) -> UpdateRaftVoterRequest:
    return UpdateRaftVoterRequest(
        "cluster",
        epoch,
        voter,
        directory_id(voter),
        [UpdateListener("CONTROLLER", f"n{voter}", port)],
        KRaftVersionFeature(0, 1),
    )


UPDATE_2 = update(2, 9999)


def supports(lowest: int = 0, highest: int = 1) -> ApiVersionsResponse:
    return ApiVersionsResponse(supported_features=[SupportedFeatureKey("kraft.version", lowest, highest)])


def error_of(lone: Lone) -> ErrorCode | None:
    """The error in the last answer to a change of the voters."""
    for effect in lone.effects:
        if isinstance(effect, Respond) and isinstance(
            effect.message, AddRaftVoterResponse | RemoveRaftVoterResponse
        ):
            return ErrorCode(effect.message.error_code)  # type: ignore[call-arg]
    return None


@pytest.fixture
def leader() -> Lone:
    """The leader of voters 1, 2 and 3 in epoch 6; its first batch is committed, and observer 4 has it."""
    lone = Lone(request_timeout_ms=REQUEST_TIMEOUT_MS, fetch_timeout_ms=60_000).lead()
    lone.sync()
    lone.ask(fetch(2, LEADS, END, LEADS))
    lone.ask(fetch(4, LEADS, END, LEADS))
    assert lone.core.high_watermark == END
    return lone


def probed(leader: Lone, message: AddRaftVoterRequest = ADD_4) -> None:
    """Request that a voter is added, and let the voter report what it supports."""
    assert leader.ask(message) is None
    (probe,) = leader.sent("ApiVersions")
    destination = probe.destination.host, probe.destination.port
    assert destination == (f"n{message.voter_id}", 9000 + message.voter_id)
    leader.answer(probe, supports())


def commit(leader: Lone, *voters: int) -> None:
    """Let these voters and the leader's disk catch up."""
    leader.sync()
    for voter in voters:
        leader.ask(fetch(voter, LEADS, leader.core.log_end_offset, LEADS))


# --- adding -------------------------------------------------------------------------------------------


def test_adding_a_voter_probes_it_writes_the_record_and_answers_after_commit(leader: Lone) -> None:
    probed(leader)
    assert leader.core.voters.ids == [1, 2, 3, 4]  # in force before it is committed
    assert error_of(leader) is None
    leader.sync()
    leader.ask(fetch(2, LEADS, END + 1, LEADS))
    assert error_of(leader) is None  # two of four
    leader.ask(fetch(4, LEADS, END + 1, LEADS))
    assert error_of(leader) is ErrorCode.NONE


def test_add_without_ack_when_committed_is_answered_before_it__kip1186(leader: Lone) -> None:
    probed(leader, ADD_4_EARLY)
    assert error_of(leader) is ErrorCode.NONE
    assert leader.core.high_watermark == END
    commit(leader, 2, 4)
    assert error_of(leader) is None  # once is enough


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (supports(0, 0), ErrorCode.INVALID_REQUEST),
        (ApiVersionsResponse(), ErrorCode.INVALID_REQUEST),
        (ApiVersionsResponse(ErrorCode.INVALID_REQUEST), ErrorCode.REQUEST_TIMED_OUT),
    ],
)
def test_new_voter_that_cannot_follow_the_quorum_is_not_added(
    leader: Lone, answer: ApiVersionsResponse, error: ErrorCode
) -> None:
    leader.ask(ADD_4)
    leader.answer(leader.sent("ApiVersions")[0], answer)
    assert (error_of(leader), leader.core.voters.ids) == (error, [1, 2, 3])


def test_new_voter_that_was_never_caught_up_is_not_added(leader: Lone) -> None:
    leader.ask(fetch(5, LEADS, 10, 4))
    probed(leader, add_of(5))
    assert (error_of(leader), leader.core.voters.ids) == (ErrorCode.REQUEST_TIMED_OUT, [1, 2, 3])


def test_new_voter_that_has_been_silent_for_an_hour_is_not_added(leader: Lone) -> None:
    for _ in range(120):  # an hour, which is Kafka's limit
        leader.wait(30_000)
        leader.ask(fetch(2, LEADS, END, LEADS))
    probed(leader)
    assert (error_of(leader), leader.core.voters.ids) == (ErrorCode.REQUEST_TIMED_OUT, [1, 2, 3])


def test_answer_of_an_earlier_probe_does_not_count_for_a_later_one(leader: Lone) -> None:
    leader.ask(ADD_4)
    (old,) = leader.sent("ApiVersions")
    leader.wait(REQUEST_TIMEOUT_MS)
    assert error_of(leader) is ErrorCode.REQUEST_TIMED_OUT
    leader.answer(old, supports())
    assert leader.core.voters.ids == [1, 2, 3]


def test_change_continues_without_an_answer_if_its_sender_disconnects(leader: Lone) -> None:
    probed(leader)
    leader.step(RequestAbandoned(leader.last_request_id))
    leader.wait(10)
    commit(leader, 2, 4)
    assert error_of(leader) is None
    assert (leader.core.voters.ids, leader.core.high_watermark) == ([1, 2, 3, 4], END + 1)


# --- removing -----------------------------------------------------------------------------------------


def test_removed_voter_does_not_count_for_the_commit_of_its_removal(leader: Lone) -> None:
    assert leader.ask(REMOVE_3) is None
    assert leader.core.voters.ids == [1, 2]
    leader.sync()
    leader.ask(fetch(3, LEADS, END + 1, LEADS))
    assert error_of(leader) is None
    leader.ask(fetch(2, LEADS, END + 1, LEADS))
    assert error_of(leader) is ErrorCode.NONE


def test_leader_that_was_removed_does_not_count_and_resigns_after_the_commit(leader: Lone) -> None:
    leader.ask(RemoveRaftVoterRequest("cluster", 1, directory_id(1)))
    commit(leader, 2)
    assert (error_of(leader), leader.core.state) == (None, State.LEADER)
    leader.ask(fetch(3, LEADS, END + 1, LEADS))
    assert error_of(leader) is ErrorCode.NONE
    assert (leader.core.state, leader.receivers("EndQuorumEpoch")) == (State.RESIGNED, [2, 3])


@pytest.mark.parametrize("added", [True, False])
@pytest.mark.parametrize(("fetching", "state"), [((2,), State.RESIGNED), ((2, 3), State.LEADER)])
def test_leader_needs_the_fetches_of_a_majority_of_the_voters_in_force(
    added: bool, fetching: tuple[int, ...], state: State
) -> None:
    leader = Lone().lead()
    commit(leader, 2, 4)
    if added:
        probed(leader)
    else:
        leader.ask(RemoveRaftVoterRequest("cluster", 1, directory_id(1)))
    assert leader.core.voters.ids == ([1, 2, 3, 4] if added else [2, 3])
    for _ in range(4):
        leader.wait(1_000)
        for voter in fetching:
            leader.ask(fetch(voter, LEADS, END, LEADS))  # without the record of the change
    assert leader.core.state is state


# --- one at a time ------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [ADD_4, REMOVE_3])
@pytest.mark.parametrize("second", [ADD_4, REMOVE_3, UPDATE_2])
def test_second_change_gets_a_retriable_error_while_one_is_under_way(
    leader: Lone, first: Any, second: Any
) -> None:
    assert leader.ask(first) is None
    assert leader.ask(second).error_code == ErrorCode.REQUEST_TIMED_OUT


def test_change_after_an_update_waits_for_its_commit(leader: Lone) -> None:
    assert leader.ask(UPDATE_2).error_code == ErrorCode.NONE
    assert leader.ask(REMOVE_3).error_code == ErrorCode.REQUEST_TIMED_OUT
    commit(leader, 2)
    assert leader.ask(REMOVE_3) is None


@pytest.mark.parametrize("message", [ADD_4, REMOVE_3])
def test_change_that_does_not_commit_in_time_is_answered_with_a_timeout(leader: Lone, message: Any) -> None:
    if message is ADD_4:
        probed(leader)
    else:
        leader.ask(message)
    leader.wait(REQUEST_TIMEOUT_MS)
    assert error_of(leader) is ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize("message", [ADD_4, REMOVE_3])
def test_change_fails_when_the_leadership_is_lost(leader: Lone, message: Any) -> None:
    leader.ask(message)
    leader.ask(begin(3, LEADS + 1))
    assert error_of(leader) is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("message", [ADD_4, REMOVE_3, update(2, 9999, EPOCH)])
def test_change_is_refused_by_a_replica_that_does_not_lead(message: Any) -> None:
    assert Lone().follow(2).ask(message).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("message", [ADD_4, REMOVE_3])
def test_voters_of_a_static_quorum_do_not_change__kip853(message: Any) -> None:
    lone = Lone(static=True).lead()
    commit(lone, 2)
    assert lone.ask(message).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_update_before_a_commit_in_the_epoch_gets_a_retriable_error() -> None:
    assert Lone().lead().ask(UPDATE_2).error_code == ErrorCode.REQUEST_TIMED_OUT


# --- updating -----------------------------------------------------------------------------------------


def test_leader_whose_address_differs_from_the_voters_writes_it_at_once() -> None:
    lone = Lone()
    port = lone.config.listeners[0].port
    assert lone.core.voters.listeners(1)[0].port == port
    moved = Lone(
        QuorumStateData(leader_id=-1, leader_epoch=EPOCH), voters=(1, 2, 3), max_kraft_version=2
    )  # it supports more than the request says
    assert moved.core.voters.get(1) is not None
    moved.lead()
    assert moved.core.voters.get(1) == moved.config.voter_node
    assert sum(isinstance(one, AppendRecords) for one in moved.effects) == 1


def test_update_of_a_voter_writes_what_it_supports(leader: Lone) -> None:
    request = update(2, 9002)
    request.kraft_version_feature = KRaftVersionFeature(1, 2)
    assert leader.ask(request).error_code == ErrorCode.NONE
    assert [(one.key.id, one.min_kraft_version, one.max_kraft_version) for one in leader.core.voters] == [
        (1, 0, 1),
        (2, 1, 2),
        (3, 0, 1),
    ]
    assert leader.core.log_end_offset == END + 1


def test_voter_with_an_outdated_record_sends_an_update_every_fetch_timeout() -> None:
    lone = Lone(max_kraft_version=2, fetch_max_wait_ms=10).follow(2)
    for _ in range(2):
        requests = serve(lone, 2_050, "UpdateRaftVoter")
        assert len(requests) == 1


def test_voter_with_a_current_record_sends_no_update() -> None:
    assert serve(Lone().follow(2), 5_000, "UpdateRaftVoter") == []


def test_voter_sends_its_update_after_a_fetch_that_was_under_way() -> None:
    lone = Lone(max_kraft_version=2, fetch_timeout_ms=1_000, request_timeout_ms=5_000).follow(2)
    (first,) = lone.sent("Fetch")
    lone.wait(950)
    lone.answer(first, fetch_answer(EPOCH))
    (second,) = lone.sent("Fetch")
    lone.wait(100)  # that fetch is under way when the update is due
    assert lone.receivers("UpdateRaftVoter") == []
    lone.answer(second, fetch_answer(EPOCH))
    assert lone.receivers("UpdateRaftVoter") == [2]


def test_answer_to_an_update_that_names_a_later_leader_is_followed() -> None:
    lone = Lone(max_kraft_version=2, fetch_max_wait_ms=10).follow(2)
    (send,) = serve(lone, 2_100, "UpdateRaftVoter", answer=False)
    answer = UpdateRaftVoterResponse(
        error_code=ErrorCode.FENCED_LEADER_EPOCH, current_leader=CurrentLeader(3, EPOCH + 1, "n3", 9003)
    )
    lone.answer(send, answer)
    assert (lone.core.state, lone.core.epoch, lone.core.leader_id) == (State.FOLLOWER, EPOCH + 1, 3)


def test_refused_update_is_followed_by_a_fetch_at_once() -> None:
    lone = Lone(max_kraft_version=2, fetch_max_wait_ms=10).follow(2)
    (send,) = serve(lone, 2_100, "UpdateRaftVoter", answer=False)
    leader = CurrentLeader(2, EPOCH, "n2", 9002)
    lone.answer(send, UpdateRaftVoterResponse(error_code=ErrorCode.REQUEST_TIMED_OUT, current_leader=leader))
    assert [one.destination.node_id for one in lone.sent("Fetch")] == [2]


def test_a_later_leader_without_an_address_gets_it_from_the_voters_record() -> None:
    lone = Lone(max_kraft_version=2, fetch_max_wait_ms=10).follow(2)
    (send,) = serve(lone, 2_100, "UpdateRaftVoter", answer=False)
    leader = CurrentLeader(3, EPOCH + 1)
    error = ErrorCode.FENCED_LEADER_EPOCH
    lone.answer(send, UpdateRaftVoterResponse(error_code=error, current_leader=leader))
    found = lone.core.leader_endpoint("CONTROLLER")
    assert found is not None and (lone.core.leader_id, found.host, found.port) == (3, "n3", 9003)


def test_an_unsupported_update_is_retried_after_a_timeout() -> None:
    lone = Lone(static=True, fetch_max_wait_ms=10).follow(2)
    (send,) = serve(lone, 2_100, "UpdateRaftVoter", answer=False)
    lone.step(SendFailed(send.send_id, ErrorCode.UNSUPPORTED_VERSION))
    assert lone.core.state is State.FOLLOWER
    assert serve(lone, 1_800, "UpdateRaftVoter") == []
    assert len(serve(lone, 400, "UpdateRaftVoter", answer=False)) == 1


def test_static_voter_reports_its_versions_once_to_every_leader() -> None:
    lone = Lone(static=True, fetch_max_wait_ms=10).follow(2)
    assert len(serve(lone, 10_000, "UpdateRaftVoter")) == 1
    lone.ask(begin(3, EPOCH + 1))
    assert len(serve(lone, 10_000, "UpdateRaftVoter", leader=3, epoch=EPOCH + 1)) == 1


def test_upgrade_writes_the_voters_as_they_reported_themselves__kip853() -> None:
    lone = Lone(static=True, fetch_timeout_ms=60_000).lead()
    lone.sync()
    lone.ask(fetch(2, LEADS, lone.core.log_end_offset, LEADS))
    for voter in (2, 3):
        assert lone.ask(update(voter, 9000 + voter)).error_code == ErrorCode.NONE
    lone.step(KRaftVersionUpgradeRequested("up", 1, LEADS))
    assert lone.core.kraft_version == 1
    assert [one.key.directory_id for one in lone.core.voters] == [directory_id(one) for one in (1, 2, 3)]
    lone.sync()
    lone.ask(fetch(2, LEADS, lone.core.log_end_offset, LEADS))
    assert any(isinstance(one, AppendCommitted) for one in lone.effects)
    assert lone.ask(UPDATE_2).error_code == ErrorCode.NONE
    assert [one.port for one in lone.core.voters.listeners(2)] == [9999]


def test_upgrade_is_refused_until_every_voter_reports_that_it_supports_it__kip853() -> None:
    lone = Lone(static=True, fetch_timeout_ms=60_000).lead()
    commit(lone, 2)
    old = update(3, 9003)
    old.kraft_version_feature = KRaftVersionFeature(0, 0)
    for report in (update(2, 9002), old):
        assert lone.ask(report).error_code == ErrorCode.NONE
        upgrade = KRaftVersionUpgradeRequested("up", 1, LEADS)
        assert lone.step(upgrade) == [AppendRefused("up", ErrorCode.INVALID_UPDATE_VERSION)]
    lone.ask(update(3, 9003))
    for epoch in (LEADS - 1, LEADS + 1):
        upgrade = KRaftVersionUpgradeRequested("up", 1, epoch)
        assert lone.step(upgrade) == [AppendRefused("up", ErrorCode.NOT_CONTROLLER)]
    lone.step(KRaftVersionUpgradeRequested("up", 1, LEADS, validate_only=True))
    assert (lone.core.kraft_version, lone.core.log_end_offset) == (0, END)
    lone.step(KRaftVersionUpgradeRequested("up", 1, LEADS))
    assert (lone.core.kraft_version, lone.core.log_end_offset) == (1, END + 2)


# --- joining by itself --------------------------------------------------------------------------------


def serve(
    lone: Lone, duration_ms: int, kind: str, *, leader: int = 2, epoch: int = EPOCH, answer: bool = True
) -> list[Any]:
    """Answer the replica's fetches for a while; return its requests of that kind, which are granted."""
    requests: list[Any] = []
    for _ in range(duration_ms // 10):
        sends = [*lone.sent("Fetch"), *lone.sent(kind)]
        lone.effects = []
        for send in sends:
            if type(send.message).__name__ == "FetchRequest":
                effects = lone.answer(send, fetch_answer(epoch, leader=leader))
            else:
                requests.append(send)
                if not answer:
                    return requests
                effects = lone.answer(send, _granted(kind, leader, epoch))
            lone.effects = effects
        pending = lone.effects
        lone.effects = pending + lone.wait(10)
    return requests


def _granted(kind: str, leader: int, epoch: int) -> Any:
    if kind == "UpdateRaftVoter":
        current = CurrentLeader(leader, epoch, f"n{leader}", 9000 + leader)
        return UpdateRaftVoterResponse(current_leader=current)
    return AddRaftVoterResponse() if kind == "AddRaftVoter" else RemoveRaftVoterResponse()


JOINS: dict[str, Any] = {"auto_join": True, "fetch_max_wait_ms": 10}


def test_controller_that_may_join_asks_to_be_added__kip1186() -> None:
    (send, *_) = serve(Lone(voters=(2, 3, 4), **JOINS).follow(2), 2_500, "AddRaftVoter")
    message: Any = send.message
    assert (message.voter_id, message.voter_directory_id) == (1, directory_id(1))
    assert message.ack_when_committed is False


def test_controller_with_a_new_disk_has_its_old_voter_removed_first__kip1186() -> None:
    lone = Lone(voters=(1, 2, 3), generation=7, **JOINS).follow(2)
    (send, *_) = serve(lone, 2_500, "RemoveRaftVoter")
    message: Any = send.message
    assert (message.voter_id, message.voter_directory_id) == (1, directory_id(1))


@pytest.mark.parametrize(
    "options",
    [
        {"voters": (2, 3, 4), "fetch_max_wait_ms": 10},  # controller.quorum.auto.join.enable is false
        {"voters": (2, 3, 4), **JOINS, "can_become_voter": False},  # a broker
        {"voters": (2, 3, 4), **JOINS, "static": True},  # kraft.version 0
    ],
)
def test_replica_that_may_not_join_does_not_ask(options: dict[str, Any]) -> None:
    for kind in ("AddRaftVoter", "RemoveRaftVoter"):
        assert serve(Lone(**options).follow(2), 5_000, kind) == []


def test_change_is_refused_by_a_leader_that_shuts_down(leader: Lone) -> None:
    leader.step(ShutdownRequested(5_000))
    assert leader.ask(REMOVE_3).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER  # it has resigned already


def test_observer_that_fetches_does_not_become_a_voter(leader: Lone) -> None:
    leader.ask(fetch(4, LEADS, END, LEADS))
    assert leader.core.log.end == OffsetAndEpoch(END, LEADS)
    assert 4 not in leader.core.voters.ids
