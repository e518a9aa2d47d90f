"""A replica's directory on a simulated disk: formatted, opened, and changed as the core's effects ask.

The same storage code as the daemon's; only the disk below it is another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kraftd.messages.quorum_state_data import QuorumStateData
from kraftd.metadata.features import bootstrap_records, format_levels
from kraftd.raft.config import DurableState
from kraftd.raft.history import ControlRecordHistory
from kraftd.raft.log_view import LogView
from kraftd.raft.voters import VoterSet
from kraftd.simulation.dice import SeededDice
from kraftd.storage.checkpoint import CheckpointReader, CheckpointWriter, PartFile, checkpoint_path
from kraftd.storage.directory import open_directory
from kraftd.storage.format import FormatPlan, format_directories
from kraftd.storage.log import LogSettings, MetadataLog
from kraftd.storage.memory_disk import MemoryDisk
from kraftd.storage.quorum_state import QuorumStateFile
from kraftd.storage.recovery import open_log
from kraftd.storage.voters import InitialVoter
from kraftd.types import OffsetAndEpoch
from kraftd.wire.batch import Batch, iter_batches

PATH = "/kraftd"
CLUSTER_ID = "simulated-cluster-0000"
LISTENER = "CONTROLLER"
_SCAN_BYTES = 1 << 20


def format_disk(
    disk: MemoryDisk,
    node_id: int,
    initial_voters: Iterable[InitialVoter] | None,
    dice: SeededDice,
    *,
    dynamic: bool,
    now_ms: int,
) -> bytes:
    """Format a replica's directory; returns its directory id."""
    levels = format_levels({}, dynamic_quorum=dynamic)
    plan = FormatPlan(
        node_id,
        CLUSTER_ID,
        (PATH,),
        PATH,
        LISTENER,
        tuple(bootstrap_records(levels)),
        levels["kraft.version"],
        None if initial_voters is None else tuple(initial_voters),
    )
    return format_directories(disk, plan, new_uuid=dice.uuid, now_ms=now_ms)[0].directory_id


class Files:
    """One opened directory. Raises StorageError as storage does, SimulatedCrash where the disk is told to."""

    def __init__(
        self, disk: MemoryDisk, node_id: int, segment_bytes: int, dice: SeededDice, now_ms: int
    ) -> None:
        self.disk = disk
        self.directory = open_directory(disk, PATH, node_id, new_directory_id=dice.uuid, now_ms=now_ms)
        settings = LogSettings(segment_bytes=segment_bytes, index_interval_bytes=512, tail_bytes=4096)
        self.log: MetadataLog
        self.log, self.report = open_log(disk, self.directory.partition_path, settings)
        self.quorum_state = QuorumStateFile(disk, self.directory.partition_path)
        self._part: PartFile | None = None

    def __repr__(self) -> str:
        return f"<Files {self.log!r}>"

    def durable_state(self, static_voters: VoterSet) -> DurableState:
        """What the core finds: election state, bounds, epochs and snapshots of the log, control records."""
        log = self.log
        sizes = {}
        history = ControlRecordHistory(static_voters)
        for snapshot_id in log.snapshots:
            reader = self._reader(snapshot_id)
            sizes[snapshot_id] = reader.size_bytes
            if snapshot_id == log.latest_snapshot:
                for batch in reader.control_batches():
                    history.read_batch(batch, at_offset=snapshot_id.offset - 1)
        latest = log.latest_snapshot
        for batch in self.batches(log.log_start):
            if latest is None or batch.header.base_offset >= latest.offset:
                history.read_batch(batch)
        view = LogView(log.log_start, log.log_end, log.epochs.entries, sizes)
        return DurableState(self.quorum_state.read(), view, history)

    def batches(self, start: int, end: int | None = None) -> Iterator[Batch]:
        """The batches of the log from an offset on, read as a fetch reads them."""
        end = self.log.log_end if end is None else end
        while start < end:
            for batch in iter_batches(self.log.read(start, _SCAN_BYTES, end), verify=False):
                yield batch
                start = batch.header.next_offset

    # --- the core's effects ---

    def persist_election(self, state: QuorumStateData, version: int) -> None:
        self.quorum_state.write(state, version)

    def begin_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        self._part = PartFile(self.disk, self.directory.partition_path, snapshot_id)

    def write_snapshot(self, snapshot_id: OffsetAndEpoch, position: int, data: bytes | memoryview) -> None:
        part = self._part
        assert part is not None and part.snapshot_id == snapshot_id and part.size_bytes == position
        part.append(data)

    def is_downloading(self, snapshot_id: OffsetAndEpoch) -> bool:
        return self._part is not None and self._part.snapshot_id == snapshot_id

    def finish_snapshot(self, snapshot_id: OffsetAndEpoch) -> tuple[int, tuple[bytes, ...]]:
        """Name the download; its size, and its control batches."""
        part = self._part
        assert part is not None and part.snapshot_id == snapshot_id
        part.freeze()
        self._part = None
        self.log.add_snapshot(snapshot_id)
        reader = self._reader(snapshot_id)
        return part.size_bytes, tuple(bytes(batch.view) for batch in reader.control_batches())

    def abandon_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        if self._part is not None and self._part.snapshot_id == snapshot_id:
            self._part.abandon()
            self._part = None

    def read_snapshot(self, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int) -> bytes:
        path = checkpoint_path(self.directory.partition_path, snapshot_id)
        return self.disk.open(path).read(position, max_bytes)

    def snapshot_values(self, snapshot_id: OffsetAndEpoch) -> list[bytes]:
        """The records of a snapshot, checked whole."""
        return [bytes(value) for values in self._reader(snapshot_id).values() for value in values]

    def take_snapshot(
        self,
        snapshot_id: OffsetAndEpoch,
        values: list[bytes],
        kraft_version: int,
        voters: VoterSet,
        now_ms: int,
    ) -> int:
        """Write a checkpoint of this replica's own state; returns its size."""
        writer = CheckpointWriter(
            self.disk,
            self.directory.partition_path,
            snapshot_id,
            last_contained_log_timestamp_ms=now_ms,
            now_ms=now_ms,
            kraft_version=kraft_version,
            voters=voters.to_record() if kraft_version and len(voters) else None,
        )
        writer.append(values)
        size_bytes = writer.freeze()
        self.log.add_snapshot(snapshot_id)
        return size_bytes

    def _reader(self, snapshot_id: OffsetAndEpoch) -> CheckpointReader:
        return CheckpointReader(self.disk, checkpoint_path(self.directory.partition_path, snapshot_id))
