"""A replica's directory on a simulated disk: formatted, opened, and changed by the core's effects.

The storage code is the daemon's; only the disk below differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kraftd.host.snapshots.snapshot_download import SnapshotDownload
from kraftd.host.storage import Storage
from kraftd.log.memory_disk import MemoryDisk
from kraftd.metadata.features import bootstrap_records, format_levels
from kraftd.metadata_dir.directory import open_directory
from kraftd.metadata_dir.files.bootstrap import read_bootstrap
from kraftd.metadata_dir.files.checkpoint import CheckpointReader, checkpoint_path
from kraftd.metadata_dir.files.quorum_state import QuorumStateFile
from kraftd.metadata_dir.formatting.format import FormatPlan, format_directories
from kraftd.metadata_dir.formatting.voters import InitialVoter
from kraftd.metadata_dir.metadata_log import LogSettings, MetadataLog
from kraftd.metadata_dir.recovery import open_log
from kraftd.simulation.randomness import SeededRandomness
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
    rng: SeededRandomness,
    *,
    dynamic: bool,
    metadata_version: int,
    now_ms: int,
) -> bytes:
    """Format a replica's directory; returns its directory id."""
    levels = format_levels({}, metadata_version, dynamic_quorum=dynamic)
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
    return format_directories(disk, plan, new_uuid=rng.uuid, now_ms=now_ms).formatted[0].directory_id


class Files:
    """One opened directory: the daemon's storage and downloads on a disk that obeys the nemesis.

    Raises StorageError as storage does, SimulatedCrash if the disk was set to crash.
    """

    def __init__(
        self, disk: MemoryDisk, node_id: int, segment_bytes: int, rng: SeededRandomness, now_ms: int
    ) -> None:
        self.disk = disk
        self.directory = open_directory(disk, PATH, node_id, new_directory_id=rng.uuid, now_ms=now_ms)
        settings = LogSettings(
            segment_bytes=segment_bytes, index_interval_bytes=512, tail_bytes=4096, replay_bytes=8192
        )
        opened = open_log(disk, self.directory.partition_path, settings)
        self.log: MetadataLog = opened.log
        self.quorum_state = QuorumStateFile(disk, self.directory.partition_path)
        bootstrap = read_bootstrap(disk, PATH)
        self.storage = Storage(disk, self.directory, opened, self.quorum_state, bootstrap)
        self.download = SnapshotDownload(disk, self.log)

    def __repr__(self) -> str:
        return f"<Files {self.log!r}>"

    def batches(self, start: int, end: int | None = None) -> Iterator[Batch]:
        """The batches of the log from an offset on, read as a fetch reads them."""
        end = self.log.log_end if end is None else end
        while start < min(end, self.log.log_end):
            for batch in iter_batches(self.log.read(start, _SCAN_BYTES, end), verify=False):
                yield batch
                start = batch.header.next_offset

    def snapshot_values(self, snapshot_id: OffsetAndEpoch) -> list[bytes]:
        """The records of a snapshot, checked whole."""
        return [bytes(value) for values in self.reader(snapshot_id).values() for value in values]

    def reader(self, snapshot_id: OffsetAndEpoch) -> CheckpointReader:
        return CheckpointReader(self.disk, checkpoint_path(self.directory.partition_path, snapshot_id))
