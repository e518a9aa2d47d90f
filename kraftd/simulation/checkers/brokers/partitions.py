"""P1-P4: what brokers make of the records of producers, as clients and the disks show it.

A killed process loses nothing that it acknowledged. A loss of power may take what was not flushed, from the
end of the log on. From a batch on in which a bit has flipped, records may be gone, but none is served
changed.
"""

from __future__ import annotations

from typing import Any

from kraftd.log.data.data_log import DataLog
from kraftd.log.errors import CorruptStorage, StorageError
from kraftd.simulation.checkers.checker import Checker
from kraftd.wire.batch import Batch, CorruptBatch, iter_batches
from kraftd.wire.records import decode_records

PartitionKey = tuple[bytes, int]  # topic id, index
MARKER = b"marker"  # in place of the value of a control record
_READ_BYTES = 1 << 20


def producer_of(value: bytes) -> tuple[bytes, int]:
    """The producer of a record, and its number there: values are `producer-number`."""
    name, _, number = value.rpartition(b"-")
    return name, int(number)


class KnownPartition:
    """What is known of one partition: of acknowledged records, of those that were read, and of its disk."""

    def __init__(self, key: PartitionKey) -> None:
        self.key = key
        self.values: dict[int, bytes] = {}  # by offset
        self.offsets: dict[bytes, int] = {}  # of idempotent producers' records
        self.damaged_from: int | None = None  # the first batch in which a bit has flipped
        self.losses = 0  # how often its end was lost

    @property
    def end(self) -> int:
        """The end of what is known."""
        return max(self.values, default=-1) + 1

    def forget_from(self, end: int) -> None:
        """The records from an offset on were lost."""
        self.losses += 1
        for offset in [one for one in self.values if one >= end]:
            value = self.values.pop(offset)
            if self.offsets.get(value) == offset:
                del self.offsets[value]

    def __repr__(self) -> str:
        return f"<KnownPartition {self.key[0].hex()[:8]}-{self.key[1]}, records to {self.end}>"


class KnownLog:
    """What is known of the disk of one replica."""

    def __init__(self) -> None:
        self.must_have = 0  # the end that a restart must find
        self.durable_end = 0  # what a loss of power leaves, as of the last start
        self.end = 0  # when the process ended
        self.cut_count = 0  # of truncations, as of the last start
        self.is_open = False

    def __repr__(self) -> str:
        return f"<KnownLog, at least to {self.must_have}>"


class PartitionChecker(Checker):
    """See the module. In a world with replicas a log's end may differ from what clients know: what is read
    from disks is compared at the end only, and `on_cut` is called for each log that lost its end.
    """

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self.has_replicas = world.options.replica_count > 1
        self.known: dict[PartitionKey, KnownPartition] = {}
        self.names: dict[bytes, str] = {}  # of the topics whose records are checked
        self.on_loss: list[Any] = []  # called with a partition's key and end
        self.may_delete = False  # old records, by retention
        self.on_cut: Any = None
        self._logs: dict[tuple[PartitionKey, int], KnownLog] = {}  # by broker

    def of(self, key: PartitionKey) -> KnownPartition:
        """What is known of a partition."""
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = KnownPartition(key)
        return found

    def is_damaged(self, key: PartitionKey) -> bool:
        """Return whether a bit has flipped in the partition's log."""
        return self.of(key).damaged_from is not None

    # --- clients ---

    def acknowledged(self, key: PartitionKey, base_offset: int, values: list[bytes], *, once: bool) -> None:
        """Note an acknowledged batch; `once`: of an idempotent producer."""
        known = self.of(key)
        for offset, value in enumerate(values, base_offset):
            self._note(known, offset, value, "acknowledged", once=once)

    def read(self, key: PartitionKey, offset: int, data: Any) -> int:
        """Check the records that a consumer got from an offset on; returns the next offset."""
        known, is_first = self.of(key), True
        try:
            for batch in iter_batches(data or b""):
                header = batch.header
                is_damaged = known.damaged_from is not None and known.damaged_from <= offset
                if is_damaged and header.base_offset > offset:
                    return header.next_offset  # no checksum covers a batch's base offset
                if is_first and not header.base_offset <= offset <= header.last_offset:
                    self.fail("P3", f"{known!r}: a fetch from {offset} brings {batch!r}")
                if not is_first and header.base_offset != offset:
                    self.fail("P3", f"{known!r}: {batch!r} follows offset {offset - 1}")
                self._check_batch(known, batch, "read")
                offset, is_first = header.next_offset, False
        except CorruptBatch as error:
            if not error.truncated:
                self.fail("P4", f"{known!r}: a consumer gets what is no batch: {error}")
        return offset

    def out_of_range(self, key: PartitionKey, offset: int, log: DataLog | None) -> int:
        """Check that a consumer is out of range by right; returns where it goes on."""
        known = self.of(key)
        if log is not None and offset < log.log_start:
            if not self.may_delete:
                self.fail("P1", f"{known!r}: the records below {log.log_start} are gone")
            return log.log_start
        if not known.losses and known.damaged_from is None:
            self.fail("P1", f"{known!r}: a consumer is ahead of the log, at {offset}")
        return min(offset, known.end)

    def _check_batch(self, known: KnownPartition, batch: Batch, how: str) -> None:
        records = decode_records(batch)
        if len(records) != batch.header.next_offset - batch.header.base_offset:
            self.fail("P3", f"{known!r}: {batch!r} has {len(records)} records")
        is_control = batch.header.is_control
        once = batch.header.producer_id >= 0 and not is_control
        for record in records:
            value = MARKER if is_control else bytes(record.value or b"")
            self._note(known, record.offset, value, how, once=once)

    def _note(self, known: KnownPartition, offset: int, value: bytes, how: str, *, once: bool) -> None:
        before = known.values.setdefault(offset, value)
        if before != value:
            invariant = "P4" if known.damaged_from is not None else "P1"
            self.fail(invariant, f"{known!r}: {value!r} is {how} at {offset}, where {before!r} was")
        if once and known.offsets.setdefault(value, offset) != offset:
            self.fail("P2", f"{known!r}: {value!r} is {how} at {offset}, and at {known.offsets[value]}")

    # --- disks ---

    def died(self, broker_id: int, logs: list[DataLog], *, power_loss: bool) -> None:
        """Note what must survive the end of a process with these open logs."""
        for log in logs:
            known = self.known.get((log.topic_id or b"", log.partition))
            if known is not None:
                disk = self._log(known.key, broker_id)
                if not disk.is_open:  # this process has not served it: its end may be cut since the last one
                    if power_loss:
                        disk.must_have = min(disk.must_have, log.recovery_point)
                    continue
                disk.is_open = False
                disk.end = log.log_end
                if not power_loss:
                    disk.durable_end = log.log_end
                elif log.cut_count != disk.cut_count:
                    disk.durable_end = 0
                disk.must_have = min(known.end, max(log.recovery_point, disk.durable_end))

    def opened(self, broker_id: int, log: DataLog | None) -> None:
        """Check the log of a partition that is open after a start."""
        if log is None:
            return
        disk, end = self._log((log.topic_id or b"", log.partition), broker_id), log.log_end
        disk.is_open = True
        if log.topic_id not in self.names:
            return
        known = self.of((log.topic_id, log.partition))
        if known.damaged_from is None and end < disk.must_have:
            self.fail("P1", f"{known!r}: {log!r} ends at {end}, {disk.must_have} is acknowledged and flushed")
        is_cut = end < (disk.end if self.has_replicas else known.end)
        disk.durable_end = disk.must_have = disk.end = end
        disk.cut_count = log.cut_count
        if is_cut:
            self.world.trace.kinds["records lost with the power"] += 1
            if self.has_replicas:
                self.on_cut(broker_id, known.key, end)
            else:
                self.lost(known.key, end)
        if not self.has_replicas:
            self.check_log(log)

    def called_damaged(self, key: PartitionKey, error: str) -> None:
        """Check that a log is kept offline by right, because of damage below what it had flushed."""
        if key[0] in self.names and not self.is_damaged(key):
            self.fail("P4", f"{self.of(key)!r} is offline, and no bit of it has flipped: {error}")

    def lost(self, key: PartitionKey, end: int) -> None:
        """The records from an offset on are lost by right."""
        self.of(key).forget_from(end)
        for forget in self.on_loss:
            forget(key, end)

    def lost_disk(self, broker_id: int) -> None:
        """Forget the disk of a broker."""
        self._logs = {one: log for one, log in self._logs.items() if one[1] != broker_id}

    def _log(self, key: PartitionKey, broker_id: int) -> KnownLog:
        return self._logs.setdefault((key, broker_id), KnownLog())

    def check_log(self, log: DataLog) -> None:
        """Read a log whole, and compare it with what is known."""
        key = (log.topic_id or b"", log.partition)
        known, offset, last = self.of(key), log.log_start, dict[bytes, int]()
        while offset < log.log_end:
            try:
                data = log.read(offset, _READ_BYTES, log.log_end)
            except CorruptStorage as error:
                self._found_damage(known, log, offset, error)
                return
            before, offset = offset, self.read(key, offset, data)
            if offset == before:
                self.fail("P3", f"{known!r}: {log!r} has no batch of offset {offset}")
            for batch in iter_batches(data or b""):
                if batch.header.producer_id >= 0 and not batch.header.is_control:
                    for record in decode_records(batch):
                        name, number = producer_of(bytes(record.value or b""))
                        if last.setdefault(name, number) > number:
                            self.fail("P2", f"{known!r}: record {number} of {name!r} follows a later one")
                        last[name] = number

    def _found_damage(self, known: KnownPartition, log: DataLog, offset: int, error: CorruptStorage) -> None:
        if known.damaged_from is None or known.damaged_from > offset + _READ_BYTES:
            self.fail("P4", f"{known!r}: damage where none is, at {offset}: {error}")
        hosts = self.world.cluster.hosts.values()
        rotten = [path for host in hosts for path in host.data_disk.rotten_paths()]
        if not any(path in str(error) for path in rotten):
            self.fail("P4", f"{known!r}: the damage is in {rotten}, not where it is reported: {error}")
        self.world.trace.kinds["damaged records found"] += 1

    def at_rest(self, logs: list[DataLog]) -> None:
        """Check all logs at the end: nothing acknowledged is missing."""
        for log in logs:
            if log.topic_id in self.names:
                known = self.of((log.topic_id, log.partition))
                if known.damaged_from is None and log.log_end < known.end:
                    self.fail("P1", f"{known!r}: {log!r} ends before what is known")
                if log.log_start and not self.may_delete:
                    self.fail("P1", f"{known!r}: the records below {log.log_start} are gone")
                try:
                    self.check_log(log)
                except StorageError as error:
                    self.fail("P1", f"{known!r}: {log!r} cannot be read: {error}")
