"""All opened files of a node: the start of the consensus core, and the work of the runner."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kraftd.config import DaemonConfig
from kraftd.log.disk import Disk
from kraftd.log.settings import LogSettings
from kraftd.messages.quorum_state_data import QuorumStateData
from kraftd.metadata_dir.directory import MetadataDirectory, open_directory
from kraftd.metadata_dir.files.bootstrap import read_bootstrap
from kraftd.metadata_dir.files.checkpoint import CheckpointReader, checkpoint_path, part_name
from kraftd.metadata_dir.files.high_watermark import HighWatermarkFile, Mark, Refusal
from kraftd.metadata_dir.files.last_start import LastStart, Peer, Server, note_start
from kraftd.metadata_dir.files.quorum_state import QuorumStateFile, check_static_voters
from kraftd.metadata_dir.metadata_log import MetadataLog
from kraftd.metadata_dir.recovery import OpenedLog, open_log
from kraftd.raft.config import TAIL_BYTES, DurableState, PartialSnapshot
from kraftd.raft.log_view import LogView
from kraftd.raft.quorum.history import ControlRecordHistory
from kraftd.raft.quorum.voters import NO_VOTERS, VoterSet
from kraftd.raft.replica import CommittedIsLost
from kraftd.types import OffsetAndEpoch, ReplicaKey, uuid_text
from kraftd.wire.message import Message
from kraftd.wire.record_frame import VersionedRecord


class Storage:
    """A locked metadata directory and its log. The runner keeps `snapshot_reads` up to date.

    `bootstrap` are the records for an empty log, None without a file. `notes` are those of the recovery.
    `durable_epoch` is the leader epoch on disk; the core's is ahead of it while a full disk delays the write.
    """

    def __init__(
        self,
        disk: Disk,
        directory: MetadataDirectory,
        opened: OpenedLog,
        quorum_state: QuorumStateFile,
        bootstrap: list[VersionedRecord] | None,
    ) -> None:
        self.directory = directory
        self.log: MetadataLog = opened.log
        self.bootstrap = bootstrap
        self.notes = opened.report.notes
        self.disk = disk
        self.snapshot_reads: dict[OffsetAndEpoch, int] = {}  # time of the last download of each, in ms
        self.snapshot_reader: CheckpointReader | None = None  # of the one that is loaded at the start
        self.durable_epoch = 0
        self.high_watermark = HighWatermarkFile(disk, directory.partition_path, opened.mark)
        self._quorum_state = quorum_state
        self._control_batches = opened.control_batches
        self._download = opened.download

    def durable_state(self, static_voters: VoterSet = NO_VOTERS) -> DurableState:
        """The state on disk for the core, with the control records of the newest snapshot and, from recovery,
        of the log after it. Valid once, before the first append.
        """
        log = self.log
        sizes = {}
        history = ControlRecordHistory(static_voters)
        for snapshot_id in log.snapshots:
            reader = self._reader(snapshot_id)
            sizes[snapshot_id] = reader.size_bytes
            if snapshot_id == log.latest_snapshot:
                for batch in reader.leading_control_batches():
                    history.read_batch(batch, at_offset=snapshot_id.offset - 1)
            reader.close()
        for data in self._control_batches:
            history.read(data)
        view = LogView(log.log_start, log.log_end, log.epochs.entries, sizes)
        own = ReplicaKey(self.directory.node_id, self.directory.directory_id)
        election = self._quorum_state.read_beside(OffsetAndEpoch(log.log_end, log.last_epoch), own)
        if election is not None:
            self.durable_epoch = max(0, election.leader_epoch)
        is_empty = log.log_end == 0 and (log.latest_snapshot is None or log.latest_snapshot.offset == 0)
        is_new = is_empty if election is None else self._quorum_state.marks_new_voter()
        committed = self.high_watermark.mark.high_watermark
        return DurableState(election, view, history, self._partial_download(), committed, is_new)

    def _partial_download(self) -> PartialSnapshot | None:
        """The download that the last process did not finish."""
        if self._download is None:
            return None
        snapshot_id, position = self._download
        file = self.disk.open(f"{self.log.directory}/{part_name(snapshot_id, download=True)}")
        try:
            tail = file.read(max(0, position - TAIL_BYTES), min(position, TAIL_BYTES))
        finally:
            file.close()
        return PartialSnapshot(snapshot_id, position, tail)

    def snapshot(self) -> tuple[OffsetAndEpoch, Iterator[list[Message]]] | None:
        """The newest snapshot that replaces a part of the log, and its records' values, one list
        per batch.
        """
        latest = self.log.latest_snapshot
        if latest is None or latest.offset == 0:
            return None
        self.snapshot_reader = self._reader(latest)
        return latest, self.snapshot_reader.runs()

    def read_snapshot(self, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int) -> bytes:
        """A piece of a snapshot's file. Raises FileNotFoundError, StorageError."""
        file = self.disk.open(checkpoint_path(self.directory.partition_path, snapshot_id))
        try:
            return file.read(position, max_bytes)
        finally:
            file.close()

    def persist_election(self, state: QuorumStateData, version: int, *, is_new: bool = False) -> None:
        """Durable on return. Raises DiskFull, StorageFailure."""
        self._quorum_state.write(state, version, is_new=is_new)
        self.durable_epoch = state.leader_epoch

    def new_mark(self, high_watermark: int) -> tuple[int, int] | None:
        """The offset and epoch to write as the mark: up to the high watermark, as far as it is synced here.
        None if the mark is there already.
        """
        log = self.log
        offset = min(high_watermark, log.synced_end)
        if offset <= self.high_watermark.mark.high_watermark:
            return None
        epoch = log.epochs.epoch_of(offset - 1)
        return offset, log.start_epoch if epoch is None else epoch

    def keep_refusal(self, lost: CommittedIsLost) -> None:
        """Make durable that a leader's demand was refused, and all that this replica knows as committed.
        Blocks. Raises StorageError.
        """
        mark = self.high_watermark.mark
        at = self.new_mark(lost.committed) or (mark.high_watermark, mark.epoch)
        refused = Refusal(
            lost.leader_id, lost.leader_epoch, lost.offset, self.log.log_end, lost.snapshot_offset
        )
        self.high_watermark.write(Mark(*at, refused))

    def close(self) -> None:
        """Sync and close the log, release the lock."""
        try:
            self.log.close()
        finally:
            self.directory.close()

    def _reader(self, snapshot_id: OffsetAndEpoch) -> CheckpointReader:
        return CheckpointReader(self.disk, checkpoint_path(self.directory.partition_path, snapshot_id))

    def __repr__(self) -> str:
        return f"<Storage {self.directory!r}, {self.log!r}>"


def lock_directory(
    disk: Disk, config: DaemonConfig, now_ms: int, new_directory_id: Callable[[], bytes]
) -> MetadataDirectory:
    """The metadata directory of a configuration, locked and checked. Raises StorageError."""
    return open_directory(
        disk,
        config.metadata_log_dir,
        config.node_id,
        other_directories=config.data_dirs,
        new_directory_id=new_directory_id,
        now_ms=now_ms,
    )


def open_storage(
    disk: Disk, config: DaemonConfig, now_ms: int, new_directory_id: Callable[[], bytes]
) -> Storage:
    """Lock, check and recover the directories of a configuration. Raises StorageError with what to do."""
    directory = lock_directory(disk, config, now_ms, new_directory_id)
    try:
        bootstrap = read_bootstrap(disk, config.metadata_log_dir)
        settings = LogSettings(
            segment_bytes=config.metadata_log_segment_bytes, segment_ms=config.metadata_log_segment_ms
        )
        opened = open_log(disk, directory.partition_path, settings)
        quorum_state = QuorumStateFile(disk, directory.partition_path)
        check_static_voters(quorum_state.path, quorum_state.read(), config.node_id, config.quorum_voters)
        note_start(disk, directory.partition_path, _start_of(directory, config))
    except BaseException:
        directory.close()
        raise
    return Storage(disk, directory, opened, quorum_state, bootstrap)


def _start_of(directory: MetadataDirectory, config: DaemonConfig) -> LastStart:
    """What this start leaves for later ones."""
    return LastStart(
        directory.cluster_id,
        directory.node_id,
        uuid_text(directory.directory_id),
        tuple(Peer(node_id, *at) for node_id, at in config.quorum_voters.items()),
        tuple(Server(*at) for at in config.quorum_bootstrap_servers),
    )
