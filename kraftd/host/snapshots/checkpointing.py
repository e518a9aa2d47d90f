"""Makes a checkpoint: replays the previous one and the log after it, and writes the image (KIP-630).

It runs in a child process of the daemon (`kraftd.runtime.children.snapshot_writer`), with the daemon's replay
code. The simulator runs it, too. It blocks, and changes only the new file.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msgspec import Struct

from kraftd.log.disk import Disk
from kraftd.log.errors import CorruptStorage, StorageError
from kraftd.log.reader import read_batches
from kraftd.metadata.errors import ReplayError, UnwritableMetadataError
from kraftd.metadata.image import Image
from kraftd.metadata_dir.files.checkpoint import (
    CheckpointReader,
    CheckpointWriter,
    checkpoint_path,
    verify_checkpoint,
)
from kraftd.raft.quorum.history import ControlRecordHistory
from kraftd.replica.replay import Replay, Snapshot
from kraftd.requests.effects import ScheduleSlice
from kraftd.types import OffsetAndEpoch
from kraftd.wire.errors import ProtocolError
from kraftd.wire.record_frame import encode_records

# A reader takes a batch at a time: small enough to be decoded between two requests.
BATCH_BYTES = 256 << 10
BATCH_RECORDS = 2_048


class CheckpointOrder(Struct, frozen=True, kw_only=True):
    """The order for a checkpoint.

    end_offset is a batch boundary at or below the high watermark. base is the checkpoint to begin with (None:
    the log from offset 0 on). position is that, in its segment, of a batch at or before the end of base.
    min_changed_ratio is the part of the base's records that must have changed, 0 for none.
    """

    directory: str
    end_offset: int
    epoch: int
    base: OffsetAndEpoch | None = None
    position: int = 0
    min_changed_ratio: float = 0.0

    @property
    def snapshot_id(self) -> OffsetAndEpoch:
        return OffsetAndEpoch(self.end_offset, self.epoch)


class CheckpointMade(Struct, frozen=True, kw_only=True):
    """The result of an order. `outcome` is `made`; `transaction` if a metadata transaction is open at the end
    offset, so that a later one is needed; `unchanged` if too few records differ from the base; or `damaged`
    if the file at `path` is: `text` says how.
    """

    outcome: str
    size_bytes: int = 0
    record_count: int = 0
    changed_ratio: float = 1.0
    path: str = ""
    text: str = ""


MADE, TRANSACTION, UNCHANGED, DAMAGED = "made", "transaction", "unchanged", "damaged"


class CheckpointFailed(Exception):
    """A checkpoint could not be made; the text says why."""


def carry_out(disk: Disk, order: CheckpointOrder, now_ms: int) -> CheckpointMade:
    """The work of the child process: as `make_checkpoint`, with damage as an outcome.

    Raises CheckpointFailed.
    """
    try:
        return make_checkpoint(disk, order, now_ms)
    except CorruptStorage as error:
        return CheckpointMade(outcome=DAMAGED, path=error.path, text=str(error))
    except (StorageError, ReplayError, UnwritableMetadataError, ProtocolError, FileNotFoundError) as error:
        raise CheckpointFailed(str(error)) from error


def make_checkpoint(disk: Disk, order: CheckpointOrder, now_ms: int) -> CheckpointMade:
    """Carry out an order. The file has its name, durably and checked, when this returns `made`.

    Raises StorageError, ReplayError, UnwritableMetadataError, ProtocolError without leaving a file; a crash
    leaves a `.part`.
    """
    history = ControlRecordHistory()
    replay = Replay(Image(), _open_base(disk, order, history))
    image = replay.image
    start = 0
    if order.base is not None:
        start = order.base.offset
        load_all(replay)
    record_count = sum(1 for _ in image.records()) if order.min_changed_ratio > 0 else 0
    if record_count:
        image.mark()
    timestamp_ms = 0
    for batch in read_batches(disk, order.directory, start, order.end_offset, order.position):
        history.read_batch(batch)
        replay.more(batch.header.next_offset)
        replay.begin(batch.header.base_offset, batch.view)
        load_all(replay)
        timestamp_ms = batch.header.max_timestamp_ms
    if image.in_transaction:
        return CheckpointMade(outcome=TRANSACTION)
    changed_ratio = 1.0
    if record_count:
        changed_ratio = image.changed_key_count / record_count
        if changed_ratio < order.min_changed_ratio:
            return CheckpointMade(outcome=UNCHANGED, changed_ratio=changed_ratio)
    last = order.end_offset - 1
    kraft_version = history.kraft_version_at(last)
    voters = history.voters_at(last)
    writer = CheckpointWriter(
        disk,
        order.directory,
        order.snapshot_id,
        last_contained_log_timestamp_ms=timestamp_ms,
        now_ms=now_ms,
        kraft_version=kraft_version,
        voters=voters.to_record() if kraft_version > 0 and len(voters) else None,
    )
    count = 0
    try:
        for values in runs_of(image):
            writer.append(values)
            count += len(values)
        size_bytes = writer.freeze(verify_checkpoint)
    except Exception:
        writer.abandon()
        raise
    return CheckpointMade(
        outcome=MADE, size_bytes=size_bytes, record_count=count, changed_ratio=changed_ratio
    )


def _open_base(disk: Disk, order: CheckpointOrder, history: ControlRecordHistory) -> Snapshot | None:
    if order.base is None:
        return None
    reader = CheckpointReader(disk, checkpoint_path(order.directory, order.base))
    for batch in reader.leading_control_batches():
        history.read_batch(batch, at_offset=order.base.offset - 1)
    return order.base, reader.runs()


def load_all(replay: Replay) -> None:
    """Apply what the replay has, in all its slices."""
    while type(replay.run_slice(0)) is ScheduleSlice:
        pass


def runs_of(image: Image) -> Iterator[list[bytes]]:
    """The image's records as values, in lists for a batch each."""
    records = image.records()
    while some := list(islice(records, BATCH_RECORDS)):
        values = encode_records(some)
        if sum(map(len, values)) <= BATCH_BYTES:
            yield values
        else:
            yield from _small_enough(values)


def _small_enough(values: list[bytes]) -> Iterator[list[bytes]]:
    run: list[bytes] = []
    size = 0
    for value in values:
        if size + len(value) > BATCH_BYTES and run:
            yield run
            run, size = [], 0
        run.append(value)
        size += len(value)
    yield run
