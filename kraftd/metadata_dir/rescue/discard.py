"""Discards records that this replica knows as committed, and the quorum has lost: an operator's answer to a
refusal (`high_watermark.Refusal`).

The records are copied to a file in `discarded/` first, with the checkpoints that hold some of them. Then the
high watermark is lowered, then the log is cut. A kill in between leaves a log that the command can be run on
again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec import structs

from kraftd.log.disk import Disk
from kraftd.log.errors import DirectoryProblem
from kraftd.log.kept_records import KeptRecords
from kraftd.log.overlay_disk import OverlayDisk
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata_dir.directory import PARTITION_DIRECTORY
from kraftd.metadata_dir.files.checkpoint import checkpoint_name, checkpoint_path
from kraftd.metadata_dir.files.high_watermark import HighWatermarkFile, Mark, Refusal, read_mark
from kraftd.metadata_dir.metadata_log import MetadataLog
from kraftd.metadata_dir.recovery import open_log
from kraftd.named_tuple import NamedTuple
from kraftd.types import OffsetAndEpoch
from kraftd.wire.batch import Batch, control_records, iter_batches, values
from kraftd.wire.record_frame import decode_record

DISCARDED_DIRECTORY = "discarded"
_READ_BYTES = 1 << 20


class Plan(NamedTuple):
    """What is to be discarded: the records from `start` on, of a log that ends at `end`, and checkpoints.

    `committed` is the end of the records that this replica knows as committed. `log_start` is where the log
    begins afterwards. `types` counts the records, `created` and `deleted` name topics.
    """

    refused: Refusal
    start: int
    end: int
    log_start: int
    committed: int
    snapshots: tuple[OffsetAndEpoch, ...]
    epochs: tuple[int, int]
    types: Counter[str]
    created: tuple[str, ...]
    deleted_count: int


def plan(disk: Disk, directory: str) -> Plan:
    """What a discard of that data directory would drop; changes nothing.

    Raises DirectoryProblem if this replica has refused nothing, or a start would be refused; CorruptStorage.
    """
    partition = f"{directory}/{PARTITION_DIRECTORY}"
    mark = read_mark(disk, partition)
    refused = mark.refused
    if refused is None:
        raise DirectoryProblem(
            f"{partition} needs no discard: no leader has asked this node to drop records that it knows as "
            "committed. Nothing was changed"
        )
    overlay = OverlayDisk(disk)
    try:
        log = open_log(overlay, partition).log
        start, log_start = _bounds(log, refused)
        snapshots = tuple(one for one in log.snapshots if one.offset > start)
        first = log.epochs.epoch_of(max(start, log.log_start))
        return Plan(
            refused,
            start,
            log.log_end,
            log_start,
            max(mark.high_watermark, *(one.offset for one in log.snapshots), 0),
            snapshots,
            (log.last_epoch if first is None else first, log.last_epoch),
            *_contents(log, max(start, log.log_start)),
        )
    finally:
        overlay.close()


def _bounds(log: MetadataLog, refused: Refusal) -> tuple[int, int]:
    """Where the log is to end and to start. It is emptied if the leader's records part before its start."""
    beyond = refused.snapshot_offset if refused.snapshot_offset >= 0 else refused.offset
    if beyond < log.log_start:
        return 0, 0
    return log.batch_start(min(refused.offset, log.log_end)), log.log_start


def _contents(log: MetadataLog, start: int) -> tuple[Counter[str], tuple[str, ...], int]:
    """How many records of each type the log holds from an offset on, and which topics they create."""
    types: Counter[str] = Counter()
    created: dict[bytes, str] = {}
    deleted_count = 0
    for batch in _batches(log, start):
        if batch.header.is_control:
            types.update(type(record.message).__name__ for record in control_records(batch))
            continue
        for value in values(batch):
            message, _ = decode_record(value)
            types[type(message).__name__] += 1
            if isinstance(message, TopicRecord):
                created[message.topic_id] = message.name
            elif isinstance(message, RemoveTopicRecord) and created.pop(message.topic_id, None) is None:
                deleted_count += 1
    return types, tuple(created.values()), deleted_count


def _batches(log: MetadataLog, offset: int) -> Iterator[Batch]:
    while offset < log.log_end:
        for batch in iter_batches(log.read(offset, _READ_BYTES), verify=False):
            yield batch
            offset = batch.header.next_offset


def discard(disk: Disk, directory: str, planned: Plan) -> list[str]:
    """Copy and drop what was planned; returns the paths of the copies.

    The caller holds the directory's lock. Raises StorageError.
    """
    partition = f"{directory}/{PARTITION_DIRECTORY}"
    opened = open_log(disk, partition)
    log, kept = opened.log, KeptRecords(disk, f"{partition}/{DISCARDED_DIRECTORY}", bounded=False)
    copies = [_keep_snapshot(disk, partition, kept, one) for one in planned.snapshots]
    first = max(planned.start, log.log_start)
    copy = kept.path_of(first, log.log_end, log.last_epoch)  # of a discard that was interrupted
    if copy is None and (copied := log.copy_from(first, kept)) is not None:
        copy = copied.path
    if copy is not None:
        copies.insert(0, copy)
    file = HighWatermarkFile(disk, partition, opened.mark)
    epoch = log.epochs.epoch_of(planned.start - 1) if planned.start else 0
    kept_mark = Mark(planned.start, log.start_epoch if epoch is None else epoch)
    file.write(structs.replace(kept_mark, refused=planned.refused))
    if planned.start < log.log_start:
        _cut(disk, log, log.log_start)  # else a kill might leave epochs of a log that is gone
        log.truncate_fully_to(0, 0)
        log.sync()
        _remove_snapshots(disk, log, planned)
    else:
        _remove_snapshots(disk, log, planned)
        _cut(disk, log, planned.start)
    log.close()
    file.write(kept_mark)
    return copies


def _cut(disk: Disk, log: MetadataLog, start: int) -> None:
    """Cut the log there, without the copy that a truncation makes: there is one already."""
    log.truncate_to(start)
    log.sync()
    if log.last_truncation is not None:
        disk.remove(log.last_truncation.path)


def _keep_snapshot(disk: Disk, partition: str, kept: KeptRecords, snapshot_id: OffsetAndEpoch) -> str:
    file = disk.open(checkpoint_path(partition, snapshot_id))
    path = f"{kept.directory}/{checkpoint_name(snapshot_id)}"
    try:
        kept.write(path, [(file, 0)])
    finally:
        file.close()
    return path


def _remove_snapshots(disk: Disk, log: MetadataLog, planned: Plan) -> None:
    """Remove the planned checkpoints, the newest first: any that a kill leaves still goes with the log."""
    for snapshot_id in reversed(planned.snapshots):
        log.forget_snapshot(snapshot_id)
        disk.remove(checkpoint_path(log.directory, snapshot_id))
    disk.sync_directory(log.directory)
