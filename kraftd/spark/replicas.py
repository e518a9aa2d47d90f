"""Which offsets of a log are committed, from what one replica or several hold of it.

The high watermark is not on disk. Of several replicas the log is that of the one with the latest epoch and,
within it, the highest offset; committed is what a majority of the voters holds of it, record for record. With
fewer directories than a majority nothing can be proved: then it is what all those given agree on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from kraftd.log.epochs import FILE_NAME as EPOCHS_FILE
from kraftd.log.epochs import decode_epochs
from kraftd.log.segment import scan
from kraftd.messages.leader_change_message import LeaderChangeMessage
from kraftd.spark.errors import InputError
from kraftd.spark.layout import Replica
from kraftd.spark.planning import SegmentPlan, Split, TornTail, plan_segment, split_bytes_of, walk_headers
from kraftd.spark.storage import StoredFile, join, read_bytes, split_name
from kraftd.wire.batch import CorruptBatch, control_records
from kraftd.wire.errors import ProtocolError

Epochs = list[tuple[int, int]]
"""(epoch, its first offset), ascending."""


@dataclass(frozen=True)
class ReplicaLog:
    """A replica and the plan of its segments."""

    replica: Replica
    plans: tuple[SegmentPlan, ...]

    @property
    def start_offset(self) -> int:
        return self.plans[0].segment.base_offset if self.plans else 0

    @property
    def end_offset(self) -> int:
        return self.plans[-1].end_offset if self.plans else 0

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, -1 of an empty log."""
        return max((plan.last_epoch for plan in self.plans if plan.last_epoch is not None), default=-1)

    @property
    def torn(self) -> TornTail | None:
        return self.plans[-1].torn if self.plans else None

    @property
    def splits(self) -> list[Split]:
        return [split for plan in self.plans for split in plan.splits]


@dataclass(frozen=True)
class CommittedLog:
    """The log to read: one replica's, up to below end_offset. notes say what a person should know of it."""

    log: ReplicaLog
    end_offset: int
    notes: tuple[str, ...]

    @property
    def replica(self) -> Replica:
        return self.log.replica

    @property
    def start_offset(self) -> int:
        return self.log.start_offset


def plan_log(replica: Replica, split_bytes: int | None = None, *, permissive: bool = False) -> ReplicaLog:
    """The plan of a replica's segments; split_bytes of None fits the log's length.

    Raises InputError for damage and for segments that are missing between two others, unless permissive.
    """
    if split_bytes is None:
        split_bytes = split_bytes_of(sum(segment.size_bytes for segment in replica.segments))
    plans = [plan_segment(segment, split_bytes, permissive=permissive) for segment in replica.segments]
    for before, after in pairwise(plans):
        if before.end_offset != after.segment.base_offset and not permissive:
            raise InputError(
                f"{after.segment.path}: byte 0, offset {after.segment.base_offset}: the segment before "
                "ends at "
                f"offset {before.end_offset}"
                + (f" with a torn tail at byte {before.torn.position}" if before.torn else "")
                + ". A segment is missing or cut short; mode PERMISSIVE reads what is there"
            )
    return ReplicaLog(replica, tuple(plans))


def committed_log(
    replicas: Sequence[Replica],
    split_bytes: int | None = None,
    *,
    permissive: bool = False,
    high_watermark: int | None = None,
) -> CommittedLog:
    """The log that several replicas agree on. high_watermark, where it is known, is taken at its word."""
    logs = [plan_log(replica, split_bytes, permissive=permissive) for replica in replicas]
    chosen = max(logs, key=lambda log: (log.last_epoch, log.end_offset))
    notes = [str(log.torn) for log in logs if log.torn is not None]
    end = chosen.end_offset
    if high_watermark is not None:
        return CommittedLog(chosen, min(end, high_watermark), tuple(notes))
    voters = _voter_count(chosen)
    if len(logs) > 1:
        needed = (voters or len(logs)) // 2 + 1
        chosen_epochs = epochs_of(chosen)
        held = sorted((_agreed_end(chosen, chosen_epochs, log, epochs_of(log)) for log in logs), reverse=True)
        end = held[min(needed, len(held)) - 1]
        if end < chosen.end_offset:
            notes.append(
                f"{chosen.replica.path}: offsets {end} to {chosen.end_offset - 1} are not held by a "
                "majority and "
                "are not read"
            )
    elif voters is not None and voters > 1:
        notes.append(
            f"{chosen.replica.path}: one of {voters} voters cannot prove what is committed; its log is "
            "read to "
            f"offset {end - 1}. Give the other voters' directories, or --high-watermark"
        )
    return CommittedLog(chosen, end, tuple(notes))


def epochs_of(log: ReplicaLog) -> Epochs:
    """Where each epoch begins in a log: from leader-epoch-checkpoint where it fits the log, else by all
    headers."""
    if not log.plans:
        return []
    directory, _ = split_name(log.plans[0].segment.path)
    data = read_bytes(join(directory, EPOCHS_FILE))
    kept = None if data is None else decode_epochs(data)
    if kept:
        kept = [(epoch, start) for epoch, start in kept if start < log.end_offset]
        if kept and kept[-1][0] == log.last_epoch:
            return kept
    return _walked_epochs(log)


def _walked_epochs(log: ReplicaLog) -> Epochs:
    found: Epochs = []
    for plan in log.plans:
        file = StoredFile(plan.segment.path)
        try:
            for _, header in walk_headers(file, 0, file.size_bytes()):
                if not found or header.leader_epoch > found[-1][0]:
                    found.append((header.leader_epoch, header.base_offset))
        finally:
            file.close()
    return found


def _agreed_end(a: ReplicaLog, a_epochs: Epochs, b: ReplicaLog, b_epochs: Epochs) -> int:
    """Below which offset two logs hold the same records: the same epoch at the same offset (S4)."""
    end = min(a.end_offset, b.end_offset)
    start = max(a.start_offset, b.start_offset)
    for offset in sorted({start, *(first for _, first in a_epochs + b_epochs)}):
        if start <= offset < end and epoch_at(a_epochs, offset) != epoch_at(b_epochs, offset):
            return offset
    return end


def epoch_at(epochs: Epochs, offset: int) -> int | None:
    """The epoch of the record at an offset, None below the first known."""
    found = None
    for epoch, first in epochs:
        if first > offset:
            break
        found = epoch
    return found


def _voter_count(log: ReplicaLog) -> int | None:
    """How many voters the last leader named, None where its record cannot be read."""
    epochs = epochs_of(log)
    if not epochs:
        return None
    offset = epochs[-1][1]
    split = next((split for split in reversed(log.splits) if split.first_offset <= offset), None)
    if split is None:
        return None
    file = StoredFile(split.path)
    try:
        for position, header in walk_headers(file, split.start, split.end):
            if header.base_offset <= offset <= header.last_offset and header.is_control:
                batch = next(scan(file, position, position + header.size_bytes))
                for record in control_records(batch):
                    if isinstance(record.message, LeaderChangeMessage):
                        return len(record.message.voters)
            if header.base_offset > offset:
                break
    except (CorruptBatch, ProtocolError):
        return None
    finally:
        file.close()
    return None
