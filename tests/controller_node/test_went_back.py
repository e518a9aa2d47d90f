"""A voter that holds less than it had shown the leader is named, also after it has caught up."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftd.cli.doctor.judge_quorum import judge_refused
from kraftd.controller_node.watching import went_back
from kraftd.controller_node.watching.went_back import (
    OBSERVER_WENT_BACK,
    REMEDY,
    SHOWN_MS,
    WENT_BACK,
    WentBack,
)
from kraftd.messages.vote_request import PartitionData as VotePartition
from kraftd.messages.vote_request import TopicData as VoteTopic
from kraftd.messages.vote_request import VoteRequest
from kraftd.metrics.state.health import health
from kraftd.raft.effects import ReplicaWentBack
from kraftd.raft.quorum.voters import VoterSet
from kraftd.raft.replica_views import ReplicaView
from kraftd.requests.call import Call
from kraftd.requests.outbox import Outbox
from kraftd.types import METADATA_TOPIC, ReplicaKey, uuid_text
from kraftd.wire.api import ApiKey
from tests.controller_node.harness import CLUSTER_ID, Harness
from tests.controller_node.test_replicas_ahead import DESCRIBE, fetch
from tests.metrics.watched import readings

DIRECTORY = b"d" * 16
KEY = ReplicaKey(7, DIRECTORY)


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path).start()


def count_as_voter(harness: Harness, node_id: int) -> None:
    """Let the leader count a voter of a static quorum, so one without a directory id."""
    progress = harness.node.core._replica.role.progress  # type: ignore[union-attr]
    progress.set_voters(
        VoterSet.from_static("CONTROLLER", {100: ("n100", 9093), node_id: (f"n{node_id}", 9093)})
    )


def reported(harness: Harness) -> list[str]:
    """The replicas in DescribeQuorum's answer, which must be the same as in /readyz."""
    answer = harness.ask(ApiKey.DESCRIBE_QUORUM, 2, DESCRIBE)
    lines = (answer.error_message or "").splitlines()
    found = readings(harness, went_back=harness.node.core_answers.went_back(harness.clock.ms))
    assert list(health(found).went_back) == lines
    return lines


def test_a_voter_that_went_back_is_logged_audited_and_listed(harness: Harness) -> None:
    count_as_voter(harness, 7)
    end, epoch = harness.node.core.log_end_offset, harness.node.core.epoch
    fetch(harness, end, -1)
    assert reported(harness) == []
    fetch(harness, end - 1, -1, connection=2)
    (event,) = (one for one in harness.audited if one.event == "replica went back")
    (line,) = (one for one in harness.lines if one.text == WENT_BACK)
    assert (line.level, line.fields, event.offset) == ("warning", event.fields, -1)
    assert event.fields == {
        "from_node": 7,
        "directory_id": uuid_text(DIRECTORY),
        "host": "127.0.0.1",
        "client_id": "test",
        "principal": "User:ANONYMOUS",
        "acknowledged": end,
        "its_log_end": end - 1,
        "leader_epoch": epoch,
        "its_epoch": epoch,
        "remedy": REMEDY,
        "seen": 1,
    }
    (text,) = reported(harness)
    assert f"the records before offset {end}, and its log ended at {end - 1}; it does not count" in text
    (warned,) = judge_refused([text], "node 100")
    assert warned.text.startswith("node 7 at 127.0.0.1 went back: ") and warned.remedy == REMEDY


def test_an_observer_that_begins_anew_is_logged_and_listed_nowhere(harness: Harness) -> None:
    end = harness.node.core.log_end_offset
    fetch(harness, end, -1)
    fetch(harness, 1, -1, connection=2)
    fetch(harness, 0, -1, connection=3)
    (line,) = (one for one in harness.lines if one.text == OBSERVER_WENT_BACK)
    assert (line.level, line.fields["from_node"], line.fields["acknowledged"]) == ("info", 7, end)
    assert (line.fields["its_log_end"], "remedy" in line.fields) == (1, False)
    assert [one for one in harness.audited if one.event == "replica went back"] == []
    assert reported(harness) == []


def test_a_fetch_that_an_old_connection_delivers_late_is_no_step_back(harness: Harness) -> None:
    count_as_voter(harness, 7)
    end = harness.node.core.log_end_offset
    fetch(harness, end - 1, -1, connection=1)
    fetch(harness, end, -1, connection=2)
    fetch(harness, end - 1, -1, connection=1)
    assert reported(harness) == []
    fetch(harness, end, -1, connection=2)
    fetch(harness, end - 1, -1, connection=2)
    assert len(reported(harness)) == 1


def test_a_vote_request_of_an_older_epoch_names_both_epochs(harness: Harness) -> None:
    count_as_voter(harness, 7)
    end, epoch = harness.node.core.log_end_offset, harness.node.core.epoch
    fetch(harness, end, -1)
    partition = VotePartition(0, epoch - 1, 7, DIRECTORY, b"\0" * 16, 0, 0, True)
    harness.ask(ApiKey.VOTE, 2, VoteRequest(CLUSTER_ID, 100, [VoteTopic(METADATA_TOPIC, [partition])]))
    (text,) = reported(harness)
    assert f"went back: its epoch was {epoch}, and then {epoch - 1}; it has caught up" in text


def effect(node_id: int = 7, offset: int | None = 20) -> ReplicaWentBack:
    call = Call(1, 0, "CONTROLLER", "n7", 1, 18, 0, "test", None)
    return ReplicaWentBack(call, ReplicaKey(node_id, DIRECTORY), True, 161, 5, offset, 3)


def view(node_id: int, directory: bytes | None = DIRECTORY, *, is_voter: bool = True) -> ReplicaView:
    return ReplicaView(ReplicaKey(node_id, directory), is_voter, False)


def test_a_voter_is_listed_with_both_losses_and_whether_it_counts() -> None:
    found = WentBack(Outbox(), lambda *_: False)
    found.note(effect(offset=None), 1_000)
    found.note(effect(), 1_000)
    short = [ReplicaView(KEY, True, False, 20, is_short=True)]
    level = [ReplicaView(KEY, True, False, 161)]
    (text,) = found.lines(short, 1_000)
    assert text == (
        "node 7 at n7 went back: it had acknowledged the records before offset 161, and its log ended at 20, "
        "and its epoch was 5, and then 3; it does not count towards commits until it has caught up; " + REMEDY
    )
    assert "it has caught up and counts again" in found.lines(level, 999 + SHOWN_MS)[0]
    assert found.lines(short, 1_000 + SHOWN_MS), "it lacks records still"
    assert found.lines(level, 1_000 + SHOWN_MS) == []
    assert repr(found) == "<WentBack 0>"


def test_a_voter_that_was_removed_or_replaced_is_no_longer_listed() -> None:
    found = WentBack(Outbox(), lambda *_: False)
    found.note(effect(), 1_000)
    for listed, one in ((1, view(7)), (1, view(7, None)), (0, view(7, is_voter=False)), (0, view(7, b"e"))):
        assert len(found.lines([one], 1_000)) == listed


def test_the_number_of_remembered_replicas_that_went_back_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(went_back, "MAX_PEERS", 2)
    found = WentBack(Outbox(), lambda *_: False)
    for node_id in (1, 2, 3, 2):
        found.note(effect(node_id), 1_000)
    lines = found.lines(map(view, range(4)), 1_000)
    assert [line.split(" at ")[0] for line in lines] == ["node 3", "node 2"]


def test_a_leader_alone_lists_replicas_that_went_back(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_as_voter(harness, 7)
    fetch(harness, harness.node.core.log_end_offset, -1)
    fetch(harness, 1, -1)
    assert len(reported(harness)) == 1
    monkeypatch.setattr(type(harness.node.core), "is_leader", False)
    assert harness.node.core_answers.went_back(harness.clock.ms) == []
