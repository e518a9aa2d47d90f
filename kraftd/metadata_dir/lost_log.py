"""Detects that a directory without a segment has lost its log, from its other files.

A log's first segment is made before those files, so only a manual deletion or a damaged file system leaves
them without it. One crash does too: during a full truncation, between the old log and the new. Then a
checkpoint is ahead of all records of the old log.
"""

from __future__ import annotations

from kraftd.log.disk import Disk
from kraftd.log.epochs import FILE_NAME as EPOCHS_FILE_NAME
from kraftd.log.epochs import decode_epochs
from kraftd.log.errors import DirectoryProblem
from kraftd.log.segment import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    SegmentIndex,
    offset_of_name,
    segment_name,
)
from kraftd.metadata_dir.files.checkpoint import by_epoch, checkpoint_name
from kraftd.metadata_dir.files.found_files import FoundFiles
from kraftd.metadata_dir.files.high_watermark import FILE_NAME as HIGH_WATERMARK
from kraftd.metadata_dir.files.quorum_state import FILE_NAME as QUORUM_STATE_FILE_NAME
from kraftd.metadata_dir.files.quorum_state import QuorumStateFile

_LOGS = (LOG_SUFFIX, f"{LOG_SUFFIX}.swap")
_ANY_SIZE_BYTES = 1 << 62


def check_nothing_is_lost(disk: Disk, directory: str, found: FoundFiles) -> str | None:
    """A sentence for the operator if only a checkpoint is left; None if all is in order.

    Raises DirectoryProblem, without a change, if a lost log held records.
    """
    if any(offset_of_name(name) is not None and name.endswith(_LOGS) for name in found.names):
        return None
    newest = found.newest
    why = _what_is_beyond(disk, directory, found)
    if why is not None:
        than = "" if newest is None else f" beyond {checkpoint_name(newest)}"
        raise DirectoryProblem(
            f"{directory} has no log, but had one{than}: {why}. To begin anew might lose what this node "
            "has acknowledged. Put the log files back; or, with other voters up, move the directory aside, "
            "format it anew and let this node catch up from the leader"
        )
    if newest is None:
        return None
    return (
        f"{directory} has no log: it begins anew at {checkpoint_name(newest)}. That is in order after a "
        "crash while a leader's snapshot replaced the log; if its files were deleted, newer records are gone"
    )


def _what_is_beyond(disk: Disk, directory: str, found: FoundFiles) -> str | None:
    """The file that proves records which no checkpoint holds, and its proof; None if there is none."""
    names, newest, mark = found.names, found.newest, found.mark.high_watermark
    covered = (0, 0) if newest is None else by_epoch(newest)
    if EPOCHS_FILE_NAME in names:
        epochs = decode_epochs(disk.read_bytes(f"{directory}/{EPOCHS_FILE_NAME}"))
        if epochs and (newest is None or epochs[-1] > covered):
            epoch, offset = epochs[-1]
            return f"{EPOCHS_FILE_NAME} knows of epoch {epoch} from offset {offset} on"
    if mark > covered[1]:
        return f"{HIGH_WATERMARK} knows that the records below {mark} were committed"
    for name in names:
        base = offset_of_name(name)
        if base is None or not name.endswith((OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)):
            continue
        last = _last_offset(disk, directory, base, names)
        if last is not None and last >= covered[1]:
            return f"{name} knows of offset {last}"
    if newest is None and QUORUM_STATE_FILE_NAME in names:
        state = QuorumStateFile(disk, directory).read()
        if state is not None and state.leader_epoch > 0:
            return f"{QUORUM_STATE_FILE_NAME} knows of epoch {state.leader_epoch}"
    return None


def _last_offset(disk: Disk, directory: str, base: int, names: list[str]) -> int | None:
    """The last offset in the indexes of a segment; None if they have none or are malformed."""
    files = [segment_name(base, suffix) for suffix in (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)]
    contents = [disk.read_bytes(f"{directory}/{name}") if name in names else b"" for name in files]
    index = SegmentIndex.load(base, contents[0], contents[1], _ANY_SIZE_BYTES)
    return None if index is None else index.last_known_offset
