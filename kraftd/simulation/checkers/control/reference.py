"""The committed log replayed once for the whole world. Every image and every snapshot is compared with it.

Metadata transactions are implemented differently here: their records wait, and are applied or dropped as a
whole (C8). The product applies them at once and undoes them.
"""

from __future__ import annotations

from kraftd.messages.abort_transaction_record import AbortTransactionRecord
from kraftd.messages.begin_transaction_record import BeginTransactionRecord
from kraftd.messages.end_transaction_record import EndTransactionRecord
from kraftd.metadata.errors import ReplayError
from kraftd.metadata.image import Image
from kraftd.named_tuple import NamedTuple
from kraftd.raft.quorum.history import ControlRecordHistory
from kraftd.raft.quorum.voters import VoterSet
from kraftd.simulation.checkers.checker import Violation
from kraftd.simulation.checkers.control.records import RecordChecker
from kraftd.simulation.cluster import Cluster
from kraftd.simulation.processes.mirror import Entry
from kraftd.simulation.processes.state import image_values
from kraftd.simulation.protocols import World
from kraftd.wire.batch import read_batch, values
from kraftd.wire.record_frame import VersionedRecord, decode_record


class Committed(NamedTuple):
    """One committed batch, in its bytes."""

    entry: Entry
    data: bytes


class Replayed:
    """A prefix of the committed log as an image. `record_checker`, if given, gets each record first."""

    def __init__(self, static_voters: VoterSet, record_checker: RecordChecker | None = None) -> None:
        self.image = Image()
        self.history = ControlRecordHistory(static_voters)
        self.end = 0
        self.batches = 0
        self.waiting: list[tuple[VersionedRecord, int, int]] | None = None  # of an open transaction
        self._record_checker = record_checker

    def apply(self, batch: Committed) -> None:
        """The next batch. Raises Violation."""
        entry = batch.entry
        found = read_batch(batch.data, verify=False)
        record_checker = self._record_checker
        if found.header.is_control:
            self.history.read_batch(found)
        else:
            offset = entry.base
            if record_checker is not None:
                record_checker.batch_begins(entry)
            for value in values(found):
                record = decode_record(value)
                if record_checker is not None:
                    record_checker.record(record, offset, entry.epoch)
                self._record(record, offset, entry.epoch)
                offset += 1
            if record_checker is not None and self.waiting is None:
                record_checker.batch_ends(entry)
        self.end = entry.end
        self.batches += 1

    def _record(self, record: VersionedRecord, offset: int, epoch: int) -> None:
        kind = type(record.message)
        if kind is BeginTransactionRecord:
            self.waiting = []
        elif kind is AbortTransactionRecord:
            self.waiting = None
        elif kind is EndTransactionRecord:
            waiting, self.waiting = self.waiting, None
            for one in waiting or ():
                self._take_in(*one)
        elif self.waiting is not None:
            self.waiting.append((record, offset, epoch))
        else:
            self._take_in(record, offset, epoch)

    def _take_in(self, record: VersionedRecord, offset: int, epoch: int) -> None:
        if self._record_checker is not None:
            self._record_checker.applying(record.message, offset)
        try:
            self.image.apply(record.message, offset, epoch)
        except ReplayError as error:
            raise Violation("C1", f"what is committed contradicts itself: {error}") from None
        if self._record_checker is not None:
            self._record_checker.applied(record.message, offset)

    def __repr__(self) -> str:
        return f"<Replayed to {self.end}, {self.image!r}>"


class Reference:
    """`newest` is the image of all committed records, maintained only if controllers are simulated."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.batches: dict[tuple[int, int], bytes] = {}  # by epoch and base offset
        self.log: list[Committed] = []
        self.newest: Replayed | None = None
        self._lagging: Replayed | None = None

    def follow(self, record_checker: RecordChecker) -> None:
        """Replay every batch as soon as it is committed."""
        self.newest = Replayed(self._static_voters(), record_checker)

    def commit(self, entry: Entry) -> None:
        """Replay a committed batch."""
        batch = Committed(entry, self.batches[entry.epoch, entry.base])
        self.log.append(batch)
        if self.newest is not None:
            self.newest.apply(batch)

    def at(self, end: int) -> Replayed:
        """The committed log up to the end of a batch; valid only until the next call."""
        found = self._lagging
        if found is None or found.end > end:
            found = self._lagging = Replayed(self._static_voters())
        while found.end < end:
            found.apply(self.log[found.batches])
        return found

    def values_at(self, end: int) -> list[bytes] | None:
        """The records of a snapshot that ends there; None inside of a transaction."""
        found = self.at(end)
        return None if found.waiting is not None else image_values(found.image)

    def _static_voters(self) -> VoterSet:
        cluster: Cluster = self.world.cluster
        return next(iter(cluster.hosts.values())).static_voters

    def __repr__(self) -> str:
        return f"<Reference of {len(self.log)} batches>"
