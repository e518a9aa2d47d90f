"""A producer with transactions, of either transaction version, which now and then another one replaces.

With version 2 partitions join by what is produced, and each end gives the next epoch (KIP-890). The former
producer of an id may go on as a zombie: nothing more of it is taken.
"""

from __future__ import annotations

from typing import Any

from kraftd.ground.java_hashes import partition_for
from kraftd.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kraftd.messages.end_txn_request import EndTxnRequest
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kraftd.named_tuple import NamedTuple
from kraftd.simulation.brokers.sender import Sender
from kraftd.simulation.checkers.brokers.partitions import PartitionKey
from kraftd.simulation.checkers.brokers.transactions import KnownTransaction
from kraftd.simulation.schedule import MS
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from kraftd.wire.records import build_records_batch

TRANSACTIONS_TOPIC, TRANSACTIONS_PARTITIONS = "__transaction_state", 2
DECIDED, DECIDED_PARTITIONS = "decided", 2
TIMEOUT_MS = 3_000
RETRY_US = 100 * MS
MOST_TRIES = 15  # of a batch; then its transaction is aborted
_TRANSACTIONAL = 0x10
_PRODUCE, _END = 0, 26  # API keys
_VERSIONS = {1: {_PRODUCE: 11, _END: 4}, 2: {}}  # where they are not the newest
_RETRIED = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


class Identity(NamedTuple):
    """A producer id with an epoch, and the next sequence of each partition."""

    producer_id: int
    epoch: int
    sequences: dict[int, int]


class TransactionalProducer(Sender):
    """See the module. `is_done`: since the world healed it has committed a transaction."""

    def __init__(self, traffic: Any, number: int) -> None:
        super().__init__(traffic, traffic.world.rng("transactional producer", number))
        self.transactional_id = f"transactional-{number}"
        self.number = number
        self.version = self.rng.choice((1, 2))
        self._count = 0  # of transactions
        self._last = 0  # the number of the last record
        self._identity: Identity | None = None
        self._transaction: KnownTransaction | None = None
        self._batches: list[tuple[int, list[bytes]]] = []  # to send
        self._added: set[int] = set()  # partitions, with version 1
        self._commits = True
        self._tries = 0
        self._began_after_healing = False

    def _go_on(self) -> None:
        if not self.traffic.running or self.is_done:
            return
        if self._winds_down and self._can_go_no_further():
            self.is_done = True
        elif self._identity is None:
            self._initialize(None)
        elif self._transaction is None:
            self._begin()
        elif not self.world.healed and self.rng.chance(0.06):
            self.world.trace.kinds["transactional producer replaced"] += 1
            former, self._identity = self._identity, None
            self._initialize(former)
        elif self._batches:
            self._send()
        else:
            self._end()

    def _can_go_no_further(self) -> bool:
        traffic = self.traffic
        if traffic.transactions_are_damaged():
            return True
        return bool(traffic.transactions.can_never_end(self.transactional_id, traffic.sides()))

    def _ask_coordinator(self, message: Message, then: Any) -> None:
        partition = partition_for(self.transactional_id, TRANSACTIONS_PARTITIONS)
        found = self.traffic.leader_of(TRANSACTIONS_TOPIC, partition)
        if found is None:
            self._later(RETRY_US)
        else:
            self.traffic.ask(found[0], [(message, then)], versions=_VERSIONS[self.version])

    # --- identity ---

    def _initialize(self, former: Identity | None) -> None:
        checks, begun_in = self.traffic.transactions, self.traffic.transactions.era

        def then(answer: Any) -> None:
            if answer is not None and not answer.error_code:
                if self.world.trace.echo is not None:
                    self.world.trace.write(self.world.schedule.now_us, f"{self!r} begins as {answer!r}")
                self._identity = Identity(answer.producer_id, answer.producer_epoch, {})
                self._transaction = None
                if former is not None and begun_in == checks.era:
                    self._send_as_zombie(former)
            self._later(RETRY_US)

        self._ask_coordinator(InitProducerIdRequest(self.transactional_id, TIMEOUT_MS), then)

    def _send_as_zombie(self, former: Identity) -> None:
        index = self.rng.below(DECIDED_PARTITIONS)
        found = self.traffic.leader_of(DECIDED, index)
        if found is None:
            return
        side, key = found
        checks, values = self.traffic.transactions, self._draw_values()
        transaction = checks.begin(f"{self.transactional_id}, a zombie")
        checks.sent(transaction, key, values)

        def then(answer: Any) -> None:
            if answer is not None:
                code = answer.responses[0].partition_responses[0].error_code
                checks.zombie_answered(transaction, code)

        request = self._request(side, key, former, values)
        self.traffic.ask(side, [(request, then)], versions=_VERSIONS[self.version])

    # --- records ---

    def _draw_values(self) -> list[bytes]:
        first = self._last + 1
        self._last += self.rng.choice((1, 1, 2, 5))
        return [b"t%d-%d" % (self.number, n) for n in range(first, self._last + 1)]

    def _begin(self) -> None:
        rng, healed = self.rng, self.world.healed
        self._count += 1
        self._transaction = self.traffic.transactions.begin(f"{self.transactional_id}, {self._count}")
        indexes = [rng.below(DECIDED_PARTITIONS) for _ in range(rng.choice((1, 2, 2, 4)))]
        self._batches = [(index, self._draw_values()) for index in indexes]
        self._added, self._tries = set(), 0
        self._commits = healed or rng.chance(0.7)
        self._began_after_healing = healed
        self._later(RETRY_US)

    def _send(self) -> None:
        assert self._identity is not None and self._transaction is not None
        index, values = self._batches[0]
        if self.version == 1 and index not in self._added:
            self._add(index)
            return
        found = self.traffic.leader_of(DECIDED, index)
        if found is None:
            self._later(RETRY_US)
            return
        side, key = found
        self.traffic.transactions.sent(self._transaction, key, values)

        def then(answer: Any) -> None:
            part: Any = None if answer is None else answer.responses[0].partition_responses[0]
            code = None if part is None else part.error_code
            if code == ErrorCode.NONE and part.base_offset >= 0:
                self.traffic.partitions.acknowledged(key, part.base_offset, values, once=True)
            if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                self._taken(index, len(values))
            else:
                self._not_taken(code)

        request = self._request(side, key, self._identity, values)
        self.traffic.ask(side, [(request, then)], versions=_VERSIONS[self.version])

    def _request(
        self, side: Any, key: PartitionKey, identity: Identity, values: list[bytes]
    ) -> ProduceRequest:
        now_ms = side.timer.now_ms() + side.timer.wall_ahead_ms()
        batch = build_records_batch(
            [(now_ms, None, value, ()) for value in values],
            attributes=_TRANSACTIONAL,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            base_sequence=identity.sequences.get(key[1], 0),
        )
        part = PartitionProduceData(key[1], bytes(batch))
        topic = TopicProduceData(DECIDED, key[0], [part])
        return ProduceRequest(self.transactional_id, -1, 1_000, [topic])

    def _taken(self, index: int, count: int) -> None:
        assert self._identity is not None
        self._identity.sequences[index] = self._identity.sequences.get(index, 0) + count
        self._batches.pop(0)
        self._tries = 0
        if not self.world.healed and self.rng.chance(0.03):
            self.world.trace.kinds["transaction times out"] += 1
            self._later(TIMEOUT_MS * MS)
        else:
            self._later(RETRY_US if self.world.healed else self.world.options.produce_gap_us)

    def _not_taken(self, code: int | None) -> None:
        self._tries += 1
        if code is not None and code not in _RETRIED:
            self._identity = None  # fenced, timed out, or the sequence is broken: it begins anew
        elif self._tries > MOST_TRIES:
            self._batches, self._commits = [], False
        self._later(RETRY_US)

    def _add(self, index: int) -> None:
        assert self._identity is not None
        topics = [AddPartitionsToTxnTopic(DECIDED, (index,))]
        message = AddPartitionsToTxnRequest(
            [], self.transactional_id, self._identity.producer_id, self._identity.epoch, topics
        )

        def then(answer: Any) -> None:
            code = None
            if answer is not None:
                code = answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            if code == ErrorCode.NONE:
                self._added.add(index)
                self._later(RETRY_US // 10)
            else:
                self._not_taken(code)

        self._ask_coordinator(message, then)

    # --- the end ---

    def _end(self) -> None:
        transaction, identity = self._transaction, self._identity
        assert transaction is not None and identity is not None
        transaction.may_commit = transaction.may_commit or self._commits
        message = EndTxnRequest(
            self.transactional_id, identity.producer_id, identity.epoch, transaction.may_commit
        )

        def then(answer: Any) -> None:
            code = None if answer is None else answer.error_code
            if code == ErrorCode.NONE:
                self._ended(transaction, identity, answer)
            elif code is not None and code not in _RETRIED:
                self._identity = None
            self._later(RETRY_US)

        self._ask_coordinator(message, then)

    def _ended(self, transaction: KnownTransaction, identity: Identity, answer: Any) -> None:
        transaction.is_committed = transaction.may_commit
        self.world.trace.kinds["transaction ended"] += 1
        self._transaction = None
        if self.version > 1:
            self._identity = Identity(answer.producer_id, answer.producer_epoch, {})
        elif not transaction.may_commit:
            self._identity = None  # some batch may have been taken, or not
        self.is_done = self._winds_down and self._began_after_healing and transaction.is_committed

    def __repr__(self) -> str:
        return f"<TransactionalProducer {self.number}, version {self.version}, {self._transaction!r}>"
