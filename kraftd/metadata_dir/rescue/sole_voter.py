"""Makes a surviving directory's node the only voter, after a majority of the voters is lost for good.

The log is kept whole. One control batch is appended, in an epoch well above any that the old voters know. It
names this node as that epoch's leader and as the only voter. Before that the epoch is written to
`quorum-state`. A crash in between leaves the old voters and a higher epoch, which is sound. The batch itself
is whole or absent, as any batch at the end of a log.

The log of a static quorum names no voters: batch and `quorum-state` hold only the epoch, and the node's
configuration makes it the only voter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from kraftd.log.disk import Disk
from kraftd.log.epochs import EpochCache
from kraftd.log.errors import DirectoryProblem
from kraftd.log.overlay_disk import OverlayDisk
from kraftd.messages.kraft_version_record import KRaftVersionRecord
from kraftd.messages.leader_change_message import LeaderChangeMessage
from kraftd.messages.leader_change_message import Voter as LeaderVoter
from kraftd.messages.quorum_state_data import QuorumStateData
from kraftd.messages.quorum_state_data import Voter as StateVoter
from kraftd.messages.voters_record import VotersRecord
from kraftd.metadata_dir.directory import PARTITION_DIRECTORY
from kraftd.metadata_dir.files.checkpoint import CheckpointReader, checkpoint_path
from kraftd.metadata_dir.files.last_start import forget_last_start
from kraftd.metadata_dir.files.quorum_state import FILE_NAME as QUORUM_STATE
from kraftd.metadata_dir.files.quorum_state import QuorumStateFile
from kraftd.metadata_dir.formatting.voters import InitialVoter, voters_record
from kraftd.metadata_dir.recovery import OpenedLog, open_log
from kraftd.metadata_dir.rescue.new_epoch import epoch_beyond
from kraftd.named_tuple import NamedTuple
from kraftd.types import OffsetAndEpoch
from kraftd.wire.batch import Batch, ControlRecordType, build_control_batch, control_records, iter_batches
from kraftd.wire.message import Message

_COPY_BYTES = 4 << 20


class Survey(NamedTuple):
    """The content of a partition's directory.

    end is the log's end offset and its last record's epoch. committed is the high watermark on the disk, or
    the end of the newest snapshot: everything below is committed. epoch is the highest in the log and
    quorum-state. named_by are the voters' ids that each file of the directory names.
    """

    end: OffsetAndEpoch
    committed: int
    epoch: int
    kraft_version: int
    voters: VotersRecord | None
    epochs: tuple[tuple[int, int], ...]
    notes: tuple[str, ...]
    named_by: Mapping[str, frozenset[int]] = MappingProxyType({})

    @property
    def voter_ids(self) -> list[int]:
        return [] if self.voters is None else [one.voter_id for one in self.voters.voters]


class Comparison(NamedTuple):
    """How another copy's log differs: both have the same records before `common`.

    After that, this log has `only_here` records and the other `only_there`.
    """

    common: int
    only_here: int
    only_there: int


def survey(disk: Disk, directory: str) -> Survey:
    """Survey a data directory as a start would, without changing a file.

    Raises CorruptStorage or DirectoryProblem if a start would be refused.
    """
    partition = f"{directory}/{PARTITION_DIRECTORY}"
    if not disk.list_names(partition):
        raise DirectoryProblem(f"{directory} holds no metadata log. Name the data directory of a controller")
    overlay = OverlayDisk(disk)
    try:
        opened = open_log(overlay, partition)
        kraft_version, voters, elected = _voters_of(overlay, opened)
        state, unreadable = _election(overlay, partition)
    finally:
        overlay.close()
    log = opened.log
    last_epoch = log.epochs.latest or 0
    latest = log.latest_snapshot
    if latest is not None and latest.offset == log.log_end:
        last_epoch = max(last_epoch, latest.epoch)
    return Survey(
        end=OffsetAndEpoch(log.log_end, last_epoch),
        committed=max(opened.mark.high_watermark, 0 if latest is None else latest.offset),
        epoch=max(last_epoch, 0 if state is None else state.leader_epoch),
        kraft_version=kraft_version,
        voters=voters,
        epochs=tuple(log.epochs.entries),
        notes=(*opened.report.notes, *unreadable),
        named_by=_named_by(voters, elected, state),
    )


def _election(disk: Disk, partition: str) -> tuple[QuorumStateData | None, list[str]]:
    """The election state, and a sentence if its file cannot be read: a much higher epoch replaces it."""
    try:
        return QuorumStateFile(disk, partition).read(), []
    except DirectoryProblem as error:
        return None, [str(error).partition(". ")[0]]


def _named_by(
    voters: VotersRecord | None, elected: LeaderChangeMessage | None, state: QuorumStateData | None
) -> dict[str, frozenset[int]]:
    """The voters' ids by the source that names them. In a dynamic quorum only the log's voters count."""
    if voters is not None:
        return {"the log's voters": frozenset(one.voter_id for one in voters.voters)}
    found = {
        "the last election in the log": () if elected is None else elected.voters,
        QUORUM_STATE: () if state is None else state.current_voters or (),
    }
    return {name: frozenset(one.voter_id for one in some) for name, some in found.items() if some}


def compare(mine: Survey, other: Survey) -> Comparison:
    """Compare two logs by their epochs: the same epoch at an offset means the same records before it."""
    common = min(mine.end.offset, other.end.offset)
    one, two = EpochCache(mine.epochs), EpochCache(other.epochs)
    first = max(_first(mine), _first(other))
    while common > first and one.epoch_of(common - 1) != two.epoch_of(common - 1):
        # Go back to the beginning of the later of the two epochs: the records after it differ.
        common = max(start for cache in (one, two) for _, start in cache.entries if start < common)
    return Comparison(common, mine.end.offset - common, other.end.offset - common)


def recovered_epoch(surveys: Iterable[Survey]) -> int:
    """The epoch of the recovery. Raises DirectoryProblem if there is none left."""
    return epoch_beyond(max(one.epoch for one in surveys))


def kept_copies(disk: Disk, directory: str, epoch: int) -> list[tuple[str, str]]:
    """The files that a recovery changes, and the names of their copies."""
    partition = f"{directory}/{PARTITION_DIRECTORY}"
    names = disk.list_names(partition)
    logs = [name for name in names if name.endswith(".log")][-1:]
    stem = logs[0].removesuffix(".log") if logs else ""
    changed = [
        name
        for name in (QUORUM_STATE, "leader-epoch-checkpoint", *logs, f"{stem}.index", f"{stem}.timeindex")
        if name in names
    ]
    return [(f"{partition}/{name}", f"{partition}/{name}.before-epoch-{epoch}") for name in changed]


def make_sole_voter(
    disk: Disk,
    directory: str,
    voter: InitialVoter,
    listener: str,
    *,
    epoch: int,
    now_ms: int,
) -> OffsetAndEpoch:
    """Keep copies, raise the epoch, append the batch that names the only voter; returns the log's new end.

    The caller holds the directory's lock. Raises DirectoryProblem for an epoch that is too low, StorageError.
    """
    found = survey(disk, directory)
    if epoch <= found.epoch:
        raise DirectoryProblem(f"epoch {epoch} is not above {found.epoch}, which {directory} knows already")
    partition = f"{directory}/{PARTITION_DIRECTORY}"
    for source, copy in kept_copies(disk, directory, epoch):
        _copy(disk, source, copy)
    disk.sync_directory(partition)
    is_static = found.kraft_version == 0
    state = QuorumStateData(
        leader_epoch=epoch, current_voters=[StateVoter(voter_id=voter.id)] if is_static else []
    )
    QuorumStateFile(disk, partition).write(state, version=0 if is_static else 1)
    forget_last_start(disk, partition)  # the log may come from another directory
    log = open_log(disk, partition).log
    try:
        voters = None if is_static else voters_record([voter], listener)
        log.append(_batch(voter.id, voters, log.log_end, epoch, now_ms))
        log.sync()
    finally:
        log.close()
    return OffsetAndEpoch(log.log_end, epoch)


def _batch(node_id: int, voters: VotersRecord | None, base_offset: int, epoch: int, now_ms: int) -> bytes:
    """The batch with which a leader of that epoch would begin it, followed by the voters."""
    itself = [LeaderVoter(voter_id=node_id)]
    leader = LeaderChangeMessage(leader_id=node_id, voters=itself, granting_voters=itself)
    # Kafka reads both in version 0 only.
    records: list[tuple[ControlRecordType, Message, int]] = [(ControlRecordType.LEADER_CHANGE, leader, 0)]
    if voters is not None:
        records.append((ControlRecordType.KRAFT_VOTERS, voters, 0))
    return build_control_batch(records, base_offset, epoch, now_ms)


def _voters_of(disk: Disk, opened: OpenedLog) -> tuple[int, VotersRecord | None, LeaderChangeMessage | None]:
    """kraft.version and the voters as of the end of the log, and its last election."""
    kraft_version, voters, elected = 0, None, None
    latest = opened.log.latest_snapshot
    if latest is not None:
        reader = CheckpointReader(disk, checkpoint_path(opened.log.directory, latest))
        kraft_version, voters = reader.header.kraft_version, reader.header.voters
        reader.close()
    for batch in _batches(opened.control_batches):
        for record in control_records(batch):
            if isinstance(record.message, KRaftVersionRecord):
                kraft_version = record.message.kraft_version
            elif isinstance(record.message, VotersRecord):
                voters = record.message
            elif isinstance(record.message, LeaderChangeMessage):
                elected = record.message
    return kraft_version, voters, elected


def _batches(views: Sequence[bytes]) -> Iterable[Batch]:
    for view in views:
        yield from iter_batches(view)


def _first(found: Survey) -> int:
    """The first offset that the epochs cover."""
    return found.epochs[0][1] if found.epochs else found.end.offset


def _copy(disk: Disk, source: str, target: str) -> None:
    """Copy a file; its bytes are durable, its name not yet. Raises DiskFull, StorageFailure."""
    part = f"{target}.part"
    disk.remove(part)
    old, new = disk.open(source), disk.open(part, create=True)
    try:
        size = old.size_bytes()
        for position in range(0, size, _COPY_BYTES):
            new.write(position, old.read(position, min(_COPY_BYTES, size - position)))
        new.sync()
    finally:
        old.close()
        new.close()
    disk.rename(part, target)
