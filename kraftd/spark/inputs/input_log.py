"""The committed log behind the inputs of a command or a program, and what the user should know about it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence

from pyspark.sql import SparkSession

from kraftd.log.segment import LOG_SUFFIX
from kraftd.metadata_dir.directory import PARTITION_DIRECTORY
from kraftd.metadata_dir.files.checkpoint import SUFFIX
from kraftd.metadata_dir.in_use import lock_holder
from kraftd.spark.errors import InputError
from kraftd.spark.inputs.hadoop import copy_inputs
from kraftd.spark.inputs.layout import Replica, find_replicas, refuse_ordinary_records
from kraftd.spark.inputs.replicas import CommittedLog, committed_log
from kraftd.spark.inputs.small_logs import SMALL_BYTES
from kraftd.spark.inputs.storage import absolute, is_local, join, kind_of, paths_of, split_name, use_copies

Note = Callable[[str], None]
"""Takes a text for the user."""


def find_log(
    inputs: Sequence[str],
    mode: str,
    high_watermark: int | None,
    note: Note,
    session_of: Callable[[], SparkSession],
    scratch: str | None = None,
) -> tuple[list[Replica], CommittedLog]:
    """The replicas and their committed log. Raises InputError.

    session_of makes the session whose file systems hold inputs that are URIs. scratch is for their copies.
    """
    inputs = paths_of(inputs)
    if not all(is_local(path) for path in inputs):
        use_copies(copy_inputs(session_of(), inputs, scratch))
    replicas = find_replicas(inputs)
    for replica in replicas:
        refuse_ordinary_records(replica)
    log = committed_log(replicas, permissive=mode == "permissive", high_watermark=high_watermark)
    if log.end_offset <= log.start_offset and not log.log.checkpoint_end_offset:
        raise InputError(f"{log.replica.path}: the log holds no committed record")
    for text in notes_of(replicas, log):
        note(text)
    return replicas, log


def warn(text: str) -> None:
    """Note a text as a warning."""
    warnings.warn(text, stacklevel=4)


def notes_of(replicas: Sequence[Replica], log: CommittedLog) -> list[str]:
    """Notes for the user about the input, which are no faults of the records read."""
    notes = list(log.notes)
    for replica in replicas:
        process = lock_holder(replica.path)
        if process is not None:
            end = f"what is written from offset {log.end_offset} on is not read"
            notes.append(f"{replica.path}: in use by process {process}; {end}")
    return notes


def is_small_log(log: CommittedLog, limit_bytes: int = SMALL_BYTES) -> bool:
    """Return whether a log has at most some bytes with its checkpoints; by default, those of a small one."""
    segments = sum(split.end - split.start for split in log.log.splits)
    return segments + sum(each.size_bytes for each in log.replica.checkpoints) <= limit_bytes


def are_small(replicas: Sequence[Replica], limit_bytes: int = SMALL_BYTES) -> bool:
    """Return whether each replica has at most some bytes; by default, those of a small log."""
    sizes = (
        sum(one.size_bytes for one in each.segments) + sum(one.size_bytes for one in each.checkpoints)
        for each in replicas
    )
    return all(size <= limit_bytes for size in sizes)


def refuse_output_in_input(inputs: Sequence[str], output: str, replaced: Sequence[str] = ()) -> None:
    """Raises InputError if an output lies in an input's directory, or would replace an input."""
    target = _real(output)
    for each in inputs:
        source = _real(each)
        home = split_name(source)[0] if _is_file(source) else source
        directory, name = split_name(home)
        if name == PARTITION_DIRECTORY:
            source = directory
        if target == source or target.startswith(f"{source}/"):
            raise InputError(f"--output {output} lies in the input {each}, which is never written to")
        for place in replaced:
            if f"{_real(each)}/".startswith(f"{join(target, place)}/"):
                raise InputError(f"--output {output} would replace {join(target, place)}, which holds {each}")


def _is_file(path: str) -> bool:
    """Return whether an input is one file; of a URI its name says so."""
    return kind_of(path) == "file" if is_local(path) else path.endswith((LOG_SUFFIX, SUFFIX))


def _real(path: str) -> str:
    """A path without links, so that two of them can be compared."""
    found = absolute(path)
    return os.path.realpath(found) if is_local(found) else found
