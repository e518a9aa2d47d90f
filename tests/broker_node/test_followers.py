"""Partitions that a broker leads and others replicate: progress, ISR and what waits for followers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.broker_node.events import LogsFailed
from kraftd.broker_node.partitions import isr_changes
from kraftd.broker_node.partitions.produces import UnderWay
from kraftd.ground.effect import Effect
from kraftd.messages.alter_partition_request import AlterPartitionRequest
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest
from kraftd.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraftd.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftd.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kraftd.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kraftd.messages.produce_response import PartitionProduceResponse
from kraftd.partition.partition import ACKS_ALL, Partition, Produced
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.broker_node.harness import BrokerHarness, reassign, records

LAG_MS = 1_000
FOLLOWER = 1


class Replicated:
    """A partition that broker 100 leads, and a follower whose fetches the test makes."""

    def __init__(self, tmp_path: Path, partitions: int = 1, **configs: str) -> None:
        self.harness = BrokerHarness(tmp_path, broker={"replica.lag.time.max.ms": str(LAG_MS)}).run()
        self.broker_epoch = self.harness.unfenced(FOLLOWER)
        topic = CreatableTopic(
            "t",
            -1,
            -1,
            [CreatableReplicaAssignment(index, (100, FOLLOWER)) for index in range(partitions)],
            [CreatableTopicConfig(key.replace("_", "."), text) for key, text in configs.items()],
        )
        answer = self.harness.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([topic], 30_000), 8)
        assert not answer.topics[0].error_code, answer
        self.harness.pass_time(10)
        self.topic_id = answer.topics[0].topic_id
        self.session_id, self.epoch = 0, 0

    @property
    def partition(self) -> Partition:
        hosted = self.harness.broker.replicas.get("t", 0)
        assert hosted is not None and hosted.partition is not None
        return hosted.partition

    def isr(self) -> tuple[int, ...]:
        """As the controller has it."""
        found = self.harness.node.image.partition(self.topic_id, 0)
        assert found is not None
        return found.isr

    def send_fetch(self, offset: int | None, *, broker_epoch: int | None = None, **fields: int) -> int:
        """A fetch of the follower; without an offset it names no partition."""
        values: dict[str, Any] = {"current_leader_epoch": 0, "log_start_offset": 0, "last_fetched_epoch": -1}
        part = FetchPartition(0, fetch_offset=offset or 0, partition_max_bytes=1 << 20, **(values | fields))
        epoch = self.broker_epoch if broker_epoch is None else broker_epoch
        request = FetchRequest(
            replica_state=ReplicaState(FOLLOWER, epoch),
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1 << 24,
            session_id=self.session_id,
            session_epoch=self.epoch,
            topics=[] if offset is None else [FetchTopic(topic_id=self.topic_id, partitions=[part])],
        )
        return self.harness.client_send(ApiKey.FETCH, 17, request, connection_id=60)

    def fetch(self, offset: int | None, **fields: int) -> Any:
        """The answer to the follower's fetch, after its wait if there is nothing."""
        slot = self.send_fetch(offset, **fields)
        if self.harness.response(slot) is None:
            self.harness.pass_time(500)
        answer = self.harness.response(slot)
        assert not answer.error_code, answer
        self.session_id, self.epoch = answer.session_id, self.epoch + 1
        return answer

    def part(self, offset: int, **fields: int) -> Any:
        """The follower's part of an answer."""
        return self.fetch(offset, **fields).responses[0].partitions[0]

    def produce(self, acks: int = -1, timeout_ms: int = 1_000, count: int = 1) -> int:
        """The slot of a produce's answer."""
        request = self.harness.produce_request("t", {0: records(count)}, acks, timeout_ms)
        return self.harness.client_send(ApiKey.PRODUCE, 12, request)

    def answered(self, slot: int) -> Any:
        found = self.harness.response(slot)
        return None if found is None else found.responses[0].partition_responses[0]

    def lag(self) -> None:
        """Let the follower fall out of the ISR, while its broker lives."""
        self.harness.beat(FOLLOWER, self.broker_epoch, current_metadata_offset=1 << 40)
        self.harness.pass_time(LAG_MS * 2)

    def proposals(self) -> list[AlterPartitionRequest]:
        return [one for one in self.harness.wire.sent if isinstance(one, AlterPartitionRequest)]


@pytest.fixture
def replicated(tmp_path: Path) -> Replicated:
    return Replicated(tmp_path)


def test_a_produce_with_acks_all_waits_for_the_follower(replicated: Replicated) -> None:
    assert replicated.isr() == (100, FOLLOWER)
    slot = replicated.produce()
    assert replicated.answered(slot) is None and replicated.partition.high_watermark == 0
    part = replicated.part(0)
    assert len(part.records) > 0 and part.high_watermark == 0
    assert replicated.answered(slot) is None
    waiting = replicated.send_fetch(1)
    assert replicated.answered(slot).base_offset == 0
    assert replicated.harness.read("t").high_watermark == 1
    assert replicated.harness.response(waiting) is None


@pytest.mark.parametrize(
    ("end", "error"),
    [
        ("moved", ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ("deleted", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("failed", ErrorCode.KAFKA_STORAGE_ERROR),
    ],
)
def test_a_waiting_produce_that_ends_names_the_cause_and_its_offset(
    replicated: Replicated, end: str, error: ErrorCode
) -> None:
    harness = replicated.harness
    replicated.fetch(0)
    replicated.answered(replicated.produce(acks=1))
    slot = replicated.produce()
    assert replicated.answered(slot) is None
    if end == "moved":
        reassign(harness, FOLLOWER)
    elif end == "deleted":
        harness.delete_topic("t")
    else:
        log = harness.directories.logs["t", 0]
        harness.broker_step(LogsFailed((("t", 0),), (), {log.parent: "broken"}))
    part = replicated.answered(slot)
    assert (part.error_code, part.base_offset, part.log_start_offset) == (error, 1, 0)


def test_a_waiting_fetch_of_a_follower_is_answered_when_records_come(replicated: Replicated) -> None:
    replicated.fetch(0)
    slot = replicated.send_fetch(None)
    replicated.produce()
    answer = replicated.harness.response(slot)
    assert len(answer.responses[0].partitions[0].records) > 0


def test_a_followers_answer_leaves_before_the_next_fetch_is_examined(
    replicated: Replicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What producers wait for is the records on their way, not the work for other readers."""
    sessions, waiting = [], []
    for _ in range(2):
        replicated.session_id = replicated.epoch = 0
        replicated.fetch(0)
        sessions.append(replicated.session_id)
    for replicated.session_id in sessions:
        waiting.append(replicated.send_fetch(None))
    wire, left = replicated.harness.wire, []
    flush = wire.flush
    monkeypatch.setattr(wire, "flush", lambda: (left.append(len(wire.responses.keys() & waiting)), flush()))
    replicated.produce()
    assert 1 in left
    assert all(replicated.harness.response(slot).responses for slot in waiting)


def test_a_waiting_fetch_is_answered_with_all_that_was_appended_in_one_step(replicated: Replicated) -> None:
    replicated.fetch(0)
    waiting = replicated.send_fetch(None)
    request = replicated.harness.produce_request("t", {0: records()}, -1)
    first = replicated.harness.client_send(ApiKey.PRODUCE, 12, request, request, request)
    (part,) = replicated.harness.response(waiting).responses[0].partitions
    assert len(part.records) == 3 * len(records())
    replicated.epoch += 1
    replicated.send_fetch(3)
    assert [replicated.answered(first + n).base_offset for n in range(3)] == [0, 1, 2]


def test_the_next_answer_to_a_follower_names_marks_that_have_moved(
    replicated: Replicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    replicated.fetch(0)
    replicated.produce()
    replicated.fetch(0)
    source, looks = replicated.harness.broker.source, []
    for name in ("availability", "fetched"):
        look = getattr(source, name)
        monkeypatch.setattr(source, name, lambda *its, look=look: looks.append(its) or look(*its))
    waiting = replicated.send_fetch(1)
    assert replicated.partition.high_watermark == 1
    assert len(looks) == 1 and replicated.harness.response(waiting) is None
    replicated.harness.pass_time(500)
    (part,) = replicated.harness.response(waiting).responses[0].partitions
    assert (part.high_watermark, len(part.records)) == (1, 0)


def test_a_follower_that_lags_leaves_the_isr_and_comes_back(replicated: Replicated) -> None:
    replicated.fetch(0)
    slot = replicated.produce(timeout_ms=60_000)
    replicated.lag()
    assert replicated.isr() == (100,)
    assert replicated.answered(slot).base_offset == 0
    (proposal,) = replicated.proposals()
    (part,) = proposal.topics[0].partitions
    assert [(one.broker_id, one.broker_epoch) for one in part.new_isr_with_epochs] == [
        (100, replicated.harness.broker.lifecycle.broker_epoch)
    ]
    replicated.fetch(0)
    assert replicated.isr() == (100,), "it lacks a record"
    replicated.fetch(1)
    replicated.harness.pass_time(10)
    assert replicated.isr() == (100, FOLLOWER)
    members = replicated.proposals()[-1].topics[0].partitions[0].new_isr_with_epochs
    assert (members[1].broker_id, members[1].broker_epoch) == (FOLLOWER, replicated.broker_epoch)


def test_a_leader_that_was_stalled_reads_its_followers_fetches_first(replicated: Replicated) -> None:
    """As one that was frozen: the fetches that came meanwhile are read after the timers have run."""
    replicated.fetch(0)
    replicated.produce()
    harness = replicated.harness
    harness.advance(2 * LAG_MS)  # no timer runs
    harness.pass_time(0)
    assert replicated.isr() == (100, FOLLOWER)
    replicated.fetch(1)
    replicated.lag()
    assert replicated.isr() == (100, FOLLOWER)
    replicated.produce()
    harness.advance(2 * LAG_MS)
    harness.pass_time(LAG_MS)
    assert replicated.isr() == (100,), "it is judged at the next time"


def test_a_follower_without_a_broker_epoch_joins_by_its_log_alone__kip903(replicated: Replicated) -> None:
    """As one of a release before the KIP, whose fetches name no epoch."""
    replicated.fetch(0)
    replicated.produce()
    replicated.lag()
    assert replicated.isr() == (100,)
    replicated.session_id = replicated.epoch = 0
    replicated.fetch(0, broker_epoch=-1)
    replicated.fetch(1, broker_epoch=-1)
    replicated.harness.pass_time(10)
    assert replicated.isr() == (100, FOLLOWER)
    members = replicated.proposals()[-1].topics[0].partitions[0].new_isr_with_epochs
    assert (members[1].broker_id, members[1].broker_epoch) == (FOLLOWER, -1)


def test_an_idle_follower_stays_in_the_isr_when_records_come(replicated: Replicated) -> None:
    replicated.fetch(0)
    for _ in range(6):  # each takes 500 ms and names no partition
        replicated.harness.beat(FOLLOWER, replicated.broker_epoch, current_metadata_offset=1 << 40)
        replicated.fetch(None)
    replicated.produce()
    replicated.harness.pass_time(LAG_MS // 2)
    assert replicated.proposals() == []
    replicated.lag()
    assert replicated.isr() == (100,)


def test_a_fetch_of_a_former_broker_epoch_is_refused__kip903(replicated: Replicated) -> None:
    replicated.produce()
    stale = replicated.part(0, broker_epoch=replicated.broker_epoch - 1)
    assert stale.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER and not stale.records
    assert (stale.current_leader.leader_id, stale.current_leader.leader_epoch) == (100, 0)
    assert replicated.partition.followers[FOLLOWER].broker_epoch is None
    replicated.session_id = replicated.epoch = 0
    assert not replicated.part(0, broker_epoch=-1).error_code
    replicated.session_id = replicated.epoch = 0
    assert not replicated.part(0).error_code


def test_a_fenced_follower_is_served_and_does_not_join__kip903(replicated: Replicated) -> None:
    replicated.fetch(0)
    replicated.harness.pass_time(20_000)
    assert replicated.harness.node.image.brokers[FOLLOWER].fenced
    assert replicated.isr() == (100,)
    before = len(replicated.proposals())
    assert replicated.fetch(0) is not None
    replicated.harness.pass_time(100)
    assert len(replicated.proposals()) == before and replicated.isr() == (100,)


def test_a_proposal_that_waits_delays_no_heartbeat(replicated: Replicated) -> None:
    replicated.fetch(0)
    replicated.produce(acks=1)
    replicated.lag()
    channels = replicated.harness.wire.channels
    assert channels[BrokerHeartbeatRequest] == channels[BrokerRegistrationRequest] == "heartbeat"
    assert channels[AlterPartitionRequest] == "alter-partition"


def test_proposals_are_sent_again_until_the_controller_answers(replicated: Replicated) -> None:
    replicated.fetch(0)
    replicated.produce(acks=1)
    wire = replicated.harness.wire
    wire.is_cut_off = True
    replicated.lag()
    wire.is_cut_off = False
    assert replicated.isr() == (100, FOLLOWER) and len(replicated.proposals()) > 1
    assert len({repr(one) for one in replicated.proposals()}) == 1
    replicated.harness.pass_time(200)
    assert replicated.isr() == (100,) and replicated.partition.isr.pending is None


def test_many_proposals_take_several_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isr_changes, "PROPOSALS_A_REQUEST", 2)
    replicated = Replicated(tmp_path, partitions=5)
    replicated.lag()
    sizes = [sum(len(topic.partitions) for topic in one.topics) for one in replicated.proposals()]
    assert sum(sizes) == 5 and max(sizes) == 2
    assert replicated.isr() == (100,)


def test_a_look_for_followers_that_lag_is_at_partitions_with_followers_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replicated = Replicated(tmp_path, partitions=2)
    harness, changes = replicated.harness, replicated.harness.broker.isr_changes
    harness.create_topic("alone", 3)
    harness.pass_time(100)
    looked: list[str] = []

    def look(partition: Partition, now_ms: int, *, local_broker_epoch: int) -> list[Effect]:
        looked.append(partition.name)
        return []

    monkeypatch.setattr(isr_changes, "shrink_isr", look)
    harness.clock.ms = (changes.deadline_ms() or 0) + 1
    harness.broker.now_ms = harness.clock.ms
    list(changes.check())
    assert looked == ["t-0", "t-1"], "of the led partitions that others replicate"
    looked.clear()
    for index, hosted in enumerate(one for one in harness.broker.replicas if one.topic == "t"):
        assert hosted.partition is not None
        hosted.partition.followers[FOLLOWER].log_end_offset = hosted.partition.log_end_offset - index
    harness.clock.ms = (changes.deadline_ms() or 0) + 1
    harness.broker.now_ms = harness.clock.ms
    list(changes.check())
    assert looked == ["t-1"], "whose follower lacks something: most of very many partitions are idle"


def test_a_look_for_followers_that_rejoin_begins_after_the_end_of_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isr_changes, "PARTITIONS_PER_CALLBACK", 1)
    replicated = Replicated(tmp_path, partitions=3)
    replicated.lag()
    harness, changes = replicated.harness, replicated.harness.broker.isr_changes
    harness.clock.ms = (changes.deadline_ms() or 0) + 1
    harness.broker.now_ms = harness.clock.ms
    look = changes.rejoin()
    next(look)
    harness.clock.ms += 10 * isr_changes.REJOIN_MS
    harness.broker.now_ms = harness.clock.ms
    assert list(changes.rejoin()) == [], "the one before has not ended"
    assert len(list(look)) == 2
    assert list(changes.rejoin()) == [], "nor is it time again"


def test_too_small_an_isr_refuses_acks_all(tmp_path: Path) -> None:
    replicated = Replicated(tmp_path, min_insync_replicas="2")
    replicated.fetch(0)
    slot = replicated.produce(timeout_ms=60_000)
    replicated.lag()
    assert replicated.answered(slot) is None, "the high watermark stays below min.insync.replicas (KIP-966)"
    assert replicated.answered(replicated.produce()).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert not replicated.answered(replicated.produce(acks=1)).error_code
    replicated.fetch(2)
    replicated.harness.pass_time(10)
    assert not replicated.answered(slot).error_code


def test_records_are_deleted_at_every_replica(replicated: Replicated) -> None:
    replicated.produce(acks=1, count=2)
    replicated.fetch(2)
    part = DeleteRecordsTopic("t", [DeleteRecordsPartition(0, 2)])
    deleting = [
        replicated.harness.client_send(ApiKey.DELETE_RECORDS, 2, DeleteRecordsRequest([part], timeout_ms))
        for timeout_ms in (100, 30_000)
    ]
    replicated.harness.pass_time(200)
    late, waiting = (replicated.harness.response(one) for one in deleting)
    timed_out = late.topics[0].partitions[0]
    assert (timed_out.error_code, timed_out.low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    assert waiting is None
    assert replicated.part(2).log_start_offset == 2
    replicated.fetch(2, log_start_offset=2)
    done = replicated.harness.response(deleting[1]).topics[0].partitions[0]
    assert (done.error_code, done.low_watermark) == (0, 2)


@pytest.mark.parametrize(("replica_id", "end"), [(-1, 0), (-2, 1), (FOLLOWER, 1)])
def test_only_consumers_list_the_high_watermark_as_the_end(
    replicated: Replicated, replica_id: int, end: int
) -> None:
    replicated.produce(acks=1)
    topics = [ListOffsetsTopic("t", [ListOffsetsPartition(0, -1, -1)])]
    answer = replicated.harness.client_ask(ApiKey.LIST_OFFSETS, 7, ListOffsetsRequest(replica_id, 0, topics))
    assert answer.topics[0].partitions[0].offset == end


def test_aborted_transactions_are_for_consumers_only(replicated: Replicated) -> None:
    replicated.produce(acks=1)
    for replica_id, aborted in ((FOLLOWER, None), (-1, [])):
        fields = {"replica_id": replica_id, "isolation_level": 1, "max_wait_ms": 0}
        request = replicated.harness.fetch_request("t", {0: 0}, **fields)
        answer = replicated.harness.client_ask(ApiKey.FETCH, 12, request)
        assert answer.responses[0].partitions[0].aborted_transactions == aborted


def test_a_diverging_follower_learns_where_to_truncate(replicated: Replicated) -> None:
    replicated.produce(acks=1)
    part = replicated.part(3, last_fetched_epoch=0)
    assert (part.diverging_epoch.epoch, part.diverging_epoch.end_offset) == (0, 1)
    assert not part.records and replicated.partition.followers[FOLLOWER].broker_epoch is None
    wrong = [(1, ErrorCode.UNKNOWN_LEADER_EPOCH), (-1, ErrorCode.NONE)]
    for leader_epoch, error in wrong:
        asked = OffsetForLeaderPartition(0, leader_epoch, 0)
        request = OffsetForLeaderEpochRequest(FOLLOWER, [OffsetForLeaderTopic("t", [asked])])
        answer = replicated.harness.client_ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, request)
        found = answer.topics[0].partitions[0]
        assert found.error_code == error
    assert (found.leader_epoch, found.end_offset) == (0, 1)


def test_a_follower_whose_last_fetch_came_too_early_joins_without_another_change(
    replicated: Replicated,
) -> None:
    """The leader took its broker for fenced when it caught up; its fetches after that bring nothing new."""
    replicated.produce(acks=1)
    replicated.lag()
    assert replicated.isr() == (100,)
    harness = replicated.harness
    brokers, partition = harness.view.image.brokers, replicated.partition
    alive = partition.brokers.alive_epoch
    partition.brokers.alive_epoch = lambda broker_id: None  # type: ignore[method-assign]
    replicated.fetch(1)
    assert replicated.isr() == (100,) and FOLLOWER in brokers
    partition.brokers.alive_epoch = alive  # type: ignore[method-assign]
    replicated.fetch(None)
    replicated.fetch(None)
    assert replicated.isr() == (100, FOLLOWER)


def test_a_produce_waits_for_its_follower_until_its_timeout(tmp_path: Path) -> None:
    replicated = Replicated(tmp_path)
    replicated.fetch(0)
    harness = replicated.harness
    request = harness.produce_request("t", {0: records(1)}, acks=-1, timeout_ms=300)
    slot = harness.client_send(ApiKey.PRODUCE, 12, request)
    harness.pass_time(250)
    assert harness.response(slot) is None
    harness.pass_time(100)
    (part,) = harness.response(slot).responses[0].partition_responses
    assert part.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert not len(harness.broker.produces) and not harness.broker.produces.waiting_count


def test_what_is_written_after_its_timeout_does_not_wait_for_followers(tmp_path: Path) -> None:
    broker = Replicated(tmp_path).harness.broker
    produces, hosted, ended = broker.produces, broker.replicas.get("t", 0), []
    assert hosted is not None and hosted.partition is not None
    produced = hosted.partition.produce(records(1), 12, ACKS_ALL, broker.wall_ms)
    assert isinstance(produced, Produced)
    under_way = UnderWay(ACKS_ALL, 300, then=lambda: ended.append(True))
    answer = PartitionProduceResponse(0)
    produces.add(under_way, hosted, answer, produced)
    produces.handled(under_way, now_ms=1_000)
    produces.run_due(1_400)
    assert not ended
    produces.written("t", 0, produced.base_offset, None)
    assert produces.deadline_ms() == 1_300
    produces.run_due(1_400)
    assert ended and answer.error_code == ErrorCode.REQUEST_TIMED_OUT
