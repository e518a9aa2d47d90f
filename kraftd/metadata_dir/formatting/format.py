"""Formatting: what `kafka-storage format` writes into the directories of a new node.

Each directory gets `bootstrap.checkpoint`. The metadata directory of a dynamic quorum with known voters then
gets the first checkpoint with the voter set. `meta.properties` comes last: with it the directory is
formatted.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kraftd.log.disk import Disk
from kraftd.log.errors import DirectoryProblem, StorageError
from kraftd.metadata_dir.directory import PARTITION_DIRECTORY, fresh_directory_id, holds_a_log
from kraftd.metadata_dir.files.bootstrap import write_bootstrap
from kraftd.metadata_dir.files.checkpoint import BOOTSTRAP_ID, CheckpointWriter, checkpoint_path
from kraftd.metadata_dir.files.last_start import forget_last_start
from kraftd.metadata_dir.files.meta_properties import FILE_NAME as META_PROPERTIES
from kraftd.metadata_dir.files.meta_properties import (
    MetaProperties,
    check_meta_properties,
    read_meta_properties,
    write_meta_properties,
)
from kraftd.metadata_dir.files.quorum_state import QuorumStateFile
from kraftd.metadata_dir.formatting.voters import InitialVoter, voters_record
from kraftd.named_tuple import NamedTuple
from kraftd.types import Uuid
from kraftd.wire.record_frame import VersionedRecord


class DirectoryKind(enum.Enum):
    """The kind as which a directory is formatted; the words are Kafka's."""

    DATA = "data directory"
    STATIC_METADATA = "metadata directory"
    DYNAMIC_METADATA = "dynamic metadata directory"
    DYNAMIC_METADATA_VOTER = "dynamic metadata voter directory"


@dataclass(frozen=True)
class FormatPlan:
    """What to format. records are those of bootstrap.checkpoint. initial_voters is None if the voters are
    static, or unknown to this node (--no-initial-controllers).
    """

    node_id: int
    cluster_id: str
    directories: tuple[str, ...]
    metadata_directory: str
    controller_listener: str
    records: tuple[VersionedRecord, ...]
    kraft_version: int
    initial_voters: tuple[InitialVoter, ...] | None = None
    ignore_formatted: bool = False

    def kind(self, directory: str) -> DirectoryKind:
        if directory != self.metadata_directory:
            return DirectoryKind.DATA
        if self.initial_voters is None:
            return DirectoryKind.STATIC_METADATA
        if self.own_voter is None:
            return DirectoryKind.DYNAMIC_METADATA
        return DirectoryKind.DYNAMIC_METADATA_VOTER

    @property
    def own_voter(self) -> InitialVoter | None:
        return next((voter for voter in self.initial_voters or () if voter.id == self.node_id), None)


class FormattedDirectory(NamedTuple):
    """A directory that was formatted."""

    path: str
    kind: DirectoryKind
    directory_id: Uuid


class Formatting(NamedTuple):
    """The directories that were formatted, none if all were already, and those that cannot be read."""

    formatted: list[FormattedDirectory]
    unreadable: Mapping[str, StorageError]


def format_directories(
    disk: Disk, plan: FormatPlan, *, new_uuid: Callable[[], Uuid], now_ms: int
) -> Formatting:
    """Format the unformatted directories. Those that cannot be read are left out, unless no other is there.

    Raises DirectoryProblem, and changes nothing, if one is formatted and ignore_formatted is not set. The
    same holds if one belongs to another node or cluster, or has a log but no meta.properties.
    """
    directories: list[str] = []
    formatted: dict[str, MetaProperties] = {}
    unreadable: dict[str, StorageError] = {}
    for directory in sorted({*plan.directories, plan.metadata_directory}):
        try:
            properties = read_meta_properties(disk, directory)
        except StorageError as error:
            unreadable[directory] = error
            continue
        directories.append(directory)
        if properties is not None:
            formatted[directory] = properties
    if not directories:
        raise next(iter(unreadable.values()))
    check_meta_properties(formatted, cluster_id=plan.cluster_id, node_id=plan.node_id)
    if formatted and not plan.ignore_formatted:
        raise DirectoryProblem(
            f"{next(iter(formatted))} is already formatted. Use --ignore-formatted to leave it as it is "
            f"and format "
            "the others"
        )
    empty = [directory for directory in directories if directory not in formatted]
    for directory in empty:
        if holds_a_log(disk, directory):
            raise DirectoryProblem(
                f"{directory} holds a metadata log but no meta.properties. Restore that file, or move the "
                f"directory "
                "aside: formatting would put an old log under a new identity"
            )
    done = [_format_one(disk, plan, directory, new_uuid, now_ms) for directory in empty]
    return Formatting(done, unreadable)


def _format_one(
    disk: Disk, plan: FormatPlan, directory: str, new_uuid: Callable[[], Uuid], now_ms: int
) -> FormattedDirectory:
    kind = plan.kind(directory)
    voter = plan.own_voter
    if kind is DirectoryKind.DYNAMIC_METADATA_VOTER and voter is not None:
        directory_id = voter.directory_id
    else:
        directory_id = fresh_directory_id(new_uuid)
    disk.make_directory(directory)
    forget_last_start(disk, f"{directory}/{PARTITION_DIRECTORY}")
    write_bootstrap(disk, directory, plan.records, now_ms)
    if kind in (DirectoryKind.DYNAMIC_METADATA, DirectoryKind.DYNAMIC_METADATA_VOTER):
        write_first_checkpoint(disk, directory, plan, now_ms)
    write_meta_properties(
        disk, directory, MetaProperties(1, plan.cluster_id, plan.node_id, directory_id), now_ms
    )
    return FormattedDirectory(directory, kind, directory_id)


def unformat_new_voter(disk: Disk, directory: str) -> str:
    """Undo the formatting of a voter that has no record and has voted for none; return its cluster id.

    `meta.properties` goes first: after a crash the directory is unformatted. Raises DirectoryProblem, and
    changes nothing, if there is more to lose.
    """
    properties = read_meta_properties(disk, directory)
    partition = f"{directory}/{PARTITION_DIRECTORY}"
    state = QuorumStateFile(disk, partition)
    is_new = state.read() is None or state.marks_new_voter()
    if properties is None or not properties.cluster_id or not is_new or holds_a_log(disk, directory):
        raise DirectoryProblem(f"{directory} is no new directory of a voter: it stays as it is")
    for path in (f"{directory}/{META_PROPERTIES}", state.path, checkpoint_path(partition, BOOTSTRAP_ID)):
        if disk.exists(path):
            disk.remove(path)
            disk.sync_directory(path.rsplit("/", 1)[0])
    return properties.cluster_id


def write_first_checkpoint(disk: Disk, directory: str, plan: FormatPlan, now_ms: int) -> None:
    """Write `0-0.checkpoint` with kraft.version and the initial voters."""
    voters: Sequence[InitialVoter] = plan.initial_voters or ()
    CheckpointWriter(
        disk,
        f"{directory}/{PARTITION_DIRECTORY}",
        BOOTSTRAP_ID,
        last_contained_log_timestamp_ms=now_ms,
        now_ms=now_ms,
        kraft_version=plan.kraft_version,
        voters=voters_record(voters, plan.controller_listener),
    ).freeze()
