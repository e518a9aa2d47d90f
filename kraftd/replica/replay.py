"""Reads the committed log into the image, one slice per event loop callback, so that requests are answered in
between.
"""

from __future__ import annotations

from collections.abc import Iterator

from kraftd.ground.effect import Effect
from kraftd.metadata.image import Image
from kraftd.replica.effects import ReadCommitted
from kraftd.replica.load_progress import LoadProgress
from kraftd.requests.effects import ScheduleSlice
from kraftd.types import OffsetAndEpoch
from kraftd.wire.batch import iter_batches
from kraftd.wire.message import Message
from kraftd.wire.record_frame import decode_runs

# The id of a snapshot and its records, some at a time.
Snapshot = tuple[OffsetAndEpoch, Iterator[list[Message]]]

READ_BYTES = 1 << 20
MAX_RECORDS_PER_CALLBACK = 500  # about 1 ms; 5 ms where this process is a broker and hosts all partitions


class Replay:
    """The progress of the image: `next_offset` is the first offset not applied."""

    def __init__(
        self, image: Image, snapshot: Snapshot | None = None, load_progress: LoadProgress | None = None
    ) -> None:
        self.image = image
        self.load_progress = LoadProgress() if load_progress is None else load_progress
        self.next_offset = 0
        self.complete = False  # everything known to be committed has been applied
        self.snapshot_end = 0 if snapshot is None else snapshot[0].offset  # of the first one to load
        self._slices = None if snapshot is None else self._load(*snapshot)
        self._reading = False
        self._awaits_snapshot = False

    def start(self) -> Effect | None:
        """The first effect, if there is a snapshot to load."""
        return None if self._slices is None else ScheduleSlice()

    def await_snapshot(self) -> None:
        """Stop reading the log until a snapshot is loaded."""
        self._reading = self._awaits_snapshot = True

    def load(self, snapshot_id: OffsetAndEpoch, runs: Iterator[list[Message]]) -> None:
        """Accept the awaited snapshot, to be applied in slices."""
        self._reading = self._awaits_snapshot = False
        self.snapshot_end = snapshot_id.offset
        self._slices = self._load(snapshot_id, runs)

    def more(self, high_watermark: int) -> Effect | None:
        """The next effect, if any, now that everything below the high watermark is committed."""
        if high_watermark <= self.next_offset:
            self.complete = True
            return None
        self.complete = False
        if self._reading or self._slices is not None:
            return None
        self._reading = True
        return ReadCommitted(self.next_offset, high_watermark, READ_BYTES)

    def begin(self, offset: int, data: bytes | memoryview) -> None:
        """Accept batches that were read, to be applied in slices."""
        if not self._reading or offset != self.next_offset or not data:
            return  # from a log that was replaced since
        self._reading = False
        self._slices = self._apply(data)

    def run_slice(self, high_watermark: int) -> Effect | None:
        """Apply one slice; returns the next effect, if there is more."""
        if self._slices is not None:
            if next(self._slices, self) is None:
                return ScheduleSlice()
            self._slices = None
        return self.more(high_watermark)

    @property
    def busy(self) -> bool:
        """Return whether the next slice has something to apply."""
        return self._slices is not None

    @property
    def loads_snapshot(self) -> bool:
        """Return whether a snapshot is being applied, or awaited."""
        return self._awaits_snapshot or self.next_offset < self.snapshot_end

    def _load(self, snapshot_id: OffsetAndEpoch, runs: Iterator[list[Message]]) -> Iterator[None]:
        apply_all = self.image.apply_all
        last_offset, epoch = snapshot_id.offset - 1, snapshot_id.epoch
        left = MAX_RECORDS_PER_CALLBACK
        for messages in runs:
            apply_all(messages, last_offset, epoch, of_snapshot=True)
            self.load_progress.records += len(messages)
            left -= len(messages)
            if left <= 0:
                left = MAX_RECORDS_PER_CALLBACK
                yield None
        self.next_offset = snapshot_id.offset

    def _apply(self, data: bytes | memoryview) -> Iterator[None]:
        image = self.image
        apply_all = image.apply_all
        left = MAX_RECORDS_PER_CALLBACK
        for batch in iter_batches(data, verify=False):  # storage has verified them
            header = batch.header
            if header.is_control:
                self.next_offset = header.last_offset + 1
                continue
            offset = header.base_offset
            epoch = header.leader_epoch
            self.load_progress.timestamp_ms = header.max_timestamp_ms
            for messages in decode_runs(batch):
                count = len(messages)
                if offset < self.next_offset:
                    messages = messages[self.next_offset - offset :]
                if messages:
                    end = offset + count
                    before = image.partition_count
                    apply_all(messages, end - len(messages), epoch)
                    left -= max(before - image.partition_count, 0)  # a record may remove very many
                    self.next_offset = end
                    self.load_progress.records += len(messages)
                offset += count
                left -= count
                if left <= 0:
                    left = MAX_RECORDS_PER_CALLBACK
                    yield None
            self.next_offset = header.last_offset + 1

    def __repr__(self) -> str:
        return f"<Replay at {self.next_offset}, {'complete' if self.complete else 'behind'}>"
