"""The committed log behind the inputs of a command or a program, and what the user should know about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kraftd.metadata_dir.in_use import lock_holder
from kraftd.spark.errors import InputError
from kraftd.spark.layout import Replica, find_replicas, refuse_ordinary_records
from kraftd.spark.replicas import CommittedLog, committed_log
from kraftd.spark.small import SMALL_BYTES

Note = Callable[[str], None]
"""Takes a text for the user."""


def find_log(
    inputs: Sequence[str], mode: str, high_watermark: int | None, note: Note
) -> tuple[list[Replica], CommittedLog]:
    """The replicas and their committed log. Raises InputError."""
    replicas = find_replicas(inputs)
    for replica in replicas:
        refuse_ordinary_records(replica)
    log = committed_log(replicas, permissive=mode == "permissive", high_watermark=high_watermark)
    if log.end_offset <= log.start_offset and not log.log.checkpoint_end_offset:
        raise InputError(f"{log.replica.path}: the log holds no committed record")
    for text in notes_of(replicas, log):
        note(text)
    return replicas, log


def notes_of(replicas: Sequence[Replica], log: CommittedLog) -> list[str]:
    """Notes for the user about the input, which are no faults of the records read."""
    notes = list(log.notes)
    for replica in replicas:
        process = lock_holder(replica.path)
        if process is not None:
            end = f"what is written from offset {log.end_offset} on is not read"
            notes.append(f"{replica.path}: in use by process {process}; {end}")
    return notes


def is_small_log(log: CommittedLog) -> bool:
    """Return whether one task reads a log and its checkpoints fastest."""
    segments = sum(split.end - split.start for split in log.log.splits)
    return segments + sum(each.size_bytes for each in log.replica.checkpoints) <= SMALL_BYTES
