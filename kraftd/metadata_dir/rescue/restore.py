"""Makes a new node's directories from an old cluster's state: this controller is then the whole quorum.

`meta.properties` is written last, as in formatting: a start without it is refused, so no node serves an
interrupted restore.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kraftd.log.disk import Disk
from kraftd.log.errors import DirectoryProblem
from kraftd.messages.quorum_state_data import QuorumStateData, Voter
from kraftd.metadata_dir.directory import PARTITION_DIRECTORY, fresh_directory_id
from kraftd.metadata_dir.files.bootstrap import write_bootstrap
from kraftd.metadata_dir.files.checkpoint import CheckpointWriter, verify_checkpoint
from kraftd.metadata_dir.files.meta_properties import MetaProperties, write_meta_properties
from kraftd.metadata_dir.files.quorum_state import QuorumStateFile
from kraftd.metadata_dir.formatting.voters import InitialVoter, voters_record
from kraftd.metadata_dir.recovery import open_log
from kraftd.metadata_dir.rescue.backup import is_occupied
from kraftd.named_tuple import NamedTuple
from kraftd.types import OffsetAndEpoch, Uuid
from kraftd.wire.record_frame import VersionedRecord


class RestorePlan(NamedTuple):
    """What to restore, and for which node.

    snapshot_id and timestamp_ms are of the last restored record. epoch is the first of the new quorum, above
    all that the old one knew. feature_records go into bootstrap.checkpoint. A static quorum's voters are not
    in the log.
    """

    node_id: int
    cluster_id: str
    directories: tuple[str, ...]
    metadata_directory: str
    host: str
    port: int
    controller_listener: str
    is_static: bool
    snapshot_id: OffsetAndEpoch
    timestamp_ms: int
    epoch: int
    feature_records: tuple[VersionedRecord, ...]


def check_empty(disk: Disk, directories: Iterable[str]) -> None:
    """Raises DirectoryProblem for the first directory that is not empty."""
    for directory in directories:
        if is_occupied(disk, directory):
            raise DirectoryProblem(
                f"{directory} is not empty. Name new directories in log.dirs, or move what is there away; "
                "what an interrupted restore left can be deleted"
            )


def restore_directories(
    disk: Disk,
    plan: RestorePlan,
    runs: Iterable[Sequence[bytes]],
    *,
    new_uuid: Callable[[], Uuid],
    now_ms: int,
) -> Uuid:
    """Write the directories; runs are the framed records of the state. Returns the metadata directory's id.

    Raises DirectoryProblem, and changes nothing, if one is not empty; DiskFull, StorageFailure.
    """
    directories = sorted({*plan.directories, plan.metadata_directory})
    check_empty(disk, directories)
    ids = {directory: fresh_directory_id(new_uuid) for directory in directories}
    own = ids[plan.metadata_directory]
    for directory in directories:
        disk.make_directory(directory)
        write_bootstrap(disk, directory, plan.feature_records, now_ms)
    _write_partition(disk, plan, InitialVoter(plan.node_id, plan.host, plan.port, own), runs, now_ms)
    others = [directory for directory in directories if directory != plan.metadata_directory]
    for directory in (*others, plan.metadata_directory):
        properties = MetaProperties(1, plan.cluster_id, plan.node_id, ids[directory])
        write_meta_properties(disk, directory, properties, now_ms)
    return own


def _write_partition(
    disk: Disk, plan: RestorePlan, voter: InitialVoter, runs: Iterable[Sequence[bytes]], now_ms: int
) -> None:
    """Write the state as a snapshot, an empty log after it, and the epoch."""
    partition = f"{plan.metadata_directory}/{PARTITION_DIRECTORY}"
    writer = CheckpointWriter(
        disk,
        partition,
        plan.snapshot_id,
        last_contained_log_timestamp_ms=plan.timestamp_ms,
        now_ms=now_ms,
        kraft_version=0 if plan.is_static else 1,
        voters=None if plan.is_static else voters_record([voter], plan.controller_listener),
    )
    try:
        for run in runs:
            writer.append(run)
        writer.freeze(verify_checkpoint)
    except Exception:
        writer.abandon()
        raise
    open_log(disk, partition).log.close()
    state = QuorumStateData(
        leader_epoch=plan.epoch, current_voters=[Voter(voter_id=plan.node_id)] if plan.is_static else []
    )
    QuorumStateFile(disk, partition).write(state, version=0 if plan.is_static else 1)
