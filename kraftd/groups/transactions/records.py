"""The records of ``__transaction_state``."""

from __future__ import annotations

from kraftd.groups.records import CoordinatorRecord, UnreadableRecord
from kraftd.groups.transactions.states import BY_NUMBER, EMPTY
from kraftd.groups.transactions.transaction import NO_PARTITIONS, Transaction, by_topic
from kraftd.messages.transaction_log_key import TransactionLogKey
from kraftd.messages.transaction_log_value import PartitionsSchema, TransactionLogValue

FLEXIBLE_VALUES = 1  # the transaction.version from which values have version 1


def transaction_record(
    transactional_id: str, transaction: Transaction, transaction_version: int
) -> CoordinatorRecord:
    """The state of a transactional id, in the version for a cluster of that transaction.version."""
    partitions = None
    if transaction.state is not EMPTY:
        partitions = [
            PartitionsSchema(topic, tuple(indexes)) for topic, indexes in by_topic(transaction.partitions)
        ]
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state.number,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=transaction.last_update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.client_version,
    )
    version = 1 if transaction_version >= FLEXIBLE_VALUES else 0
    if version == 0:
        value.previous_producer_id = value.next_producer_id = -1
        value.client_transaction_version = 0
    return CoordinatorRecord(TransactionLogKey(transactional_id), value, version)


def expired_record(transactional_id: str) -> CoordinatorRecord:
    """The tombstone of a transactional id."""
    return CoordinatorRecord(TransactionLogKey(transactional_id), None)


def transaction_of(value: TransactionLogValue) -> Transaction:
    """The state that a record holds. Raises UnreadableRecord."""
    state = BY_NUMBER.get(value.transaction_status)
    if state is None:
        raise UnreadableRecord(f"transaction state {value.transaction_status}, which is unknown")
    partitions = NO_PARTITIONS
    if state is not EMPTY:
        partitions = frozenset(
            (row.topic, index) for row in value.transaction_partitions or () for index in row.partition_ids
        )
    return Transaction(
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=partitions,
        start_ms=value.transaction_start_timestamp_ms,
        last_update_ms=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
    )
