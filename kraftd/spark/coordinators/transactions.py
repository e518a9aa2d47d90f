"""Transactional ids, and their transactions from begin to end."""

from __future__ import annotations

from kraftd.groups.transactions.states import (
    BY_NUMBER,
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
)
from kraftd.messages.transaction_log_key import TransactionLogKey
from kraftd.messages.transaction_log_value import TransactionLogValue
from kraftd.spark.coordinators.records import Place
from kraftd.spark.tables.columns import Row, Rows

_OUTCOMES = {
    ONGOING: "ongoing",
    PREPARE_COMMIT: "committing",
    PREPARE_ABORT: "aborting",
    COMPLETE_COMMIT: "committed",
    COMPLETE_ABORT: "aborted",
}
_COMPLETE = ("committed", "aborted")


class Transactions:
    """The transactional ids in one partition of ``__transaction_state``."""

    def __init__(self, coordinator_partition: int) -> None:
        self._partition = coordinator_partition
        self._ids: dict[str, Row] = {}
        self._open: dict[str, Row] = {}

    def add(self, place: Place, key: TransactionLogKey, value: TransactionLogValue | None) -> Rows:
        """Apply a record; the rows of `transactions` that are complete by it."""
        transactional_id = key.transactional_id
        if value is None:
            self._ids.pop(transactional_id, None)
            return self._taken(transactional_id)
        state = BY_NUMBER.get(value.transaction_status)
        partitions = _partitions(value)
        start_ms = value.transaction_start_timestamp_ms
        self._ids[transactional_id] = {
            "transactional_id": transactional_id,
            "producer_id": value.producer_id,
            "producer_epoch": value.producer_epoch,
            "state": str(value.transaction_status) if state is None else state.text,
            "transaction_timeout_ms": value.transaction_timeout_ms,
            "partitions": partitions,
            "client_transaction_version": value.client_transaction_version,
            "start_timestamp_ms": start_ms if start_ms > 0 else None,
            "last_update_timestamp_ms": value.transaction_last_update_timestamp_ms,
            "coordinator_partition": self._partition,
            "offset": place.offset,
            "timestamp_ms": place.timestamp_ms,
        }
        outcome = None if state is None else _OUTCOMES.get(state)
        if outcome is None:
            return self._taken(transactional_id)
        row = self._open.get(transactional_id)
        if row is None:
            row = self._open[transactional_id] = self._begun(transactional_id, value, place, start_ms)
        row["outcome"] = outcome
        row["last_offset"] = place.offset
        row["partitions"] += [one for one in partitions if one not in row["partitions"]]
        if outcome in ("committing", "aborting"):
            row["decided_ms"] = place.timestamp_ms
        if outcome not in _COMPLETE:
            return []
        row["completed_ms"] = place.timestamp_ms
        if row["start_timestamp_ms"] is not None:
            row["duration_ms"] = place.timestamp_ms - row["start_timestamp_ms"]
        return self._taken(transactional_id)

    def open(self) -> Rows:
        """The rows of transactions that are not complete in the end."""
        return list(self._open.values())

    def ids(self) -> Rows:
        """The rows of `transactional_ids`."""
        return list(self._ids.values())

    def _begun(self, transactional_id: str, value: TransactionLogValue, place: Place, start_ms: int) -> Row:
        """A transaction as its first record tells it, which may be its last: others may be compacted away."""
        return {
            "transactional_id": transactional_id,
            "producer_id": value.producer_id,
            "producer_epoch": value.producer_epoch,
            "transaction_timeout_ms": value.transaction_timeout_ms,
            "client_transaction_version": value.client_transaction_version,
            "partitions": [],
            "start_timestamp_ms": start_ms if start_ms > 0 else None,
            "decided_ms": None,
            "completed_ms": None,
            "duration_ms": None,
            "coordinator_partition": self._partition,
            "first_offset": place.offset,
        }

    def _taken(self, transactional_id: str) -> Rows:
        row = self._open.pop(transactional_id, None)
        return [] if row is None else [row]


def _partitions(value: TransactionLogValue) -> Rows:
    return [
        {"topic_name": row.topic, "partition_id": index}
        for row in value.transaction_partitions or ()
        for index in row.partition_ids
    ]
