"""The texts of errors that end the process, and of errors that are sent to an operator."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.messages.add_raft_voter_response import AddRaftVoterResponse
from kraftd.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from kraftd.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftd.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraftd.raft.effects import AppendAccepted, AppendRefused
from kraftd.raft.events import AppendRequested, KRaftVersionUpgradeRequested, SnapshotFinished
from kraftd.raft.log_view import LogView
from kraftd.raft.quorum.voters import VoterSet
from kraftd.raft.replica import CommittedIsLost, ConsensusBroken
from kraftd.raft.transitions import Cause, IllegalTransition, State, check
from kraftd.types import METADATA_TOPIC, OffsetAndEpoch
from kraftd.wire.error_code import ErrorCode
from tests.raft.lone import EPOCH, Lone, begin, fetch, fetch_answer, partition_of
from tests.raft.test_membership import add_of
from tests.raft.world import bootstrap_batch, key_of, node_config

LEADS = EPOCH + 1
END = 11
RECOVERED = (
    f" by leader 2 of epoch {EPOCH}, and knows its records below 10 as committed: the quorum was recovered, "
    "or restored, without all of them. This node ends, now and at each start, and keeps its log. If the "
    "quorum is right, run kraftd quorum discard on this node: it names and keeps what it drops, and then the "
    "node can join. If this log is right, stop the other voters and recover the quorum from it"
)


def with_everything_committed() -> Lone:
    lone = Lone().follow()
    lone.answer(lone.sent("Fetch")[0], fetch_answer(EPOCH, high_watermark=10))
    assert lone.core.high_watermark == 10
    return lone


def test_a_replica_about_to_lose_committed_records_names_the_quorums_history() -> None:
    lone = with_everything_committed()
    shown = repr(lone.core._replica)
    with pytest.raises(CommittedIsLost) as cut:
        lone.answer(lone.sent("Fetch")[0], fetch_answer(EPOCH, diverging=OffsetAndEpoch(5, 3)))
    assert str(cut.value) == f"{shown} is asked to truncate to 0{RECOVERED}"
    lone = with_everything_committed()
    with pytest.raises(CommittedIsLost) as replaced:
        lone.answer(lone.sent("Fetch")[0], fetch_answer(EPOCH, snapshot=OffsetAndEpoch(8, 2)))
    assert str(replaced.value) == f"{shown} is to go on from snapshot 8@2 of another log{RECOVERED}"


def test_a_log_that_ends_before_its_snapshot_is_not_started_with() -> None:
    with pytest.raises(ConsensusBroken, match=r"has snapshot 20@4, later than the end of its log$"):
        Lone(snapshots={OffsetAndEpoch(20, 4): 100})


def test_a_step_that_fails_half_way_ends_the_process() -> None:
    lone = Lone().lead()
    values: Any = [None]
    with pytest.raises(TypeError):
        lone.step(AppendRequested("nothing", values, LEADS))
    values = ["text, not bytes"]
    with pytest.raises(ConsensusBroken, match="a step broke off half way: TypeError"):
        lone.step(AppendRequested("half", values, LEADS))


def test_an_illegal_transition_names_state_cause_and_epochs() -> None:
    with pytest.raises(IllegalTransition) as no_way:
        check(State.LEADER, Cause.VOTES_WON, 5, 5)
    assert str(no_way.value) == f"leader has no way out by {Cause.VOTES_WON.value!r}"
    with pytest.raises(IllegalTransition) as raised:
        check(State.CANDIDATE, Cause.VOTES_WON, 5, 6)
    assert str(raised.value) == f"{Cause.VOTES_WON.value!r} must stay in epoch 5, not go to 6"
    with pytest.raises(IllegalTransition) as kept:
        check(State.PROSPECTIVE, Cause.PRE_VOTES_WON, 5, 5)
    assert str(kept.value) == f"{Cause.PRE_VOTES_WON.value!r} must raise epoch 5, not set 5"


def test_batches_that_do_not_continue_a_log_are_described() -> None:
    log = LogView(0, 10, [(4, 0)])
    with pytest.raises(ValueError, match=r"^batch 9\.\.12 does not continue a log that ends at 10$"):
        log.append(4, 9, 12)
    with pytest.raises(ValueError, match=r"^batch 10\.\.10 does not continue a log that ends at 10$"):
        log.append(4, 10, 10)
    with pytest.raises(ValueError, match=r"^batch of epoch 3 behind epoch 4$"):
        log.append(3, 10, 11)


def test_a_replica_that_does_not_lead_refuses_to_describe_the_quorum() -> None:
    lone = Lone()
    request = DescribeQuorumRequest([TopicData(METADATA_TOPIC, [PartitionData(0)])])
    (answer,) = lone.ask(request, 2).topics[0].partitions
    error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (answer.partition_index, answer.error_code, answer.error_message) == (0, error, error.message)
    other = DescribeQuorumRequest([TopicData("other", [PartitionData(3)])])
    (answer,) = lone.ask(other, 2).topics[0].partitions
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (answer.partition_index, answer.error_code, answer.error_message) == (3, error, error.message)


def test_a_leader_describes_the_endpoints_of_the_voters() -> None:
    lone = Lone().lead()
    request = DescribeQuorumRequest([TopicData(METADATA_TOPIC, [PartitionData(0)])])
    nodes = lone.ask(request, 2).nodes
    answer = [(one.node_id, at.name, at.host, at.port) for one in nodes for at in one.listeners]
    assert answer == [(one, "CONTROLLER", f"n{one}", 9000 + one) for one in (1, 2, 3)]


# --- changes of the voters ----------------------------------------------------------------------------


def leader() -> Lone:
    lone = Lone().lead()
    lone.sync()
    lone.ask(fetch(2, LEADS, END, LEADS))
    return lone


def test_a_refused_addition_has_the_reason() -> None:
    voters = f"{key_of(1)}, {key_of(2)}, {key_of(3)}"
    nameless = add_of(4)
    nameless.voter_directory_id = bytes(16)
    elsewhere = add_of(4)
    elsewhere.listeners[0].name = "OTHER"
    foreign = add_of(4)
    foreign.cluster_id = "other"
    no_key = "the request names no voter with a directory id"
    no_endpoint = "the new voter has no endpoint on listener CONTROLLER"
    for message, error, text in (
        (add_of(3), ErrorCode.DUPLICATE_VOTER, f"3 is one of the voters {voters}"),
        (nameless, ErrorCode.INVALID_REQUEST, no_key),
        (elsewhere, ErrorCode.INVALID_REQUEST, no_endpoint),
        (foreign, ErrorCode.INCONSISTENT_CLUSTER_ID, "the cluster id is cluster, not other"),
    ):
        assert leader().ask(message) == AddRaftVoterResponse(0, error, text)


def test_a_refused_removal_has_the_reason() -> None:
    voters = f"{key_of(1)}, {key_of(2)}, {key_of(3)}"
    for message, error, text in (
        (
            RemoveRaftVoterRequest("cluster", 9, key_of(9).directory_id or b""),
            ErrorCode.VOTER_NOT_FOUND,
            f"{key_of(9)} is not one of the voters {voters}",
        ),
        (
            RemoveRaftVoterRequest("cluster", 3, bytes(16)),
            ErrorCode.INVALID_REQUEST,
            "the request names no voter with a directory id",
        ),
    ):
        assert leader().ask(message) == RemoveRaftVoterResponse(0, error, text)
    alone = Lone(voters=[1])
    alone.sync()
    answer = alone.ask(RemoveRaftVoterRequest("cluster", 1, key_of(1).directory_id or b""))
    assert answer.error_message == f"{key_of(1)} is the last voter"


def test_a_change_that_cannot_begin_yet_names_what_it_waits_for() -> None:
    early = Lone().lead()
    assert early.ask(add_of(4)).error_message == "nothing of this epoch is committed yet"
    busy = leader()
    busy.ask(fetch(4, LEADS, END, LEADS))
    busy.ask(add_of(4))
    assert busy.ask(add_of(5)).error_message == "another change of the voters is under way"
    static = Lone(static=True).lead()
    static.sync()
    static.ask(fetch(2, LEADS, END, LEADS))
    answer = static.ask(add_of(4))
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert answer.error_message == "voters cannot change while kraft.version is 0"


def test_an_upgrade_is_accepted_with_its_offsets_or_refused() -> None:
    lone = leader()
    lone.step(KRaftVersionUpgradeRequested("up", 1, LEADS))
    assert AppendAccepted("up", END, END, LEADS) in lone.effects
    follower = Lone().follow()
    follower.step(KRaftVersionUpgradeRequested("up", 1, EPOCH))
    assert follower.effects == [AppendRefused("up", ErrorCode.NOT_CONTROLLER)]


def test_voters_of_a_snapshot_are_in_force_at_its_last_offset() -> None:
    lone = Lone().follow()
    voters = VoterSet.of(*(node_config(one).voter_node for one in (1, 2, 3, 4)))
    lone.step(SnapshotFinished(OffsetAndEpoch(20, EPOCH), 100, (bootstrap_batch(voters),)))
    assert lone.core._replica.history.voters_offset == 19
    assert lone.core.voters_at(19) == voters


@pytest.mark.parametrize("kraft_version", [0, 2])
def test_an_upgrade_to_a_version_that_cannot_be_is_refused(kraft_version: int) -> None:
    lone = leader()
    lone.step(KRaftVersionUpgradeRequested("up", kraft_version, LEADS))
    assert lone.effects == [AppendRefused("up", ErrorCode.INVALID_UPDATE_VERSION)]


def test_a_follower_that_is_named_as_the_leader_of_its_epoch_refuses() -> None:
    lone = Lone().follow(2)
    assert partition_of(lone.ask(begin(1, EPOCH))).error_code == ErrorCode.INVALID_REQUEST
    assert lone.core.leader_id == 2


@pytest.mark.parametrize("values", [[b"small", bytes(2_000)], [bytes(2_000), b"small"]])
def test_records_of_which_one_fits_no_batch_are_refused_as_a_whole(values: list[bytes]) -> None:
    lone = Lone(max_batch_bytes=1_000).lead()
    lone.step(AppendRequested("large", values, LEADS, atomic=False))
    assert lone.effects == [AppendRefused("large", ErrorCode.RECORD_LIST_TOO_LARGE)]
