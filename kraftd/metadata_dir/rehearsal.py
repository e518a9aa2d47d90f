"""Rehearses a start on a data directory: the same checks, without changing a file."""

from __future__ import annotations

from collections.abc import Callable

from kraftd.log.disk import Disk
from kraftd.log.errors import CorruptStorage, DirectoryProblem, StorageError
from kraftd.log.overlay_disk import OverlayDisk
from kraftd.metadata_dir.directory import PARTITION_DIRECTORY, open_directory
from kraftd.metadata_dir.files.bootstrap import read_bootstrap
from kraftd.metadata_dir.files.file_kinds import check_file_kinds
from kraftd.metadata_dir.files.meta_properties import FILE_NAME as META_PROPERTIES
from kraftd.metadata_dir.files.meta_properties import read_meta_properties
from kraftd.metadata_dir.files.quorum_state import FILE_NAME as QUORUM_STATE
from kraftd.metadata_dir.files.quorum_state import QuorumStateFile
from kraftd.metadata_dir.recovery import open_log
from kraftd.named_tuple import NamedTuple
from kraftd.types import OffsetAndEpoch, ReplicaKey

_ANY_ID = bytes(15) + b"\x7f"


class Refusal(NamedTuple):
    """The reason why a start would be refused, with its file, and byte and offset if known."""

    path: str
    position: int
    offset: int | None
    reason: str


class Rehearsal(NamedTuple):
    """refusals prevent a start; notes are the repairs that a start would make and report."""

    refusals: list[Refusal]
    notes: list[str]


def is_data_directory(disk: Disk, path: str) -> bool:
    """Return whether a path is, or was, a node's data directory rather than a partition's."""
    return disk.exists(f"{path}/{PARTITION_DIRECTORY}/.") or disk.exists(f"{path}/{META_PROPERTIES}")


def rehearse(disk: Disk, path: str) -> Rehearsal:
    """Do what a start does with a data directory, on an overlay."""
    overlay = OverlayDisk(disk)
    refusals: list[Refusal] = []
    notes: list[str] = []
    partition = f"{path}/{PARTITION_DIRECTORY}"
    try:
        check_file_kinds(disk, path)
    except StorageError as error:  # nothing is opened then: opening a pipe would block
        return Rehearsal([Refusal(path, 0, None, str(error))], notes)
    log_ends: list[OffsetAndEpoch] = []

    def check_log() -> None:
        opened = open_log(overlay, partition)
        log_ends.append(OffsetAndEpoch(opened.log.log_end, opened.log.last_epoch))
        notes.extend(opened.report.notes)

    checks: tuple[tuple[str, Callable[[], object]], ...] = (
        (f"{path}/{META_PROPERTIES}", lambda: _check_identity(overlay, path)),
        (path, lambda: read_bootstrap(overlay, path)),
        (partition, check_log),
        (f"{partition}/{QUORUM_STATE}", lambda: _check_election(overlay, path, log_ends)),
    )
    try:
        for where, check in checks:
            try:
                check()
            except CorruptStorage as error:
                refusals.append(Refusal(error.path, error.position, error.offset, error.reason))
            except (StorageError, ValueError) as error:
                refusals.append(Refusal(where, 0, None, str(error)))
    finally:
        overlay.close()
    return Rehearsal(refusals, notes)


def _check_identity(disk: Disk, path: str) -> None:
    properties = read_meta_properties(disk, path)
    node_id = properties.node_id if properties is not None and properties.node_id is not None else 0
    open_directory(disk, path, node_id, new_directory_id=lambda: _ANY_ID, now_ms=0).close()


def _check_election(disk: Disk, path: str, log_ends: list[OffsetAndEpoch]) -> None:
    """Check quorum-state against the node and its log. `log_ends` is empty if the log could not be opened."""
    try:
        properties = read_meta_properties(disk, path)
    except DirectoryProblem:
        properties = None  # reported already
    own = ReplicaKey(-1) if properties is None else properties.replica_key
    QuorumStateFile(disk, f"{path}/{PARTITION_DIRECTORY}").read_beside(
        log_ends[0] if log_ends else OffsetAndEpoch(0, 0), own
    )
