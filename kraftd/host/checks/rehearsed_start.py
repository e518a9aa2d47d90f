"""Rehearses a whole start: what `metadata_dir.rehearsal` checks, then the core's start and the replay."""

from __future__ import annotations

from kraftd.fetch.purgatory import Purgatory
from kraftd.host.snapshots.checkpointing import load_all
from kraftd.host.storage import Storage
from kraftd.log.disk import Disk
from kraftd.log.errors import CorruptStorage, StorageError
from kraftd.log.overlay_disk import OverlayDisk
from kraftd.metadata.errors import ReplayError
from kraftd.metadata.image import Image
from kraftd.metadata_dir.directory import open_directory
from kraftd.metadata_dir.files.bootstrap import read_bootstrap
from kraftd.metadata_dir.files.meta_properties import read_meta_properties
from kraftd.metadata_dir.files.quorum_state import QuorumStateFile
from kraftd.metadata_dir.recovery import open_log
from kraftd.metadata_dir.rehearsal import Refusal, Rehearsal, rehearse
from kraftd.raft.config import RaftConfig
from kraftd.raft.core import RaftCore
from kraftd.raft.events import Started
from kraftd.raft.replica import ConsensusBroken
from kraftd.replica.replay import READ_BYTES, Replay
from kraftd.wire.batch import CorruptBatch
from kraftd.wire.errors import ProtocolError

_ANY_ID = bytes(15) + b"\x7f"
_BROKEN = (StorageError, ProtocolError, CorruptBatch, ReplayError, ConsensusBroken, ValueError, KeyError)


class _First:
    """No randomness: the rehearsed core only starts."""

    def below(self, n: int) -> int:
        return 0


def rehearse_start(disk: Disk, path: str) -> Rehearsal:
    """Do all that a start does with a data directory before it serves, on an overlay."""
    found = rehearse(disk, path)
    if found.refusals:
        return found
    overlay = OverlayDisk(disk)
    try:
        refusals = _start(overlay, path)
    finally:
        overlay.close()
    return Rehearsal(refusals, found.notes)


def _start(disk: Disk, path: str) -> list[Refusal]:
    properties = read_meta_properties(disk, path)
    node_id = properties.node_id if properties is not None and properties.node_id is not None else 0
    directory = open_directory(disk, path, node_id, new_directory_id=lambda: _ANY_ID, now_ms=0)
    try:
        partition = directory.partition_path
        opened = open_log(disk, partition)
        bootstrap = read_bootstrap(disk, path)
        storage = Storage(disk, directory, opened, QuorumStateFile(disk, partition), bootstrap)
        replay = None
        try:
            config = RaftConfig(node_id, directory.directory_id, directory.cluster_id, ())
            core = RaftCore(config, storage.durable_state(), _First(), Purgatory(), Purgatory())
            core.step(Started(), 0)
            replay = Replay(Image(), storage.snapshot())
            load_all(replay)
            while replay.more(storage.log.log_end) is not None:
                replay.begin(replay.next_offset, storage.log.read(replay.next_offset, READ_BYTES))
                load_all(replay)
        except CorruptStorage as error:
            return [Refusal(error.path, error.position, error.offset, error.reason)]
        except _BROKEN as error:
            offset = None if replay is None else replay.next_offset
            return [Refusal(partition, 0, offset, f"{type(error).__name__}: {error}")]
    finally:
        directory.close()
    return []
