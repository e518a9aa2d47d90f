"""Calls at the consensus core: the events that it gets, the calls that wait for it, and its answers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kraftd.controller_node import core_answers
from kraftd.controller_node.core_answers import CoreAnswers
from kraftd.controller_node.effects import AnswerSnapshot
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.describe_quorum_request import DescribeQuorumRequest
from kraftd.messages.describe_quorum_response import DescribeQuorumResponse, PartitionData, TopicData
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftd.messages.fetch_response import FetchableTopicResponse, FetchResponse
from kraftd.messages.fetch_response import PartitionData as Fetched
from kraftd.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftd.messages.vote_request import VoteRequest
from kraftd.messages.vote_response import VoteResponse
from kraftd.metadata.image import Image
from kraftd.raft import effects as raft_effects
from kraftd.raft import events as raft_events
from kraftd.requests.boundary import Boundary
from kraftd.requests.call import Call
from kraftd.requests.effects import Answer, AnswerRecords, LogLine, RecordsOf
from kraftd.requests.outbox import Outbox
from kraftd.requests.registry import Registry
from kraftd.types import OffsetAndEpoch
from kraftd.wire.api import ApiKey, response_version
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import parse_response

NOW_MS, LOG_END = 70_000, 40
DIRECTORY = b"d" * 16


class ScriptedCore:
    """The calls in front of a core that notes events and answers each with the effects that a test sets."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.answer: list[Any] = []
        self.performed: list[Any] = []
        self.asked_at: list[Any] = []
        self.core: Any = SimpleNamespace(
            is_leader=True, log_end_offset=LOG_END, replicas=self._replicas, voters=SimpleNamespace(ids=())
        )
        driver: Any = SimpleNamespace(
            core=self.core, now_ms=NOW_MS, takers={}, step=self._step, perform=self.performed.extend
        )
        appends: Any = SimpleNamespace(
            flush=lambda: self.events.append("flush"),
            step_core=lambda event: self.events.append(("told", event)),
        )
        self.outbox = Outbox()
        self.boundary = Boundary(Registry([]), self.outbox)
        self.takers: dict[type, Any] = driver.takers
        self.core.voters = SimpleNamespace(ids=())
        context: Any = SimpleNamespace(image=Image())
        self.answers = CoreAnswers(driver, context, appends, self.boundary, self.outbox)

    def _step(self, event: Any) -> list[Any]:
        self.events.append(event)
        return self.answer

    def _replicas(self, now_ms: int) -> list[Any]:
        self.asked_at.append(now_ms)
        return []

    def ask(self, call: Call, *answer: Any) -> Call:
        self.answer = list(answer)
        self.answers.pass_to_core(call)
        return call

    def take(self, effect: Any) -> list[Any]:
        """The effects of an effect that the core emits later."""
        self.takers[type(effect)](effect)
        return self.outbox.take()


def vote(connection_id: int = 1) -> Call:
    message = VoteRequest()
    return Call(connection_id, 4, "QUORUM", "h", ApiKey.VOTE, 2, 9, "c", message, arrived_ns=5)


def fetch(version: int = 17, node_id: int = 7, connection_id: int = 1) -> Call:
    partition = FetchPartition(0, 1, 50, 1, replica_directory_id=DIRECTORY, high_watermark=60)
    message = FetchRequest(replica_state=ReplicaState(node_id), topics=[FetchTopic(partitions=[partition])])
    return Call(connection_id, 4, "QUORUM", "h", ApiKey.FETCH, version, 9, "c", message, arrived_ns=5)


def fetched(**fields: Any) -> FetchResponse:
    return FetchResponse(responses=[FetchableTopicResponse(partitions=[Fetched(**fields)])])


def opened(answer: Any, key: int, version: int) -> Any:
    """The decoded message of an answer."""
    assert isinstance(answer, Answer)
    assert answer.call is not None
    header, message = parse_response(key, response_version(key, version), b"".join(answer.parts)[4:])
    assert header.correlation_id == 9
    return message


def test_a_call_reaches_the_core_behind_all_gathered_records() -> None:
    harness = ScriptedCore()
    call = harness.ask(vote())
    assert harness.events == ["flush", raft_events.RequestReceived(call, call.message, 2, "QUORUM")]


def test_an_answer_at_once_leaves_nothing_that_waits() -> None:
    harness = ScriptedCore()
    call = vote()
    harness.ask(call, raft_effects.Respond(call, VoteResponse(), 2))
    answer: Any
    (answer,) = harness.outbox.take()
    assert opened(answer, ApiKey.VOTE, 2).error_code == 0
    assert (answer.connection_id, answer.slot, answer.call) == (1, 4, call)
    assert harness.answers.waiting == {} and not harness.performed


def test_calls_wait_by_connection_until_the_core_answers_each_once() -> None:
    harness = ScriptedCore()
    first, second, third = vote(), vote(), vote(2)
    parked = raft_effects.SyncLog(50)
    harness.ask(first, parked)
    harness.ask(second)
    harness.ask(third, raft_effects.Respond(first, VoteResponse(), 2))  # of another call
    assert harness.performed == [parked, raft_effects.Respond(first, VoteResponse(), 2)]
    assert harness.answers.waiting == {1: {first, second}, 2: {third}}
    assert repr(harness.answers) == "<CoreAnswers 3 calls wait>"
    (answer,) = harness.take(raft_effects.Respond(second, VoteResponse(), 2))
    assert answer.call is second
    assert harness.answers.waiting == {1: {first}, 2: {third}}
    assert harness.take(raft_effects.Respond(second, VoteResponse(), 2)) == []
    assert harness.take(raft_effects.Respond(vote(3), VoteResponse(), 2)) == []


def test_the_core_forgets_the_calls_of_a_lost_connection() -> None:
    harness = ScriptedCore()
    call = harness.ask(vote())
    harness.ask(vote(2))
    harness.events.clear()
    harness.answers.abandon(1)
    harness.answers.abandon(3)
    assert harness.events == [("told", raft_events.RequestAbandoned(call))]
    assert list(harness.answers.waiting) == [2]
    assert harness.take(raft_effects.Respond(call, VoteResponse(), 2)) == []


def test_an_answer_that_cannot_be_written_is_a_fault_of_that_call_alone() -> None:
    harness = ScriptedCore()
    call = harness.ask(vote())
    broken: Any = SimpleNamespace()
    line, answer = harness.take(raft_effects.Respond(call, broken, 2))
    assert isinstance(line, LogLine) and line.fields["call"] == repr(call)
    assert isinstance(line.fields["exc_info"], AttributeError | TypeError | KeyError)
    assert opened(answer, ApiKey.VOTE, 2).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_records_and_pieces_of_snapshots_are_read_for_calls_that_still_wait() -> None:
    harness = ScriptedCore()
    call = harness.ask(fetch())
    message, piece = fetched(), FetchSnapshotResponse()
    records = raft_effects.RespondRecords(call, message, 17, 50, 55, 900)
    assert harness.take(records) == [
        AnswerRecords(call, message, (RecordsOf(message.responses[0].partitions[0], 50, 55, 900),))
    ]
    assert harness.take(records) == []
    other = harness.ask(fetch())
    snapshot = raft_effects.RespondSnapshot(other, piece, 1, OffsetAndEpoch(30, 2), 60, 800)
    assert harness.take(snapshot) == [AnswerSnapshot(other, piece, OffsetAndEpoch(30, 2), 60, 800)]
    assert harness.take(snapshot) == []


def test_the_errors_of_an_answer_are_counted_and_a_refused_node_is_logged() -> None:
    harness = ScriptedCore()
    call = harness.ask(vote())
    refused = VoteResponse(ErrorCode.INCONSISTENT_CLUSTER_ID)
    effects = harness.take(raft_effects.Respond(call, refused, 2))
    assert [one.text for one in effects if isinstance(one, LogLine)] == ["a node is refused"]
    assert harness.boundary.stats.by_key[ApiKey.VOTE].errors == {ErrorCode.INCONSISTENT_CLUSTER_ID: 1}


@pytest.mark.parametrize(
    "message",
    [
        FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID),
        FetchResponse(),
        fetched(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID),
    ],
    ids=["refused", "without partitions", "refused partition"],
)
def test_a_refused_fetch_is_not_noted_for_its_sender(message: FetchResponse) -> None:
    harness = ScriptedCore()
    call = harness.ask(fetch(18))
    harness.take(raft_effects.Respond(call, message, 18))
    assert repr(harness.answers._fetching) == "<FetchingReplicas of 0 ids>"
    assert harness.answers.replicas_ahead() == []
    counted = harness.boundary.stats.by_key
    assert (counted[ApiKey.FETCH].errors if counted else {}) == (
        {ErrorCode.INCONSISTENT_CLUSTER_ID: 1} if message != FetchResponse() else {}
    )


@pytest.mark.parametrize("field", ["diverging_epoch", "snapshot_id"])
@pytest.mark.parametrize(("epoch", "ahead"), [(-1, 0), (0, 1), (3, 1)])
def test_a_fetch_that_parts_from_the_log_below_its_high_watermark_is_ahead(
    field: str, epoch: int, ahead: int
) -> None:
    harness = ScriptedCore()
    message = fetched()
    parted = getattr(message.responses[0].partitions[0], field)
    parted.epoch, parted.end_offset = epoch, 45
    call = harness.ask(fetch(18))
    harness.take(raft_effects.Respond(call, message, 18))
    lines = harness.answers.replicas_ahead()
    assert len(lines) == ahead and all("offset 45, " in line for line in lines)
    harness.core.is_leader = False
    assert harness.answers.replicas_ahead() == []


def test_many_fetches_without_news_share_one_answer() -> None:
    harness = ScriptedCore()
    message = fetched(high_watermark=50)
    for node_id in (7, 8):
        harness.boundary.stats.by_key.clear()
        call = harness.ask(fetch(17, node_id, node_id))
        (answer,) = harness.take(raft_effects.Respond(call, message, 17))
        assert opened(answer, ApiKey.FETCH, 17) == message
    assert repr(harness.answers._fetching) == "<FetchingReplicas of 2 ids>"
    assert list(harness.answers._empty_fetches._last) == [17]


def test_a_node_that_fetches_from_two_directories_is_named_by_a_leader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness = ScriptedCore()
    views: list[Any] = []

    def looked(found: Any, now_ms: int) -> dict[int, str]:
        views.append((found, now_ms))
        return {}

    monkeypatch.setattr(core_answers, "duplicate_ids", looked)
    assert harness.answers.duplicate_ids(NOW_MS) == []
    assert views == [([], NOW_MS)] and harness.asked_at == [NOW_MS]
    monkeypatch.setattr(core_answers, "duplicate_ids", lambda *_: {9: "nine", 2: "two"})
    assert harness.answers.duplicate_ids(NOW_MS) == ["two", "nine"]
    harness.core.is_leader = False
    assert harness.answers.duplicate_ids(NOW_MS) == []


@pytest.mark.parametrize(
    ("offset", "leads", "ahead"),
    [(LOG_END - 1, True, 0), (LOG_END, True, 1), (LOG_END + 5, True, 1), (LOG_END, False, 0)],
)
def test_a_leader_notes_the_offset_that_a_broker_has_applied(offset: int, leads: bool, ahead: int) -> None:
    harness = ScriptedCore()
    harness.core.is_leader = leads
    heartbeat = BrokerHeartbeatRequest(7, 5, offset)
    harness.answers.note_heartbeat(Call(1, 0, "C", "h", ApiKey.BROKER_HEARTBEAT, 1, 1, "c", heartbeat))
    harness.core.is_leader = True
    assert len(harness.answers.replicas_ahead()) == ahead


def described(code: int, text: str | None = None) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(topics=[TopicData("t", [PartitionData(0, code, text)])])


def quorum() -> Call:
    message = DescribeQuorumRequest()
    return Call(1, 4, "QUORUM", "h", ApiKey.DESCRIBE_QUORUM, 2, 9, "c", message, arrived_ns=5)


@pytest.mark.parametrize(
    ("code", "of_partition", "of_all"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, "said\nnobody answers", None),
        (ErrorCode.NONE, "said", "ahead\ntwin\nwrong address\nrefused"),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "said", None),
    ],
)
def test_a_described_quorum_has_its_troubles_or_its_leaders_view(
    monkeypatch: pytest.MonkeyPatch, code: int, of_partition: str, of_all: str | None
) -> None:
    harness = ScriptedCore()
    times_ms: list[Any] = []
    harness.answers.troubles = lambda: ["nobody answers"]
    harness.answers.addresses = lambda: ["wrong address"]
    monkeypatch.setattr(harness.answers, "replicas_ahead", lambda: ["ahead"])

    def at(line: str) -> Any:
        def lines(now: int) -> list[str]:
            times_ms.append(now)
            return [line]

        return lines

    monkeypatch.setattr(harness.answers, "duplicate_ids", at("twin"))
    monkeypatch.setattr(harness.boundary.refusals, "lines", at("refused"))
    call = harness.ask(quorum())
    (answer,) = harness.take(raft_effects.Respond(call, described(code, "said"), 2))
    message = opened(answer, ApiKey.DESCRIBE_QUORUM, 2)
    assert message.topics[0].partitions[0].error_message == of_partition
    assert (message.error_message or None) == of_all
    assert times_ms == ([5, NOW_MS] if of_all else [])


def test_the_troubles_are_the_lines_behind_the_first_even_if_that_is_empty() -> None:
    harness = ScriptedCore()
    harness.answers.troubles = lambda: ["nobody answers"]
    call = harness.ask(quorum())
    answer = harness.take(raft_effects.Respond(call, described(ErrorCode.NOT_LEADER_OR_FOLLOWER), 2))[-1]
    text = opened(answer, ApiKey.DESCRIBE_QUORUM, 2).topics[0].partitions[0].error_message
    assert text == "\nnobody answers"
