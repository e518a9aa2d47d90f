"""The committed offsets of a log, from one replica or several.

The high watermark is not on disk. Of several replicas, the one with the latest epoch and, within it, the
highest offset has the log. Records are committed if a majority of the voters holds them, record for record,
or a checkpoint covers them. With fewer voters than a majority no more can be proved: then the records that
all given replicas share count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from kraftd.log.epochs import FILE_NAME as EPOCHS_FILE
from kraftd.log.epochs import decode_epochs
from kraftd.log.segment import scan
from kraftd.messages.leader_change_message import LeaderChangeMessage
from kraftd.messages.voters_record import VotersRecord
from kraftd.spark.errors import InputError
from kraftd.spark.inputs.layout import Replica
from kraftd.spark.inputs.planning import (
    SegmentPlan,
    Split,
    TornTail,
    plan_segment,
    split_bytes_of,
    walk_headers,
)
from kraftd.spark.inputs.storage import StoredFile, join, read_bytes, split_name
from kraftd.types import uuid_text
from kraftd.wire.batch import CorruptBatch, control_records
from kraftd.wire.errors import ProtocolError
from kraftd.wire.message import Message

Epochs = list[tuple[int, int]]
"""(epoch, its first offset), ascending."""


@dataclass(frozen=True)
class ReplicaLog:
    """A replica and the plan of its segments."""

    replica: Replica
    plans: tuple[SegmentPlan, ...]

    @property
    def start_offset(self) -> int:
        return self.plans[0].segment.base_offset if self.plans else self.checkpoint_end_offset

    @property
    def end_offset(self) -> int:
        return self.plans[-1].end_offset if self.plans else self.checkpoint_end_offset

    @property
    def checkpoint_end_offset(self) -> int:
        """The end of the newest checkpoint, 0 where there is none."""
        return max((each.end_offset for each in self.replica.checkpoints), default=0)

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

    @property
    def gaps(self) -> list[str]:
        """The gaps, in words: segments that do not begin at the end offset of the one before."""
        return [
            _gap(before, after)
            for before, after in pairwise(self.plans)
            if before.end_offset != after.segment.base_offset
        ]


@dataclass(frozen=True)
class CommittedLog:
    """The log to read: one replica's, up to below end_offset. notes are for the user."""

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
    log = ReplicaLog(replica, tuple(plans))
    if log.gaps and not permissive:
        raise InputError(f"{log.gaps[0]}; mode PERMISSIVE reads what is there")
    for at, (before, after) in enumerate(pairwise(plans), 1):
        if before.end_offset != after.segment.base_offset and after.splits:
            # The task that reads on from there finds the gap, and adds a row for it.
            first = replace(after.splits[0], first_offset=before.end_offset)
            plans[at] = replace(after, splits=(first, *after.splits[1:]))
    return replace(log, plans=tuple(plans))


def _gap(before: SegmentPlan, after: SegmentPlan) -> str:
    torn = f" with a torn tail at byte {before.torn.position}" if before.torn else ""
    return (
        f"{after.segment.path}: byte 0, offset {after.segment.base_offset}: the segment before ends at "
        f"offset {before.end_offset}{torn}. A segment is missing or cut short"
    )


def committed_log(
    replicas: Sequence[Replica],
    split_bytes: int | None = None,
    *,
    permissive: bool = False,
    high_watermark: int | None = None,
) -> CommittedLog:
    """The log on which several replicas agree. A given high_watermark is trusted."""
    logs = [plan_log(replica, split_bytes, permissive=permissive) for replica in replicas]
    chosen = max(logs, key=lambda log: (log.last_epoch, log.end_offset))
    notes = [str(log.torn) for log in logs if log.torn is not None]
    notes += chosen.gaps
    end = chosen.end_offset
    if high_watermark is not None:
        return CommittedLog(chosen, min(end, high_watermark), tuple(notes))
    end, unproved = _majority_end(chosen, logs)
    # A checkpoint is made of committed records, so all records that it covers are committed.
    covered = (log.checkpoint_end_offset for log in logs)
    end = max(end, *(offset for offset in covered if offset <= chosen.end_offset), 0)
    if unproved is not None:
        notes.append(
            f"{chosen.replica.path}: {unproved} cannot prove what is committed; the log is read to offset "
            f"{end - 1}. Give the other voters' directories, or --high-watermark"
        )
    elif end < chosen.end_offset:
        notes.append(
            f"{chosen.replica.path}: offsets {end} to {chosen.end_offset - 1} are not held by a majority and "
            "are not read"
        )
    return CommittedLog(chosen, end, tuple(notes))


def _majority_end(chosen: ReplicaLog, logs: Sequence[ReplicaLog]) -> tuple[int, str | None]:
    """The offset below which a majority of the voters holds the chosen log, and None. With too few voters,
    the offset below which all replicas hold it, and a text about the voters present.

    Observers do not count, and two directories of one voter count once.
    """
    voters = find_voters(chosen)
    chosen_epochs = epochs_of(chosen)
    ends = []
    held: dict[int | str, int] = {}
    for log in logs:
        end = chosen.end_offset if log is chosen else _agreed_end(chosen, chosen_epochs, log, epochs_of(log))
        ends.append(end)
        replica = log.replica
        if voters is None or any(voter.may_be(replica) for voter in voters):
            key = replica.path if replica.node_id is None else replica.node_id
            held[key] = max(end, held.get(key, 0))
    count = len(held) if voters is None else len(voters)
    needed = count // 2 + 1
    if len(held) >= needed:
        return sorted(held.values(), reverse=True)[needed - 1], None
    return min(ends), f"{len(held)} of {count} voters" if held else "a directory of no voter"


def epochs_of(log: ReplicaLog) -> Epochs:
    """The first offset of each epoch in a log: from leader-epoch-checkpoint if it fits the log, else from all
    headers.
    """
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
    """The offset below which two logs hold the same records: the same epoch at the same offset (S4)."""
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


@dataclass(frozen=True)
class Voter:
    """A voter; directory_id is None where the quorum does not know it (kraft.version 0)."""

    node_id: int
    directory_id: str | None

    def may_be(self, replica: Replica) -> bool:
        """Return whether a replica can be this voter's; unknown ids of the replica match."""
        if replica.node_id not in (None, self.node_id):
            return False
        return None in (self.directory_id, replica.directory_id) or self.directory_id == replica.directory_id


def find_voters(log: ReplicaLog) -> tuple[Voter, ...] | None:
    """The newest voter set that a log or its checkpoint names, committed or not; None where none is named.

    The last leader's first record names the voters of its election; voters that come and go later
    (KIP-853) are in a record of their own, or in a checkpoint.
    """
    epochs = epochs_of(log)
    since = epochs[-1][1] if epochs else log.start_offset
    found = None
    checkpoint = next(iter(reversed(log.replica.checkpoints)), None)
    if checkpoint is not None and since <= checkpoint.end_offset <= log.end_offset:
        found = _last_voters(checkpoint.path, 0, checkpoint.size_bytes, only_first=True)
        if found is not None:
            since = checkpoint.end_offset
    for split in log.splits:
        if split.next_offset > since:
            found = _last_voters(split.path, split.start, split.end, since) or found
    return found


def _last_voters(
    path: str, start: int, end: int, since: int = 0, *, only_first: bool = False
) -> tuple[Voter, ...] | None:
    """The last voter set that control batches of a byte range name, from an offset on."""
    found = None
    file = StoredFile(path)
    try:
        for position, header in walk_headers(file, start, end):
            if header.is_control and header.last_offset >= since:
                batch = next(scan(file, position, position + header.size_bytes))
                for record in control_records(batch):
                    found = _voters_in(record.message) or found
            if only_first:
                break
    except (CorruptBatch, ProtocolError):
        pass  # the task that reads this batch reports the damage
    finally:
        file.close()
    return found


def _voters_in(message: Message | None) -> tuple[Voter, ...] | None:
    if not isinstance(message, LeaderChangeMessage | VotersRecord):
        return None
    return tuple(
        Voter(voter.voter_id, uuid_text(voter.voter_directory_id) if any(voter.voter_directory_id) else None)
        for voter in message.voters
    )
