"""Share groups at the leader of a partition: fetched, acknowledged, kept over a restart (KIP-932)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.broker_node.events import LogsFailed
from kraftd.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.messages.initialize_share_group_state_request import (
    InitializeShareGroupStateRequest,
    InitializeStateData,
)
from kraftd.messages.initialize_share_group_state_request import PartitionData as Initialization
from kraftd.messages.read_share_group_state_summary_request import PartitionData as Reading
from kraftd.messages.read_share_group_state_summary_request import (
    ReadShareGroupStateSummaryRequest,
    ReadStateSummaryData,
)
from kraftd.messages.share_acknowledge_request import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from kraftd.messages.share_fetch_request import AcknowledgementBatch as FetchBatch
from kraftd.messages.share_fetch_request import FetchPartition, FetchTopic, ShareFetchRequest
from kraftd.partition.share.states import ACCEPT, REJECT, RELEASE, RENEW
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.records import scan_batches
from tests.broker_node.harness import BrokerHarness, records
from tests.broker_node.test_client_quotas import set_quota

STATE_TOPIC = "__share_group_state"
LOCK_MS = 30_000


class Shared:
    """A broker with a topic of one partition, and requests of members of a share group."""

    def __init__(self, tmp_path: Path, start: int = 0, **broker: str) -> None:
        static = {key.replace("_", "."): value for key, value in broker.items()}
        self.harness = BrokerHarness(tmp_path, broker=static).run()
        self.harness.create_topic(STATE_TOPIC, 3)
        self.harness.create_topic("t")
        self.topic_id = self.harness.view.image.topic_names()["t"]
        self.epochs: dict[str, int] = {}
        self.initialize(start)

    def restart(self, tmp_path: Path) -> None:
        """Stop the broker and start another on its disk."""
        before = self.harness
        before.executor.close_files()
        before.disk.locked.clear()
        self.harness = BrokerHarness(tmp_path, before.disk)
        self.harness.clock.ms = before.clock.ms + 20_000
        self.harness.run()
        self.harness.pass_time(20_000)
        self.epochs.clear()

    def initialize(self, start: int, epoch: int = 1) -> None:
        topics = [InitializeStateData(self.topic_id, [Initialization(0, epoch, start)])]
        request = InitializeShareGroupStateRequest("g", topics)
        answer = self.harness.client_ask(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, request)
        assert not answer.results[0].partitions[0].error_code

    def send(self, member: str, acknowledged: tuple[tuple[int, int, int], ...] = (), **fields: Any) -> int:
        """Send a ShareFetch of a member; returns its slot."""
        epoch = fields.pop("epoch", self.epochs.get(member, 0))
        connection_id = fields.pop("connection_id", 60 + len(member))
        self.epochs[member] = epoch + 1
        values = {
            "max_wait_ms": 500,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 100,
            "batch_size": 100,
        }
        batches = [FetchBatch(first, last, (type,)) for first, last, type in acknowledged]
        topics = [FetchTopic(self.topic_id, [FetchPartition(0, acknowledgement_batches=batches)])]
        request = ShareFetchRequest("g", member, epoch, **(values | fields), topics=topics)
        return self.harness.client_send(ApiKey.SHARE_FETCH, 2, request, connection_id=connection_id)

    def response(self, slot: int) -> Any:
        self.harness.pass_time(5)
        return self.harness.response(slot)

    def fetch(self, member: str, *acknowledged: tuple[int, int, int], **fields: Any) -> list[tuple[int, ...]]:
        """What a member acquires: first and last offset, and how often it was delivered."""
        answer = self.response(self.send(member, acknowledged, **fields))
        assert not answer.error_code, answer
        rows = [row for topic in answer.responses for row in topic.partitions]
        assert not any(row.error_code or row.acknowledge_error_code for row in rows), rows
        return [
            (one.first_offset, one.last_offset, one.delivery_count)
            for row in rows
            for one in row.acquired_records
        ]

    def acknowledge(self, member: str, *acknowledged: tuple[int, int, int], **fields: Any) -> ErrorCode:
        epoch = fields.pop("epoch", self.epochs.get(member, 0))
        self.epochs[member] = epoch + 1
        batches = [AcknowledgementBatch(first, last, (type,)) for first, last, type in acknowledged]
        topics = [AcknowledgeTopic(self.topic_id, [AcknowledgePartition(0, batches)])]
        request = ShareAcknowledgeRequest("g", member, epoch, topics=topics, **fields)
        send = self.harness.client_send
        answer = self.response(send(ApiKey.SHARE_ACKNOWLEDGE, 2, request, connection_id=60 + len(member)))
        return ErrorCode(answer.error_code or answer.responses[0].partitions[0].error_code)

    def summary(self) -> tuple[int, int]:
        """Start offset and complete count, as the share coordinator has them."""
        topics = [ReadStateSummaryData(self.topic_id, [Reading(0, -1)])]
        request = ReadShareGroupStateSummaryRequest("g", topics)
        answer = self.harness.client_ask(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 1, request)
        row = answer.results[0].partitions[0]
        return row.start_offset, row.delivery_complete_count

    def configure(self, name: str, value: str) -> None:
        resource = AlterConfigsResource(32, "g", [AlterableConfig(name, 0, value)])
        request = IncrementalAlterConfigsRequest([resource])
        answer = self.harness.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request, 8)
        assert not answer.responses[0].error_code, answer
        self.harness.pass_time(10)


def test_records_are_acquired_once_and_accepted_ones_are_gone__kip932(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    shared.harness.produce("t", records(3))
    shared.harness.produce("t", records(2))
    slot = shared.send("a")
    answer = shared.response(slot)
    (row,) = answer.responses[0].partitions
    assert [(one.first_offset, one.last_offset) for one in row.acquired_records] == [(0, 4)]
    assert answer.acquisition_lock_timeout_ms == LOCK_MS
    assert [one.header.base_offset for one in scan_batches(row.records)[0]] == [0, 3]
    assert shared.fetch("bb", max_wait_ms=0) == []
    assert shared.acknowledge("a", (0, 2, ACCEPT)) == ErrorCode.NONE
    assert shared.summary() == (0, 3)  # as in Kafka, the next change tells the new start
    assert shared.acknowledge("a", (0, 2, ACCEPT)) == ErrorCode.NONE  # they are before the start
    assert shared.acknowledge("bb", (3, 4, ACCEPT)) == ErrorCode.INVALID_RECORD_STATE
    assert shared.acknowledge("a", (3, 3, RELEASE), (4, 4, REJECT)) == ErrorCode.NONE
    assert shared.summary() == (3, 1)
    assert shared.fetch("bb") == [(3, 3, 2)]
    assert shared.fetch("bb", (3, 3, ACCEPT), max_wait_ms=0) == []
    assert shared.summary() == (3, 2)


def test_only_the_batches_of_acquired_records_are_sent(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    for _ in range(4):
        shared.harness.produce("t", records(2))
    answer = shared.response(shared.send("a", max_records=3))
    (row,) = answer.responses[0].partitions
    assert [(one.first_offset, one.last_offset) for one in row.acquired_records] == [(0, 3)]
    assert [one.header.base_offset for one in scan_batches(row.records)[0]] == [0, 2]
    answer = shared.response(shared.send("a", max_records=1, share_acquire_mode=1))
    (row,) = answer.responses[0].partitions
    assert [(one.first_offset, one.last_offset) for one in row.acquired_records] == [(4, 4)]


def test_a_fetch_waits_for_records_for_a_release_and_for_a_lock_to_end(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    shared.fetch("a", max_wait_ms=0)
    waiting = shared.send("a")
    assert shared.response(waiting) is None
    shared.harness.produce("t", records(2))
    assert shared.response(waiting).responses[0].partitions[0].acquired_records[0].last_offset == 1
    waiting = shared.send("bb", max_wait_ms=60_000)
    assert shared.response(waiting) is None
    assert shared.acknowledge("a", (0, 0, RELEASE)) == ErrorCode.NONE
    (one,) = shared.response(waiting).responses[0].partitions[0].acquired_records
    assert (one.first_offset, one.last_offset, one.delivery_count) == (0, 0, 2)
    waiting = shared.send("ccc", max_wait_ms=60_000)
    shared.harness.pass_time(LOCK_MS - 100)
    assert shared.harness.response(waiting) is None
    shared.harness.pass_time(200)
    (one,) = shared.harness.response(waiting).responses[0].partitions[0].acquired_records
    assert (one.first_offset, one.last_offset, one.delivery_count) in ((0, 0, 3), (1, 1, 2))


def test_a_fetch_without_enough_bytes_takes_what_there_is_after_its_time(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    shared.harness.produce("t", records(1))
    waiting = shared.send("a", min_bytes=10_000, max_wait_ms=500)
    shared.harness.pass_time(400)
    assert shared.harness.response(waiting) is None
    shared.harness.pass_time(200)
    assert shared.harness.response(waiting).responses[0].partitions[0].acquired_records


def test_a_lock_is_renewed__kip1222(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    shared.harness.produce("t", records(1))
    assert shared.fetch("a") == [(0, 0, 1)]
    shared.harness.pass_time(LOCK_MS - 1_000)
    assert shared.acknowledge("a", (0, 0, RENEW)) == ErrorCode.INVALID_REQUEST  # it does not say that it does
    assert shared.acknowledge("a", (0, 0, RENEW), is_renew_ack=True) == ErrorCode.NONE
    shared.harness.pass_time(LOCK_MS - 1_000)
    assert shared.fetch("bb", max_wait_ms=0) == []
    shared.harness.pass_time(2_000)
    assert shared.fetch("bb", max_wait_ms=0) == [(0, 0, 2)]
    refused = shared.response(shared.send("bb", ((0, 0, RENEW),), is_renew_ack=True))
    assert refused.error_code == ErrorCode.INVALID_REQUEST  # it asks for records as well
    shared.epochs["bb"] -= 1
    nothing = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
    assert shared.fetch("bb", (0, 0, RENEW), is_renew_ack=True, **nothing) == []


@pytest.mark.parametrize("is_lost", [False, True])
def test_what_a_member_holds_is_available_after_its_session(tmp_path: Path, is_lost: bool) -> None:
    shared = Shared(tmp_path)
    shared.harness.produce("t", records(3))
    assert shared.fetch("a") == [(0, 2, 1)]
    assert shared.fetch("bb", max_wait_ms=0) == []
    if is_lost:
        shared.harness.executor.connection_lost(61)
        shared.harness.pass_time(5)
    else:
        assert shared.acknowledge("a", (0, 0, ACCEPT), epoch=-1) == ErrorCode.NONE
        assert shared.acknowledge("a", (1, 1, ACCEPT), epoch=2) == ErrorCode.SHARE_SESSION_NOT_FOUND
    first = 0 if is_lost else 1
    assert shared.fetch("bb") == [(first, 2, 2)]


def test_a_group_goes_on_where_it_was_after_its_last_connection_and_a_restart(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    shared.harness.produce("t", records(4))
    assert shared.fetch("a") == [(0, 3, 1)]
    assert shared.acknowledge("a", (0, 0, ACCEPT), (2, 2, ACCEPT)) == ErrorCode.NONE
    assert shared.acknowledge("a", (1, 1, RELEASE)) == ErrorCode.NONE
    shares = shared.harness.broker.coordinators.shares
    shared.harness.executor.connection_lost(61)
    shared.harness.pass_time(5)
    assert (len(shares.partitions), len(shares.sessions)) == (0, 0)
    shared.epochs.clear()
    assert shared.fetch("a", connection_id=99) == [(1, 1, 2), (3, 3, 2)]
    shared.restart(tmp_path)
    assert shared.fetch("a", connection_id=98) == [(1, 1, 2), (3, 3, 2)]  # their holder is not kept
    assert shared.summary() == (1, 1)


def test_records_are_delivered_so_often_and_then_archived(tmp_path: Path) -> None:
    shared = Shared(tmp_path, group_share_delivery_count_limit="2")
    shared.harness.produce("t", records(1))
    assert shared.fetch("a") == [(0, 0, 1)]
    assert shared.fetch("a", (0, 0, RELEASE)) == [(0, 0, 2)]
    assert shared.fetch("a", (0, 0, RELEASE), max_wait_ms=0) == []
    assert shared.summary() == (0, 1)


def test_a_group_has_configs_of_its_own(tmp_path: Path) -> None:
    shared = Shared(tmp_path, start=-1)
    shared.harness.produce("t", records(2))
    shared.configure("share.auto.offset.reset", "earliest")
    shared.configure("share.record.lock.duration.ms", "20000")
    answer = shared.response(shared.send("a"))
    assert answer.acquisition_lock_timeout_ms == 20_000
    assert len(answer.responses[0].partitions[0].acquired_records) == 1
    shared.harness.pass_time(20_001)
    assert shared.fetch("a") == [(0, 1, 2)]


def test_a_group_begins_at_the_end_or_at_a_time(tmp_path: Path) -> None:
    shared = Shared(tmp_path, start=-1)
    now_ms = shared.harness.clock.ms
    shared.harness.produce("t", records(1, timestamp_ms=now_ms - 7_200_000))
    shared.harness.produce("t", records(1, timestamp_ms=now_ms - 60_000))
    assert shared.fetch("a", max_wait_ms=0) == []
    waiting = shared.send("a")
    shared.harness.produce("t", records(1))
    assert shared.response(waiting).responses[0].partitions[0].acquired_records[0].first_offset == 2
    shared.harness.executor.connection_lost(61)
    shared.harness.pass_time(5)
    shared.initialize(-1, epoch=2)
    shared.configure("share.auto.offset.reset", "by_duration:PT1H")
    shared.epochs.clear()
    assert shared.fetch("a", connection_id=99) == [(1, 2, 1)]


def test_sessions_have_epochs_and_a_limit(tmp_path: Path) -> None:
    shared = Shared(tmp_path, group_share_max_share_sessions="200")
    assert shared.response(shared.send("a", epoch=3)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert shared.response(shared.send("a", ((0, 0, ACCEPT),), epoch=0)).error_code == (
        ErrorCode.INVALID_REQUEST
    )
    shared.epochs.clear()
    shared.fetch("a", max_wait_ms=0)
    assert shared.response(shared.send("a", epoch=2)).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert shared.acknowledge("a", epoch=0) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    for number in range(199):
        shared.send(f"m{number}", max_wait_ms=0, connection_id=100 + number)
    refused = shared.send("z", max_wait_ms=300, connection_id=99)
    assert shared.response(refused) is None
    shared.harness.pass_time(300)
    assert shared.harness.response(refused).error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED


def test_an_unknown_mode_of_acquisition_fails_the_fetch_alone__kip1206(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    shared.harness.produce("t", records(2))
    assert shared.fetch("a", max_records=1, share_acquire_mode=1) == [(0, 0, 1)]
    answer = shared.response(shared.send("a", ((0, 0, ACCEPT),), share_acquire_mode=2))
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert shared.summary() == (0, 1)  # one record is done
    assert shared.fetch("a") == [(1, 1, 1)]


def test_an_answer_over_a_quota_has_the_results_of_acknowledgements(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    shared.harness.produce("t", records(2))
    assert shared.fetch("a") == [(0, 1, 1)]
    shared.harness.produce("t", records(1))
    set_quota(shared.harness, "request_percentage", 1)
    assert shared.fetch("bb") == [(2, 2, 1)]
    shared.harness.broker.took(200_000_000)
    shared.harness.produce("t", records(1))
    answer = shared.response(shared.send("a", ((0, 0, ACCEPT), (2, 2, ACCEPT))))
    assert answer.throttle_time_ms > 0
    (row,) = answer.responses[0].partitions
    assert row.acknowledge_error_code == ErrorCode.INVALID_RECORD_STATE
    assert not row.records and not row.acquired_records


def test_deleted_records_are_skipped_and_a_deleted_topic_is_unknown(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    for _ in range(3):
        shared.harness.produce("t", records(1))
    hosted = shared.harness.broker.replicas.get("t", 0)
    assert hosted is not None and hosted.partition is not None
    shared.harness.broker.follow_up(hosted, hosted.partition.move_log_start(2))
    shared.harness.pass_time(5)
    assert shared.fetch("a") == []
    assert shared.fetch("a") == [(2, 2, 1)]
    shared.harness.delete_topic("t")
    answer = shared.response(shared.send("a", max_wait_ms=0))
    assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not len(shared.harness.broker.coordinators.shares.partitions)


def test_a_partition_without_a_log_is_not_read(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    shared.harness.produce("t", records(1))
    assert shared.fetch("a") == [(0, 0, 1)]
    hosted = shared.harness.broker.replicas.get("t", 0)
    assert hosted is not None
    shared.harness.broker_step(LogsFailed((("t", 0),), (), {}))
    assert not len(shared.harness.broker.coordinators.shares.partitions)
    assert shared.acknowledge("a", (0, 0, ACCEPT)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (row,) = shared.response(shared.send("a", max_wait_ms=0)).responses[0].partitions
    assert row.error_code and row.error_message is None  # Kafka's brokers leave the text out


def test_a_negative_size_is_an_error_of_each_partition_that_can_be_read(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    shared.harness.produce("t", records(1))
    (row,) = shared.response(shared.send("a", max_bytes=-1)).responses[0].partitions
    assert (row.error_code, row.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert shared.fetch("a") == [(0, 0, 1)]


def test_of_a_partition_that_is_acknowledged_twice_in_a_request_the_last_row_counts(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    shared.harness.produce("t", records(2))
    assert shared.fetch("a") == [(0, 1, 1)]
    malformed = AcknowledgePartition(0, [AcknowledgementBatch(1, 0, (ACCEPT,))])
    sound = AcknowledgePartition(0, [AcknowledgementBatch(0, 0, (ACCEPT,))])
    for epoch, rows, errors in (
        (1, [sound, malformed], [ErrorCode.INVALID_REQUEST]),
        (2, [malformed, AcknowledgePartition(0)], []),
        (3, [malformed, sound], [ErrorCode.NONE]),
    ):
        request = ShareAcknowledgeRequest("g", "a", epoch, topics=[AcknowledgeTopic(shared.topic_id, rows)])
        answer = shared.harness.client_ask(ApiKey.SHARE_ACKNOWLEDGE, 2, request)
        assert [row.error_code for topic in answer.responses for row in topic.partitions] == errors
    assert shared.summary() == (0, 1)


def test_an_error_that_has_nothing_to_do_with_the_leader_names_none(tmp_path: Path) -> None:
    """With a 0, as from Kafka, franz-go fetches from broker 0 from then on, even if there is none."""
    shared = Shared(tmp_path)
    shared.harness.produce("t", records(1))
    assert shared.fetch("a") == [(0, 0, 1)]
    assert shared.fetch("bb", max_wait_ms=0) == []
    batches = [AcknowledgementBatch(0, 0, (ACCEPT,))]
    topics = [AcknowledgeTopic(shared.topic_id, [AcknowledgePartition(0, batches)])]
    request = ShareAcknowledgeRequest("g", "bb", 1, topics=topics)
    answer = shared.harness.client_ask(ApiKey.SHARE_ACKNOWLEDGE, 2, request)
    (row,) = answer.responses[0].partitions
    assert row.error_code == ErrorCode.INVALID_RECORD_STATE
    assert (row.current_leader.leader_id, row.current_leader.leader_epoch) == (-1, -1)
    shared.harness.delete_topic("t")
    answer = shared.response(shared.send("a", max_wait_ms=0))
    (row,) = answer.responses[0].partitions
    assert row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (row.current_leader.leader_id, row.current_leader.leader_epoch) == (-1, -1)
    assert not answer.node_endpoints
