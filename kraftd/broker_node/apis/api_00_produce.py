"""Produce (0), v3-13: appends records to partitions that this broker leads.

Authorization: WRITE on each topic; WRITE on the transactional id for records of a transaction. Sent by:
producers. Answered when the records are written (acks=1) or replicated (acks=all); never for acks=0, where an
error closes the connection. Errors: TRANSACTIONAL_ID_AUTHORIZATION_FAILED, INVALID_PRODUCER_ID_MAPPING (whole
request). Per partition: TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID;
NOT_LEADER_OR_FOLLOWER with the current leader (KIP-951); INVALID_TXN_STATE, TRANSACTION_ABORTABLE,
CONCURRENT_TRANSACTIONS of the verification (KIP-890); INVALID_TOPIC_EXCEPTION for internal topics;
INVALID_REQUIRED_ACKS, NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND, REQUEST_TIMED_OUT,
KAFKA_STORAGE_ERROR. What a batch may be refused for is in `kraftd.partition.validation` and `producers`.
POLICY_VIOLATION for the metadata topic, which the quorum alone writes.
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.answers.topics import INTERNAL_TOPICS
from kraftd.broker_node.coordination.verification import Batch, Guards, Support
from kraftd.broker_node.partitions.produces import NO_OFFSET, UnderWay
from kraftd.ground.pace import Pace, Slices, at_once
from kraftd.ground.refusal import Refusal
from kraftd.groups.transactions.partitions import Results
from kraftd.groups.transactions.transaction import TopicPartition
from kraftd.messages.produce_response import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kraftd.partition.partition import ACKS_ALL, VALID_ACKS, Produced
from kraftd.partition.producer_entry import TRANSACTIONAL
from kraftd.partition.producers import NO_GUARD
from kraftd.partition.validation import ProduceRefusal
from kraftd.requests.permission import Permission
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_UUID, Uuid
from kraftd.wire.batch import MAGIC
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.records import NO_PRODUCER_ID

if TYPE_CHECKING:
    from kraftd.broker_node.node import BrokerNode
    from kraftd.broker_node.partitions.replicas import Hosted
    from kraftd.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
    from kraftd.requests.call import Call
    from kraftd.requests.holds import Hold

PARTITION_US = 80  # to judge a batch and to write it
BYTES_A_US = 1_000
ADMIN_CLIENT_ID = "__admin_client"  # Kafka lets it write internal topics
SIZE_AT, MAGIC_AT, ATTRIBUTES_LOW_AT, PRODUCER_AT = 8, 16, 22, 43  # in a batch's header
_SIZE = Layout(">i")  # of what follows it
_SIZE_END = SIZE_AT + _SIZE.size
_PRODUCER = Layout(">qhi")  # its id, its epoch, the first sequence number
PRODUCER_END = PRODUCER_AT + _PRODUCER.size
KNOWS_ABORTABLE_VERSION, ADDS_PARTITIONS_VERSION = 11, 12  # KIP-890
# Why a partition is not verified: the producer is to send again, without looking for another leader.
_RETRIABLE = frozenset(
    (
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    )
)
_UNVERIFIED = "Unable to verify the partition has been added to the transaction."
Batches = dict[tuple[str, Uuid, int], Batch]


def handle(node: BrokerNode, call: Call) -> Slices[None] | None:
    if node.replicas.opening_count and not call.is_large and _waits_for_logs(node, call):
        return None
    if not call.is_large and _append_plain(node, call):
        return None
    id = call.message.transactional_id
    batches = _transactional_batches(call.message)
    if batches:
        if not node.coordinators.can_take(call):
            return None
        writes = AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID
        if id is None or not node.boundary.allows(call, *writes, id):
            raise Refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        _append_verified(node, call, id, batches)
        return None
    appending = _append_all(node, call, {}, {})
    if call.is_large:
        return appending  # later requests of the connection wait for it
    for _ in appending:
        pass  # it has one slice
    return None


def _waits_for_logs(node: BrokerNode, call: Call) -> bool:
    """Return whether a request waits for logs of its partitions that are being made."""
    writes = AclOperation.WRITE, AclResourceType.TOPIC
    partitions = []
    for topic in call.message.topic_data:
        name = topic.name if topic.topic_id == ZERO_UUID else node.topic_name(topic.topic_id)
        if name is not None and node.boundary.allows_quietly(call, *writes, name):
            partitions += [(name, one.index) for one in topic.partition_data]
    until_ms = node.now_ms + max(0, call.message.timeout_ms)
    return node.produces.log_waits.holds(call, partitions, until_ms)


def _append_verified(node: BrokerNode, call: Call, transactional_id: str, batches: Batches) -> None:
    """Append the records of a transaction once its coordinator has confirmed their partitions (KIP-890).

    The first batch of a transaction may be verified again and again. The next one must not overtake it, so
    its connection is held meanwhile.
    """
    verified: dict[TopicPartition, Batch] = {}
    for (name, topic_id, index), batch in batches.items():
        found = node.topic_name(topic_id) if topic_id != ZERO_UUID else name
        writes = AclOperation.WRITE, AclResourceType.TOPIC
        is_here = found is not None and node.replicas.get(found, index) is not None
        if batch.producer_id == NO_PRODUCER_ID:
            continue  # there is nothing to verify: it is refused with its records
        if found is not None and is_here and node.boundary.allows_quietly(call, *writes, found):
            verified[found, index] = batch
    if len({batch[:2] for batch in verified.values()}) > 1:
        raise Refusal(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    call.settled = True
    version = call.version
    support = Support(version >= ADDS_PARTITIONS_VERSION, version >= KNOWS_ABORTABLE_VERSION)

    hold = node.boundary.holds.hold(call.connection_id)

    def then(errors: Results, guards: Guards) -> None:
        appending = _append_all(node, call, errors, guards)
        if call.is_large:
            node.boundary.large.begin(call, _to_the_end(appending, hold))
        else:
            node.guarded(call, lambda: at_once(appending))
            hold.end()

    try:
        node.verifications.verify(transactional_id, verified, support, then, is_repeated=support.adds)
    except Exception:
        hold.end()
        raise


def _to_the_end(appending: Slices[None], hold: Hold) -> Slices[None]:
    try:
        yield from appending
    finally:
        hold.end()


def _append_plain(node: BrokerNode, call: Call) -> bool:
    """Append the records of a request of the usual kind: of one partition that this broker leads, which no
    other replica has to acknowledge. Return False for any other request, with nothing done.
    """
    request = call.message
    acks, topics = request.acks, request.topic_data
    if len(topics) != 1 or node.boundary.has_authorizer:
        return False
    topic = topics[0]
    if len(topic.partition_data) != 1:
        return False
    data = topic.partition_data[0]
    records = data.records
    if records is None or len(records) < PRODUCER_END or records[ATTRIBUTES_LOW_AT] & TRANSACTIONAL:
        return False
    name, topic_id, error = _judge(node, None, topic)
    hosted = node.replicas.get(name, data.index)
    if error or hosted is None or topic_id != hosted.topic_id or name in INTERNAL_TOPICS:
        return False
    partition = hosted.partition
    if partition is None or (acks != 1 and (acks != ACKS_ALL or partition.followers)):
        return False
    answers = hosted.answers_like(call)
    if not node.has_taken(hosted):
        node.replicas.refresh_config(hosted)
    produced = partition.produce(records, call.version, acks, node.wall_ms)
    if isinstance(produced, ProduceRefusal) or produced.append is None:
        answer = PartitionProduceResponse(data.index, 0, NO_OFFSET)
        row = TopicProduceResponse(topic.name, topic.topic_id, [answer])
        under_way = UnderWay(acks, request.timeout_ms, call, ProduceResponse([row]))
        call.settled = True
        _finish(node, under_way, hosted, data, answer, produced)
        node.produces.handled(under_way, node.now_ms)
        return True
    hosted.traffic.appended(len(records), produced.required_offset - produced.base_offset)
    node.append(hosted, produced.append)
    node.produces.add_plain(call, hosted, produced, answers, node.now_ms)
    return True


def _append_all(node: BrokerNode, call: Call, errors: Results, guards: Guards) -> Slices[None]:
    request = call.message
    writing = None
    if node.boundary.has_authorizer:
        writing = Permission(node.boundary, call, AclOperation.WRITE, AclResourceType.TOPIC)
    response = ProduceResponse()
    under_way = UnderWay(request.acks, request.timeout_ms, call, response)
    call.settled = True
    pace = Pace() if call.is_large else None
    for topic in request.topic_data:
        name, topic_id, error = _judge(node, writing, topic)
        answers = TopicProduceResponse(topic.name, topic.topic_id)
        for one in topic.partition_data:
            answer = PartitionProduceResponse(one.index, error, NO_OFFSET)
            answers.partition_responses.append(answer)
            place = name, one.index
            if not error and place in errors:
                _refuse_unverified(answer, errors[place], call.version)
            elif not error:
                _append(node, under_way, name, topic_id, one, answer, guards.get(place, NO_GUARD))
            if answer.error_code:
                under_way.has_errors = True
            if pace is not None and pace.spent(PARTITION_US + len(one.records or b"") // BYTES_A_US):
                yield
        response.responses.append(answers)
    if writing is not None:
        writing.end()
    node.produces.handled(under_way, node.now_ms)


def _transactional_batches(request: ProduceRequest) -> Batches:
    """The first batches of partitions that belong to a transaction. As in Kafka, one that is cut is none."""
    found = {}
    for topic in request.topic_data:
        for one in topic.partition_data:
            records = one.records
            if (
                records is not None
                and len(records) >= PRODUCER_END
                and records[ATTRIBUTES_LOW_AT] & TRANSACTIONAL
                and records[MAGIC_AT] == MAGIC
                and len(records) >= _SIZE_END + _SIZE.unpack_from(records, SIZE_AT)[0]
            ):
                batch = Batch(*_PRODUCER.unpack_from(records, PRODUCER_AT))
                found[topic.name, topic.topic_id, one.index] = batch
    return found


def _refuse_unverified(answer: PartitionProduceResponse, error: ErrorCode, version: int) -> None:
    """Say why a partition is not verified, with an error for which its producer does the right thing."""
    is_retriable = error in _RETRIABLE or (
        error is ErrorCode.CONCURRENT_TRANSACTIONS and version < ADDS_PARTITIONS_VERSION
    )
    answer.error_code = ErrorCode.NOT_ENOUGH_REPLICAS if is_retriable else error
    if is_retriable:
        answer.error_message = f"{_UNVERIFIED} Underlying error: {error.name}"
    elif error is ErrorCode.INVALID_TXN_STATE:
        answer.error_message = "Partition was not added to the transaction"


def _judge(node: BrokerNode, writing: Permission | None, topic: TopicProduceData) -> tuple[str, Uuid, int]:
    """The name and the id of a topic, and the error of all of its partitions, if there is one. Without an
    authorizer, everything may be written.
    """
    name, topic_id = topic.name, topic.topic_id
    if topic_id != ZERO_UUID:
        is_metadata = topic_id == METADATA_TOPIC_ID
        found = METADATA_TOPIC if is_metadata else node.topic_name(topic_id)
        if found is None:
            return "", topic_id, ErrorCode.UNKNOWN_TOPIC_ID
        name = found
    else:
        topic_id = node.view.context.image.topic_id(name)
    if writing is not None and not writing.allows(name):
        return name, topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return name, topic_id, ErrorCode.POLICY_VIOLATION if name == METADATA_TOPIC else 0


def _append(
    node: BrokerNode,
    under_way: UnderWay,
    name: str,
    topic_id: Uuid,
    data: PartitionProduceData,
    answer: PartitionProduceResponse,
    guard: int,
) -> None:
    """Append the records of one partition, or say in its answer why not.

    The image may know a new topic of that name while the log is still that of the former one.
    """
    call = under_way.call
    assert call is not None
    hosted = node.replicas.get(name, data.index)
    is_here = hosted is not None and hosted.partition is not None and topic_id != ZERO_UUID
    missing = ErrorCode.NONE if is_here else node.missing_partition(name, data.index)
    if missing is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        answer.error_code = missing
    elif under_way.acks not in VALID_ACKS:
        answer.error_code = ErrorCode.INVALID_REQUIRED_ACKS
    elif name in INTERNAL_TOPICS and call.client_id != ADMIN_CLIENT_ID:
        answer.error_code = ErrorCode.INVALID_TOPIC_EXCEPTION
    elif hosted is None or hosted.partition is None:
        answer.error_code = missing
    elif topic_id != hosted.topic_id:
        answer.error_code = ErrorCode.UNKNOWN_TOPIC_ID
    else:
        if not node.has_taken(hosted):
            node.replicas.refresh_config(hosted)
        records = data.records or b""
        produced = hosted.partition.produce(records, call.version, under_way.acks, node.wall_ms, guard=guard)
        _finish(node, under_way, hosted, data, answer, produced)


def _finish(
    node: BrokerNode,
    under_way: UnderWay,
    hosted: Hosted,
    data: PartitionProduceData,
    answer: PartitionProduceResponse,
    produced: Produced | ProduceRefusal,
) -> None:
    """Have the records of one partition written that it has taken, or say in its answer why not."""
    partition, traffic, size_bytes = hosted.partition, hosted.traffic, len(data.records or b"")
    if isinstance(produced, ProduceRefusal):
        assert partition is not None
        traffic.refused(produced, size_bytes)
        _refuse(answer, produced, partition.log_start_offset)
        under_way.has_errors = True
        return
    answer.base_offset = produced.base_offset
    answer.log_append_time_ms = produced.append_time_ms
    answer.log_start_offset = produced.log_start_offset
    traffic.appended(size_bytes, produced.required_offset - produced.base_offset)
    if produced.append is not None:
        node.append(hosted, produced.append)
    node.produces.add(under_way, hosted, answer, produced)


def _refuse(answer: PartitionProduceResponse, refusal: ProduceRefusal, log_start_offset: int) -> None:
    answer.error_code = refusal.error
    answer.error_message = refusal.message
    answer.record_errors = [
        BatchIndexAndErrorMessage(one.batch_index, one.message) for one in refusal.record_errors
    ]
    if refusal.shows_log_start:
        answer.log_start_offset = log_start_offset
