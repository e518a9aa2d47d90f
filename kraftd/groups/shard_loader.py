"""Loading a partition: its records are replayed in slices that do not hold the event loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from kraftd.ground.pace import Pace
from kraftd.groups.records import UnreadableRecord
from kraftd.groups.timeline import Timeline
from kraftd.wire.batch import Batch, control_records, iter_batches
from kraftd.wire.records import NO_PRODUCER_ID, Record, decode_fields

IN_A_ROW = 250  # records
IN_A_ROW_US = 2  # of one of them
RECORD_US = 3  # of replaying a record, besides what its value costs
BYTES_A_US = 10  # of a value: members are the most of it
ABORT, COMMIT = 0, 1  # types of control records


class Replayer(Protocol):
    """What applies the records of a log."""

    @property
    def timeline(self) -> Timeline: ...

    def on_loaded_record(self, record: Record, producer_id: int) -> None: ...

    def on_loaded_in_a_row(self, records: Sequence[tuple[Any, ...]]) -> int: ...

    def on_transaction_end(self, producer_id: int, is_commit: bool) -> None: ...


class ShardLoader:
    """A partition that is being read from `next_offset` to `end_offset`."""

    __slots__ = ("_steps", "end_offset", "next_offset", "pace", "record_count", "replayer")

    def __init__(self, replayer: Replayer, start_offset: int, end_offset: int) -> None:
        self.replayer = replayer
        self.next_offset = start_offset
        self.end_offset = end_offset
        self.record_count = 0
        self.pace = Pace()
        self._steps: Iterator[None] = iter(())

    def __repr__(self) -> str:
        return f"<ShardLoader [{self.next_offset}, {self.end_offset}), {self.record_count} records so far>"

    @property
    def is_done(self) -> bool:
        return self.next_offset >= self.end_offset

    def take(self, data: bytes | memoryview, high_watermark: int) -> None:
        """Accept what was read; `run` replays it."""
        self.replayer.timeline.commit(high_watermark)
        self._steps = self._replay(data)

    def run(self) -> bool:
        """Replay a slice; raises UnreadableRecord or CorruptBatch.

        Return whether all that was read is replayed.
        """
        return next(self._steps, False) is False

    def _replay(self, data: bytes | memoryview) -> Iterator[None]:
        """Replay batches, and stop after each slice."""
        for batch in iter_batches(data):
            if batch.header.last_offset < self.next_offset:
                continue
            if batch.header.is_control:
                self._end_transaction(batch)
                self.record_count += 1
            else:
                yield from self._replay_batch(batch)
            self.next_offset = batch.header.last_offset + 1

    def _replay_batch(self, batch: Batch) -> Iterator[None]:
        producer_id = batch.header.producer_id
        records = decode_fields(batch)
        if records and records[0][0] < self.next_offset:  # the partition begins within this batch
            records = [fields for fields in records if fields[0] >= self.next_offset]
        at = 0
        while at < len(records):
            row = records[at : at + IN_A_ROW]
            count = self.replayer.on_loaded_in_a_row(row) if producer_id == NO_PRODUCER_ID else 0
            if count:
                at += count
                self.record_count += count
                if self.pace.spent(count * IN_A_ROW_US):
                    yield
                continue
            record = Record(*records[at])
            at += 1
            self.record_count += 1
            try:
                self.replayer.on_loaded_record(record, producer_id)
            except UnreadableRecord as problem:
                raise UnreadableRecord(f"offset {record.offset}: {problem}") from problem
            if self.pace.spent(RECORD_US + len(record.value or b"") // BYTES_A_US):
                yield

    def _end_transaction(self, batch: Batch) -> None:
        for record in control_records(batch):
            if record.type in (ABORT, COMMIT):
                self.replayer.timeline.offset = record.offset
                self.replayer.on_transaction_end(batch.header.producer_id, record.type == COMMIT)
