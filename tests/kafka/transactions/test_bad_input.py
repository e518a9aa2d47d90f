"""What zombies and the past send to coordinators and leaders: Kafka's code, and nothing is changed by it.

Each case is sent to a stock node and to kraftd's; the state that clients see is compared before and after.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from bench.coordinator_client import Member, commit_of, consumer_member, find_coordinator, joined
from kraftd.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kraftd.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kraftd.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kraftd.messages.describe_groups_request import DescribeGroupsRequest
from kraftd.messages.describe_transactions_request import DescribeTransactionsRequest
from kraftd.messages.end_txn_request import EndTxnRequest
from kraftd.messages.heartbeat_request import HeartbeatRequest
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kraftd.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kraftd.messages.offset_fetch_request import OffsetFetchRequest
from kraftd.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kraftd.messages.sync_group_request import SyncGroupRequest
from kraftd.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kraftd.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.records import build_records_batch
from testkit.client import Client
from testkit.node import CombinedNode, Kind
from testkit.process import HOST, wait_until

pytestmark = pytest.mark.kafka

TOPIC, ID = "bad-input", "bad-input-id"
WRITTEN = 7  # batches of an idempotent producer
YEARS_MS = 3 * 365 * 86_400_000  # more than producer.id.expiration.ms
CLASSIC, CONSUMER = "bad-input-classic", "bad-input-consumer"
Cases = dict[str, ErrorCode]


def code_of(answer: Any) -> ErrorCode:
    """The first error of an answer, wherever it is."""
    rows = [answer]
    while rows:
        row = rows.pop(0)
        code = getattr(row, "error_code", 0) or getattr(row, "partition_error_code", 0)
        if code:
            return ErrorCode(code)
        fields = [getattr(row, name) for name in getattr(row, "__struct_fields__", ())]
        rows += [one for value in fields if isinstance(value, list) for one in value]
    return ErrorCode.NONE


class Sender:
    """A connection to one node. `cases`: what each request of a zombie was answered."""

    def __init__(self, node: CombinedNode) -> None:
        self.node = node
        self.client = Client(HOST, node.client_port)
        self.cases: Cases = {}

    def __repr__(self) -> str:
        return f"<Sender to {self.node!r}, {len(self.cases)} cases>"

    def case(self, name: str, request: Any, version: int) -> None:
        """Send what must be refused, or have no effect."""
        before = self.state()
        self.cases[name] = code_of(self.client.call(request, version))
        assert self.state() == before, f"{name} at {self.node!r}"

    def must(self, request: Any, version: int) -> Any:
        """Send what must succeed, once the former transaction is complete."""
        answers: list[Any] = []

        def succeeds() -> bool:
            answers[:] = [self.client.call(request, version)]
            return code_of(answers[0]) is not ErrorCode.CONCURRENT_TRANSACTIONS

        wait_until(succeeds, "the former transaction is complete", 30, poll_s=0.1)
        assert code_of(answers[0]) is ErrorCode.NONE, answers
        return answers[0]

    def state(self) -> list[Any]:
        """What clients see of transactions, groups and the partition."""
        described = self.client.call(DescribeTransactionsRequest((ID,)), 0).transaction_states
        found: list[Any] = [(one.transaction_state, one.producer_epoch, one.topics) for one in described]
        found += self.marks()
        found.append(self.client.call(DescribeGroupsRequest((CLASSIC,)), 5).groups)
        found.append(self.client.call(ConsumerGroupDescribeRequest((CONSUMER,)), 1).groups)
        found += [self.client.call(OffsetFetchRequest(one, None), 7).topics for one in (CLASSIC, CONSUMER)]
        return found

    def marks(self) -> list[Any]:
        """The end of the partition, and what a reader of committed records sees of it."""
        rows = [ListOffsetsTopic(TOPIC, [ListOffsetsPartition(0, -1, -1)])]
        return [self.client.call(ListOffsetsRequest(-1, isolation, rows), 7).topics for isolation in (0, 1)]


def batch(id: int, epoch: int, sequence: int, *, transactional: bool = False, age_ms: int = 0) -> bytes:
    rows = [(round(time.time() * 1000) - age_ms, b"k", b"v", [])]
    made = build_records_batch(
        rows,
        attributes=16 if transactional else 0,
        producer_id=id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    return bytes(made)


def produce(records: bytes, transactional_id: str | None = None) -> ProduceRequest:
    data = [TopicProduceData(TOPIC, partition_data=[PartitionProduceData(0, records)])]
    return ProduceRequest(transactional_id, -1, 30_000, data)


def add(id: int, epoch: int) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest([], ID, id, epoch, [AddPartitionsToTxnTopic(TOPIC, (0,))])


def txn_commit(id: int, epoch: int, member: Member | None = None) -> TxnOffsetCommitRequest:
    rows = [TxnOffsetCommitRequestTopic(TOPIC, [TxnOffsetCommitRequestPartition(0, 7)])]
    request = TxnOffsetCommitRequest(ID, CLASSIC, id, epoch, topics=rows)
    if member is not None:
        request.generation_id, request.member_id = member.generation, member.member_id
    return request


def markers(id: int, epoch: int, coordinator_epoch: int) -> WriteTxnMarkersRequest:
    topics = [WritableTxnMarkerTopic(TOPIC, (0,))]
    return WriteTxnMarkersRequest([WritableTxnMarker(id, epoch, True, topics, coordinator_epoch)])


def zombies_of_a_transactional_id(sender: Sender) -> None:
    """A second producer has taken the id; then ends are repeated, and markers come from the past."""
    init = InitProducerIdRequest(ID, 60_000)
    find_coordinator(sender.client, ID, is_transaction=True)
    wait_until(lambda: not sender.client.call(init, 4).error_code, "the coordinator serves", 30, poll_s=0.1)
    old = sender.must(init, 4)
    sender.must(add(old.producer_id, old.producer_epoch), 3)
    sender.must(produce(batch(old.producer_id, old.producer_epoch, 0, transactional=True), ID), 9)
    new = sender.must(init, 4)
    id, epoch = new.producer_id, new.producer_epoch
    assert (id, epoch) == (old.producer_id, old.producer_epoch + 2)
    for name, stale in (("old epoch", old.producer_epoch), ("epoch to come", epoch + 1)):
        sender.case(f"add, {name}", add(id, stale), 3)
        sender.case(f"add offsets, {name}", AddOffsetsToTxnRequest(ID, id, stale, CLASSIC), 3)
        sender.case(f"commit, {name}", EndTxnRequest(ID, id, stale, True), 4)
        sender.case(f"abort, {name}", EndTxnRequest(ID, id, stale, False), 4)
        sender.case(f"init, {name}", InitProducerIdRequest(ID, 60_000, id, stale), 4)
    stale_batch = batch(id, old.producer_epoch, 1, transactional=True)
    sender.case("produce, old epoch", produce(stale_batch, ID), 9)
    sender.case("produce outside of a transaction", produce(batch(id, epoch, 0, transactional=True), ID), 9)
    sender.case("offsets, old epoch", txn_commit(id, old.producer_epoch), 3)
    sender.case("another producer id", add(id + 1_000, epoch), 3)
    sender.case("end without a transaction", EndTxnRequest(ID, id, epoch, True), 4)

    sender.must(add(id, epoch), 3)
    sender.must(produce(batch(id, epoch, 0, transactional=True), ID), 9)
    sender.case("markers of a former coordinator", markers(id, epoch, -2), 1)
    sender.case("markers of an old epoch", markers(id, old.producer_epoch, 0), 1)
    sender.must(EndTxnRequest(ID, id, epoch, True), 4)
    complete = lambda: sender.state()[0][0] == "CompleteCommit"  # noqa: E731
    wait_until(complete, "the transaction is complete", 30, poll_s=0.1)
    sender.case("the same end again", EndTxnRequest(ID, id, epoch, True), 4)
    sender.case("the other end", EndTxnRequest(ID, id, epoch, False), 4)
    sender.case("produce after the end", produce(batch(id, epoch, 1, transactional=True), ID), 9)


def members_of_the_past(sender: Sender) -> None:
    """Members of generations and epochs that were, or are to come."""
    classic = joined(sender.client, CLASSIC)
    consumer = consumer_member(sender.client, CONSUMER, TOPIC)
    for name, shift in (("past", -1), ("future", 1)):
        other = classic._replace(generation=classic.generation + shift)
        sender.case(f"heartbeat, {name}", HeartbeatRequest(*other), 4)
        sender.case(f"sync, {name}", SyncGroupRequest(*other, None, "consumer", "range"), 5)
        sender.case(f"commit of a member, {name}", commit_of(other, TOPIC, (0,)), 8)
        elsewhere = consumer._replace(generation=consumer.generation + shift)
        if shift > 0:  # the epoch before may be that of a member that missed an answer
            sender.case(
                f"consumer heartbeat, {name}",
                ConsumerGroupHeartbeatRequest(*elsewhere[:1], elsewhere.member_id, elsewhere.generation),
                0,
            )
        sender.case(f"consumer commit, {name}", commit_of(elsewhere, TOPIC, (0,)), 9)
    stranger = classic._replace(member_id="stranger")
    sender.case("heartbeat of a stranger", HeartbeatRequest(*stranger), 4)
    sender.case("commit of a stranger", commit_of(stranger, TOPIC, (0,)), 8)
    sender.case("leave of a stranger", LeaveGroupRequest(CLASSIC, "", [MemberIdentity("stranger")]), 4)
    unknown = ConsumerGroupHeartbeatRequest(CONSUMER, "stranger", 3)
    sender.case("consumer heartbeat of a stranger", unknown, 0)
    sender.case("classic heartbeat to consumers", HeartbeatRequest(CONSUMER, 1, "stranger"), 4)


def write_sequences(sender: Sender, age_ms: int = 0) -> int:
    """Write batches of an idempotent producer; its id."""
    id: int = sender.must(InitProducerIdRequest(None, 60_000), 4).producer_id
    for sequence in range(WRITTEN):
        sender.must(produce(batch(id, 0, sequence, age_ms=age_ms)), 9)
    return id


def sequences_after_a_kill(sender: Sender, id: int) -> None:
    """The producer goes on at a node that has lost what it kept in memory."""
    sender.client = Client(HOST, sender.node.client_port)
    next_one = produce(batch(id, 0, WRITTEN))
    wait_until(lambda: not code_of(sender.client.call(next_one, 9)), "it serves", 60, poll_s=0.1)
    before = sender.marks()
    for name, sequence in (("a gap", WRITTEN + 2), ("one kept", WRITTEN - 1), ("one forgotten", 1)):
        sender.cases[name] = code_of(sender.client.call(produce(batch(id, 0, sequence)), 9))
    assert sender.marks() == before
    sender.must(produce(batch(id, 1, 0)), 9)
    before = sender.marks()
    sender.cases["the epoch before"] = code_of(sender.client.call(produce(batch(id, 0, WRITTEN + 1)), 9))
    sender.cases["a new epoch not from 0 on"] = code_of(sender.client.call(produce(batch(id, 2, 5)), 9))
    assert sender.marks() == before


def sequences_of_the_expired(sender: Sender, id: int) -> None:
    """A producer whose batches are dated years ago is not known after the recovery of the log."""
    sender.must(produce(batch(id, 0, WRITTEN, age_ms=YEARS_MS)), 9)
    before = sender.marks()
    for name, sequence in (("expired, the last", WRITTEN - 1), ("expired, one before", WRITTEN - 2)):
        sender.cases[name] = code_of(sender.client.call(produce(batch(id, 0, sequence, age_ms=YEARS_MS)), 9))
    assert sender.marks() == before


def test_the_past_is_answered_as_by_kafka_and_changes_nothing(
    whole_kafkas: dict[Kind, CombinedNode],
) -> None:
    senders, producers = [Sender(node) for node in whole_kafkas.values()], []
    for sender in senders:
        admin = AdminClient({"bootstrap.servers": sender.node.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(30)
        members_of_the_past(sender)
        zombies_of_a_transactional_id(sender)
        producers.append((write_sequences(sender), write_sequences(sender, YEARS_MS)))
    for sender in senders:
        sender.node.kill()
        sender.node.start()
    for sender, (id, expired) in zip(senders, producers, strict=True):
        sender.node.wait_ready()
        sequences_after_a_kill(sender, id)
        sequences_of_the_expired(sender, expired)
    kraftd, apache = (sender.cases for sender in senders)
    assert kraftd == apache
    accepted = {name for name, code in kraftd.items() if code is ErrorCode.NONE}
    assert accepted == {"the same end again", "one kept"}
