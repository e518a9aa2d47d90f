"""What a broker does for producers' transactions, API by API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.ground.effect import Effect
from kraftd.ground.event import Event
from kraftd.ground.pace import Pace, Slices, at_once
from kraftd.ground.refusal import Refusal
from kraftd.groups.call import Call, Topics
from kraftd.groups.effects import RespondInSlices
from kraftd.groups.gathered import Gathered
from kraftd.groups.shard import ShardStatus
from kraftd.groups.shards import Shards
from kraftd.groups.transactions.config import TransactionConfig
from kraftd.groups.transactions.effects import MarkersAnswered, ProducerIdTaken, TakeProducerId
from kraftd.groups.transactions.ending import End, decided, fenced
from kraftd.groups.transactions.initializing import Expected, NeedsProducerId, initialized
from kraftd.groups.transactions.partitions import (
    BROKERS_VERSION,
    Added,
    Asked,
    Results,
    refused_places,
    response_of,
    transactions_of,
)
from kraftd.groups.transactions.seen import compiled, described, listed, unknown_states
from kraftd.groups.transactions.shard import TransactionShard
from kraftd.groups.transactions.states import ONGOING
from kraftd.groups.transactions.transaction import (
    EPOCH_BUMPS,
    NO_EPOCH,
    NO_ID,
    NO_TIMEOUT_MS,
    TopicPartition,
    Transaction,
    TransactionalId,
)
from kraftd.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kraftd.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from kraftd.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest
from kraftd.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from kraftd.messages.describe_transactions_request import DescribeTransactionsRequest
from kraftd.messages.describe_transactions_response import DescribeTransactionsResponse
from kraftd.messages.describe_transactions_response import TransactionState as Described
from kraftd.messages.end_txn_request import EndTxnRequest
from kraftd.messages.end_txn_response import EndTxnResponse
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.messages.init_producer_id_response import InitProducerIdResponse
from kraftd.messages.list_transactions_request import ListTransactionsRequest
from kraftd.messages.list_transactions_response import ListTransactionsResponse
from kraftd.types import OFFSETS_TOPIC
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

# Versions from which producers know PRODUCER_FENCED.
KNOWS_FENCED = {InitProducerIdRequest: 4, AddOffsetsToTxnRequest: 2, EndTxnRequest: 2}
EPOCH_BUMP_VERSION = 5  # of EndTxn

_DESCRIBED_US = 60  # of a transactional id, mostly for its authorization
_FILTERED_AT_ONCE = 500  # transactional ids

WithId = Callable[[int | None], None]
NowMs = Callable[[], int]


class TransactionCoordinator(Shards[TransactionShard]):
    """What a broker does for transactional ids.

    transaction_version: the finalized level of that feature. group_partition_for: the partition of
    ``__consumer_offsets`` that holds a group.
    """

    def __init__(
        self, config: TransactionConfig, topics: Topics, group_partition_for: Callable[[str], int]
    ) -> None:
        super().__init__(config.transaction_state_log_num_partitions)
        self.config = config
        self.topics = topics
        self.group_partition_for = group_partition_for
        self.transaction_version = 0
        self._wait_for_ids: dict[int, WithId] = {}
        self._last_number = 0

    def new_shard(self, partition: int, leader_epoch: int) -> TransactionShard:
        return TransactionShard(
            partition, leader_epoch, self.config, lambda: self.transaction_version, self.fence, self.effects
        )

    # Events

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        """Take an event."""
        if isinstance(event, ProducerIdTaken):
            self.active(now_ms)
            self._wait_for_ids.pop(event.number)(event.producer_id)
        return super().step(event, now_ms)

    def step_shard(self, shard: TransactionShard, event: Event) -> None:
        if isinstance(event, MarkersAnswered):
            shard.markers_answered(event)
        else:
            super().step_shard(shard, event)

    def handle(self, call: Call, request: Message, now_ms: int) -> list[Effect]:
        """Take a request; its answer comes at once or later, as Respond with the call's token."""
        at_once(self.handle_in_slices(call, request, lambda: now_ms))
        return self.take_effects()

    def handle_in_slices(self, call: Call, request: Message, now_ms: NowMs) -> Slices[None]:
        """Take a request that names much, or lists all. Effects are to be taken after each slice."""
        handle = HANDLERS_IN_SLICES.get(type(request))
        if handle is None:
            HANDLERS[type(request)](self, call, request, now_ms())
        else:
            yield from handle(self, call, request, now_ms)

    def respond_in_slices(self, call: Call, response: Slices[Message]) -> None:
        """Answer a call, unless it is answered; in slices if it has the time."""
        if not call.in_slices:
            self.respond(call, at_once(response))
        elif not call.is_answered:
            call.is_answered = True
            self.effects.append(RespondInSlices(call.token, response))

    def with_producer_id(
        self, operation: Callable[[int | None], None], refuse: Callable[[ErrorCode], None]
    ) -> None:
        """Perform an operation, and once more with a new producer id if it needs one."""

        def again(producer_id: int | None) -> None:
            if producer_id is None:
                refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
                return
            try:
                operation(producer_id)
            except Refusal as error:
                refuse(error.code)

        try:
            operation(None)
        except NeedsProducerId:
            self._last_number += 1
            self._wait_for_ids[self._last_number] = again
            self.effects.append(TakeProducerId(self._last_number))
        except Refusal as error:
            refuse(error.code)

    # Producers

    def init_producer_id(self, call: Call, request: InitProducerIdRequest, now_ms: int) -> None:
        id = request.transactional_id
        assert id is not None

        def refuse(error: ErrorCode) -> None:
            code = known(request, call.version, error)
            self.respond(call, InitProducerIdResponse(error_code=code, producer_epoch=NO_EPOCH))

        def operation(new_producer_id: int | None) -> None:
            shard = self.shard_of(id, now_ms)
            entry = shard.ids.get(id)
            if entry is None:
                if new_producer_id is None:
                    raise NeedsProducerId
                first = Transaction(new_producer_id, timeout_ms=timeout_ms, last_update_ms=shard.state.now_ms)
                entry = shard.ids[id] = TransactionalId(id, first)
            new = initialized(entry, timeout_ms, expected, new_producer_id, shard.state.now_ms)
            if new is None:
                self.fence(shard, entry, refuse_later)
                return

            def then(error: ErrorCode) -> None:
                if error:
                    refuse(error)
                else:
                    answer = InitProducerIdResponse(
                        producer_id=new.producer_id, producer_epoch=new.producer_epoch
                    )
                    self.respond(call, answer)

            shard.change(entry, new, then)

        def refuse_later(error: ErrorCode) -> None:
            refuse(error or ErrorCode.CONCURRENT_TRANSACTIONS)

        error = self.init_error(call, request)
        if error:
            refuse(error)
            return
        timeout_ms = NO_TIMEOUT_MS if request.enable2_pc else request.transaction_timeout_ms
        is_new = request.producer_id == NO_ID
        expected = None if is_new else Expected(request.producer_id, request.producer_epoch)
        self.with_producer_id(operation, refuse)

    def init_error(self, call: Call, request: InitProducerIdRequest) -> ErrorCode:
        """What refuses an InitProducerId before its transactional id is looked at."""
        id = request.transactional_id or ""
        may = self.may_write(call, id)
        if may and request.enable2_pc:
            may = call.allows(AclOperation.TWO_PHASE_COMMIT, AclResourceType.TRANSACTIONAL_ID, id)
        if not may:
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if (request.producer_id == NO_ID) != (request.producer_epoch == NO_EPOCH) or not id:
            return ErrorCode.INVALID_REQUEST
        if request.enable2_pc and not self.config.transaction_two_phase_commit_enable:
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if request.keep_prepared_txn:
            return ErrorCode.UNSUPPORTED_VERSION
        most_ms = self.config.transaction_max_timeout_ms
        is_valid = request.enable2_pc or 0 < request.transaction_timeout_ms <= most_ms
        return ErrorCode.NONE if is_valid else ErrorCode.INVALID_TRANSACTION_TIMEOUT

    def may_write(self, call: Call, id: str) -> bool:
        return call.allows(AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID, id)

    # Partitions

    def add_partitions(self, call: Call, request: AddPartitionsToTxnRequest, now_ms: NowMs) -> Slices[None]:
        is_brokers = call.version >= BROKERS_VERSION
        cluster = AclOperation.CLUSTER_ACTION, AclResourceType.CLUSTER, CLUSTER_NAME
        if is_brokers and not call.allows(*cluster):
            error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            self.respond(call, AddPartitionsToTxnResponse(error_code=error))
            return
        transactions = yield from transactions_of(request, call.version)

        def finish(results: list[tuple[Asked, Results | ErrorCode]]) -> None:
            self.respond_in_slices(call, response_of(call.version, results))

        gathered: Gathered[tuple[Asked, Results | ErrorCode]] = Gathered(len(transactions), finish)
        if not transactions:
            finish([])
        for number, asked in enumerate(transactions):
            if number:
                yield

            def answer(error: ErrorCode, number: int = number, asked: Asked = asked) -> None:
                gathered.put(number, (asked, error))

            if not is_brokers and not self.may_write(call, asked.added.transactional_id):
                answer(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            elif refused := (yield from refused_places(self.topics, call, asked)):
                gathered.put(number, (asked, refused))
            elif asked.is_verify_only:
                gathered.put(number, (asked, self.verify(asked.added, now_ms())))
            else:
                self.add(asked.added, answer, now_ms())

    def add_offsets(self, call: Call, request: AddOffsetsToTxnRequest, now_ms: int) -> None:
        def answer(error: ErrorCode) -> None:
            self.respond(call, AddOffsetsToTxnResponse(error_code=known(request, call.version, error)))

        if not self.may_write(call, request.transactional_id):
            answer(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        elif not call.allows(AclOperation.READ, AclResourceType.GROUP, request.group_id):
            answer(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        else:
            place = OFFSETS_TOPIC, self.group_partition_for(request.group_id)
            producer = request.producer_id, request.producer_epoch
            self.add(Added(request.transactional_id, *producer, frozenset((place,)), 0), answer, now_ms)

    def add(self, added: Added, then: Callable[[ErrorCode], None], now_ms: int) -> None:
        """Add partitions to a transaction, which the first ones begin."""
        if not added.transactional_id:
            then(ErrorCode.INVALID_REQUEST)
            return
        try:
            shard = self.shard_of(added.transactional_id, now_ms)
            entry = shard.ids.get(added.transactional_id)
            if entry is None:
                raise Refusal(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
            entry.check_idle()
            entry.check_producer(added.producer_id, added.producer_epoch)
            if entry.current.producer_epoch == NO_EPOCH:
                raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)  # no producer has an epoch yet
        except Refusal as error:
            then(error.code)
            return
        current = entry.current
        if current.state is ONGOING and added.partitions <= current.partitions:
            then(ErrorCode.NONE)
            return
        new = current.with_partitions(added.partitions, added.client_version, shard.state.now_ms)
        shard.change(entry, new, then)

    def verify(self, added: Added, now_ms: int) -> dict[TopicPartition, ErrorCode]:
        """Whether partitions are in a transaction (KIP-890), one by one."""
        try:
            if not added.transactional_id:
                raise Refusal(ErrorCode.INVALID_REQUEST)
            entry = self.shard_of(added.transactional_id, now_ms).ids.get(added.transactional_id)
            if entry is None:
                raise Refusal(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
            entry.check_producer(added.producer_id, added.producer_epoch)
        except Refusal as error:
            return dict.fromkeys(added.partitions, error.code)
        known_ones = entry.current.partitions
        return {
            place: ErrorCode.NONE if place in known_ones else ErrorCode.TRANSACTION_ABORTABLE
            for place in added.partitions
        }

    # Ends

    def end_txn(self, call: Call, request: EndTxnRequest, now_ms: int) -> None:
        def refuse(error: ErrorCode) -> None:
            self.respond(call, EndTxnResponse(error_code=known(request, call.version, error)))

        def operation(new_producer_id: int | None) -> None:
            shard = self.shard_of(id, now_ms)
            entry = shard.ids.get(id)
            if entry is None:
                raise Refusal(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
            former = entry.current
            new = decided(entry, end, new_producer_id, shard.state.now_ms)
            if new is None:
                answer(former)
                return

            def then(error: ErrorCode) -> None:
                if error:
                    refuse(error)
                else:
                    shard.complete(entry)
                    assert entry.completed is not None
                    answer(entry.completed)

            shard.change(entry, new, then)

        def answer(transaction: Transaction) -> None:
            response = EndTxnResponse()
            if end.client_version == EPOCH_BUMPS:
                response.producer_id = transaction.producer_id
                response.producer_epoch = transaction.producer_epoch
            self.respond(call, response)

        id = request.transactional_id
        version = EPOCH_BUMPS if call.version >= EPOCH_BUMP_VERSION else 0
        end = End(request.producer_id, request.producer_epoch, request.committed, version)
        if not self.may_write(call, id):
            refuse(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        elif not id:
            refuse(ErrorCode.INVALID_REQUEST)
        else:
            self.with_producer_id(operation, refuse)

    def fence(
        self,
        shard: TransactionShard,
        entry: TransactionalId,
        then: Callable[[ErrorCode], None] = lambda error: None,
    ) -> None:
        """Abort an ongoing transaction and fence its producer."""

        def operation(new_producer_id: int | None) -> None:
            if self.shards.get(shard.partition) is not shard:
                raise Refusal(ErrorCode.NOT_COORDINATOR)
            if entry.pending is not None or entry.current.state is not ONGOING:
                raise Refusal(ErrorCode.CONCURRENT_TRANSACTIONS)
            version = self.transaction_version  # another one may be finalized before the record is written
            new = fenced(entry, version, new_producer_id, shard.state.now_ms)

            def written(error: ErrorCode) -> None:
                if error:
                    entry.has_failed_fence = version < EPOCH_BUMPS
                else:
                    shard.complete(entry)
                then(error)

            shard.change(entry, new, written)

        self.with_producer_id(operation, then)

    # What is shown

    def describe(self, call: Call, request: DescribeTransactionsRequest, now_ms: NowMs) -> Slices[None]:
        pace, rows = Pace(), []
        for id in request.transactional_ids:
            rows.append(self.described(call, id, now_ms()))
            if pace.spent(_DESCRIBED_US):
                yield
        self.respond(call, DescribeTransactionsResponse(transaction_states=rows))

    def described(self, call: Call, id: str, now_ms: int) -> Described:
        """One transactional id, with the topics that the caller may see."""
        try:
            if not call.allows(AclOperation.DESCRIBE, AclResourceType.TRANSACTIONAL_ID, id):
                raise Refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            if not id:
                raise Refusal(ErrorCode.INVALID_REQUEST)
            entry = self.shard_of(id, now_ms).ids.get(id)
            if entry is None:
                raise Refusal(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        except Refusal as error:
            return Described(error_code=error.code, transactional_id=id)
        row = described(entry)
        row.topics = [
            topic
            for topic in row.topics
            if call.allows(AclOperation.DESCRIBE, AclResourceType.TOPIC, topic.topic)
        ]
        return row

    def list_transactions(self, call: Call, request: ListTransactionsRequest, now_ms: NowMs) -> Slices[None]:
        if any(shard.status is ShardStatus.LOADING for shard in self.shards.values()):
            self.respond(call, ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
            return
        try:
            pattern = compiled(request.transactional_id_pattern)
        except Refusal as error:
            self.respond(call, ListTransactionsResponse(error_code=error.code))
            return
        pace, rows = Pace(), []
        entries = [entry for shard in self.active(now_ms()) for entry in shard.ids.values()]
        for start in range(0, len(entries), _FILTERED_AT_ONCE):
            some = entries[start : start + _FILTERED_AT_ONCE]
            if pace.spent(len(some)):
                yield
            for row in listed(some, request, pattern, now_ms()):
                if call.allows(AclOperation.DESCRIBE, AclResourceType.TRANSACTIONAL_ID, row.transactional_id):
                    rows.append(row)
                if pace.spent(_DESCRIBED_US):
                    yield
        unknown = unknown_states(request)
        self.respond(call, ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=rows))


def known(request: Message, version: int, error: ErrorCode) -> ErrorCode:
    """An error as a producer of that version knows it."""
    is_old = version < KNOWS_FENCED[type(request)]
    return ErrorCode.INVALID_PRODUCER_EPOCH if is_old and error is ErrorCode.PRODUCER_FENCED else error


HANDLERS: dict[type[Message], Callable[[TransactionCoordinator, Call, Any, int], None]] = {
    InitProducerIdRequest: TransactionCoordinator.init_producer_id,
    AddOffsetsToTxnRequest: TransactionCoordinator.add_offsets,
    EndTxnRequest: TransactionCoordinator.end_txn,
}
HANDLERS_IN_SLICES: dict[
    type[Message], Callable[[TransactionCoordinator, Call, Any, NowMs], Slices[None]]
] = {
    AddPartitionsToTxnRequest: TransactionCoordinator.add_partitions,
    DescribeTransactionsRequest: TransactionCoordinator.describe,
    ListTransactionsRequest: TransactionCoordinator.list_transactions,
}
