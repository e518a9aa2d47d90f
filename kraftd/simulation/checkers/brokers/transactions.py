"""P8-P10: the transactions of a world, as readers of committed records and the disks show them.

What is lost by right takes the transactions that had begun until then out of the checks: a commit may have
been lost with its coordinator, or some of its markers with a partition's end. A coordinator that has lost
more than a partition never ends the transaction that it knows, at Apache Kafka neither.
"""

from __future__ import annotations

from typing import Any

from kraftd.broker_node.partitions.replicas import Hosted
from kraftd.groups.transactions.states import PREPARED
from kraftd.groups.transactions.transaction import Transaction, bumps_epochs
from kraftd.log.data.data_log import DataLog
from kraftd.partition.effects import MarksMoved
from kraftd.partition.producer_entry import NO_OFFSET, ProducerEntry
from kraftd.simulation.checkers.brokers.partitions import PartitionKey
from kraftd.simulation.checkers.checker import Checker
from kraftd.simulation.processes.process import Process
from kraftd.wire.batch import Batch, iter_batches
from kraftd.wire.records import decode_records

COMMIT = b"\x00\x00\x00\x01"  # the key of a commit's marker
_READ_BYTES = 1 << 20


class KnownTransaction:
    """A transaction: its records, and what its producer knows of its end."""

    def __init__(self, name: str, era: int) -> None:
        self.name = name
        self.era = era
        self.values: dict[bytes, PartitionKey] = {}
        self.may_commit = False  # a commit was requested
        self.is_committed = False  # and acknowledged
        self.shown: set[bytes] = set()  # to readers

    def __repr__(self) -> str:
        end = "committed" if self.is_committed else "maybe committed" if self.may_commit else "not committed"
        return f"<transaction {self.name} of {len(self.values)} records, {end}>"


class TransactionChecker(Checker):
    """See the module."""

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self.era = 0  # it ends with what is lost
        self.transactions: list[KnownTransaction] = []
        self._of_value: dict[bytes, KnownTransaction] = {}
        self._stable: dict[tuple[int, int, PartitionKey, int], int] = {}  # last stable offsets of leaders

    # --- producers ---

    def begin(self, name: str) -> KnownTransaction:
        """Note that a producer begins a transaction."""
        transaction = KnownTransaction(name, self.era)
        self.transactions.append(transaction)
        return transaction

    def sent(self, transaction: KnownTransaction, key: PartitionKey, values: list[bytes]) -> None:
        """Note the records of a transaction, before they are sent."""
        for value in values:
            transaction.values[value] = key
            self._of_value[value] = transaction

    def zombie_answered(self, transaction: KnownTransaction, error_code: int) -> None:
        """Check that a producer is refused once another one has its transactional id."""
        if error_code == 0 and transaction.era == self.era:
            self.fail("P10", f"{transaction!r} has a record taken, whose producer is fenced")
        self.world.trace.kinds["zombie refused"] += 1

    def lost(self, *_: object) -> None:
        """Something is lost by right."""
        self.era += 1

    def can_never_end(self, transactional_id: str, sides: list[Any]) -> bool:
        """Return whether markers of an id's decided transaction are refused for good. After a loss, a
        partition may know the producer by a later one.
        """
        if not self.era:
            return False
        shards = [
            shard
            for side in sides
            for shard in side.node.coordinators.transactions.coordinator.shards.values()
        ]
        known = [entry.current for shard in shards if (entry := shard.ids.get(transactional_id)) is not None]
        led = {
            (hosted.topic, hosted.index): hosted.partition.producers.entries
            for hosted in [one for side in sides for one in side.node.replicas]
            if hosted.partition is not None and hosted.partition.is_leader
        }
        return any(
            is_overtaken(current, led[place].get(current.producer_id))
            for current in known
            for place in current.partitions & led.keys()
        )

    # --- readers ---

    def shown(self, value: bytes) -> None:
        """Check a record that a reader of committed records is shown."""
        transaction = self._of_value[value]
        if not transaction.may_commit and transaction.era == self.era:
            self.fail("P9", f"a reader of committed records is shown {value!r} of {transaction!r}")
        transaction.shown.add(value)
        self.world.trace.kinds["committed records read"] += 1

    # --- leaders ---

    def marks_moved(self, process: Process, hosted: Hosted, marks: MarksMoved) -> None:
        """P8 of a leader whose last stable offset moves."""
        partition = hosted.partition
        if partition is None or not partition.is_leader:
            return
        run = process.id, process.host.starts, (hosted.topic_id, hosted.index), partition.leader_epoch
        before = self._stable.get(run, 0)
        if marks.last_stable_offset < before:
            self.fail("P8", f"{partition!r} of {process!r}: stable to {before}, {marks.last_stable_offset}")
        self._stable[run] = marks.last_stable_offset

    # --- at rest ---

    def at_rest(self, logs: dict[PartitionKey, DataLog]) -> None:
        """Check each transaction by the logs of the leaders, from which no record was deleted."""
        committed = set[bytes]()
        for log in logs.values():
            committed |= self._committed_in(log)
        for one in self.transactions:
            if one.era != self.era:
                continue
            found = committed & one.values.keys()
            if not one.shown <= found or (found and not one.may_commit):
                self.fail("P9", f"{one!r}: {sorted(one.shown)} are shown, {sorted(found)} are committed")
            if found != one.values.keys() and (found or one.is_committed):
                self.fail("P9", f"{one!r}: only {sorted(found)} are committed of {sorted(one.values)}")
            self.world.trace.kinds["transactions committed"] += bool(found)

    def _committed_in(self, log: DataLog) -> set[bytes]:
        """The records before whose producer's next marker is a commit; P10: no epoch follows a later one."""
        committed = set[bytes]()
        undecided: dict[int, list[bytes]] = {}
        epochs: dict[int, int] = {}
        for batch in _batches(log):
            header = batch.header
            producer, epoch = header.producer_id, header.producer_epoch
            if epoch < epochs.get(producer, -1) and not self.era:
                self.fail("P10", f"{log!r}: {batch!r} of epoch {epoch} follows one of {epochs[producer]}")
            epochs[producer] = epoch
            records = decode_records(batch)
            if header.is_control:
                values = undecided.pop(producer, [])
                if bytes(records[0].key or b"") == COMMIT:
                    committed.update(values)
            else:
                undecided.setdefault(producer, []).extend(bytes(one.value or b"") for one in records)
        return committed


def is_overtaken(decided: Transaction, known: ProducerEntry | None) -> bool:
    """Return whether a partition knows a producer by a later transaction than its coordinator has decided."""
    if known is None or decided.state not in PREPARED:
        return False
    if known.producer_epoch == decided.producer_epoch:  # with transactions v2 it is the next one's
        return bumps_epochs(decided.client_version) and known.transaction_start != NO_OFFSET
    return known.producer_epoch > decided.producer_epoch


def _batches(log: DataLog) -> list[Batch]:
    found, offset = list[Batch](), log.log_start
    while offset < log.log_end:
        read = list(iter_batches(log.read(offset, _READ_BYTES, log.log_end) or b""))
        if not read:
            break
        found += read
        offset = read[-1].header.next_offset
    return found
