"""Checkpoints: their splits among tasks, the check that one is whole, and its first batch."""

from __future__ import annotations

from dataclasses import dataclass

from kraftd.log.segment import scan
from kraftd.messages.kraft_version_record import KRaftVersionRecord
from kraftd.messages.snapshot_header_record import SnapshotHeaderRecord
from kraftd.messages.voters_record import VotersRecord
from kraftd.spark.errors import InputError, damaged
from kraftd.spark.inputs.layout import CheckpointFile, SegmentFile
from kraftd.spark.inputs.planning import SegmentPlan, Split, plan_segment, split_bytes_of, walk_headers
from kraftd.spark.inputs.storage import StoredFile
from kraftd.wire.batch import CorruptBatch, control_records
from kraftd.wire.errors import ProtocolError


@dataclass(frozen=True)
class CheckpointHeader:
    """The content of a checkpoint's first batch; voters is None under kraft.version 0."""

    last_contained_log_timestamp_ms: int | None
    kraft_version: int
    voters: list[int] | None


def checkpoint_splits(
    checkpoint: CheckpointFile, split_bytes: int | None = None, *, permissive: bool = False
) -> list[Split]:
    """The splits of a checkpoint. Raises InputError for one that is not whole, unless permissive."""
    split_bytes = split_bytes or split_bytes_of(checkpoint.size_bytes)
    segment = SegmentFile(checkpoint.path, 0, checkpoint.size_bytes)
    plan = plan_segment(segment, split_bytes, permissive=permissive)
    if not permissive and (plan.torn is not None or not _has_footer(plan)):
        end = plan.splits[-1].end if plan.splits else 0
        raise InputError(
            f"{checkpoint.path}: byte {end}, offset {plan.end_offset}: the checkpoint is not whole. Move it "
            "aside: an older one, or another replica's, has the rest"
        )
    return list(plan.splits)


def is_sound(checkpoint: CheckpointFile) -> bool:
    """Return whether a checkpoint is whole and every checksum in it is right."""
    try:
        checkpoint_splits(checkpoint)
        file = StoredFile(checkpoint.path)
        try:
            for _ in scan(file, 0, file.size_bytes()):
                pass
        finally:
            file.close()
    except (InputError, CorruptBatch):
        return False
    return True


def read_header(checkpoint: CheckpointFile) -> CheckpointHeader:
    """Read the first batch of a checkpoint. Raises InputError if it cannot be read."""
    timestamp_ms, kraft_version, voters = None, 0, None
    file = StoredFile(checkpoint.path)
    try:
        first = next(scan(file, 0, file.size_bytes()), None)
        for record in [] if first is None or not first.header.is_control else control_records(first):
            message = record.message
            if isinstance(message, SnapshotHeaderRecord):
                timestamp_ms = message.last_contained_log_timestamp
            elif isinstance(message, KRaftVersionRecord):
                kraft_version = message.kraft_version
            elif isinstance(message, VotersRecord):
                voters = [voter.voter_id for voter in message.voters]
    except CorruptBatch as error:
        raise damaged(checkpoint.path, error.position, error.reason) from None
    except ProtocolError as error:
        raise damaged(checkpoint.path, 0, str(error)) from None
    finally:
        file.close()
    return CheckpointHeader(timestamp_ms, kraft_version, voters)


def _has_footer(plan: SegmentPlan) -> bool:
    """Return whether a checkpoint was written to its end, a control batch that is not its first."""
    if not plan.splits:
        return False
    split = plan.splits[-1]
    file = StoredFile(split.path)
    try:
        *_, (position, header) = walk_headers(file, split.start, split.end)
    finally:
        file.close()
    return header.is_control and position > 0
