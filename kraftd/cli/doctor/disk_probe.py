"""Examines a node's directories, whether it runs or not, without a lock and without leaving a file."""

from __future__ import annotations

import errno
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kraftd.cli.doctor.findings import Finding, note, ok, problem
from kraftd.cli.doctor.judge_disk import DiskState, judge_disk
from kraftd.host.checks.rehearsed_start import rehearse_start
from kraftd.log.disk import RealDisk
from kraftd.log.errors import DirectoryProblem, StorageError
from kraftd.metadata_dir.directory import PARTITION_DIRECTORY
from kraftd.metadata_dir.files.meta_properties import (
    MetaProperties,
    check_meta_properties,
    read_meta_properties,
)
from kraftd.metadata_dir.files.quorum_state import QuorumStateFile, check_static_voters
from kraftd.metadata_dir.rehearsal import Refusal
from kraftd.runtime.file_modes import wider_files, wider_modes

if TYPE_CHECKING:
    from kraftd.config import DaemonConfig

SYNCS = 12
DISK_FULL = "it is full: nothing can be written to it"
PROBE_BYTES = 4096
DAMAGE_REMEDY = (
    "kraftd dump --verify shows all of it; restore the file, or have the node join anew from an empty one"
)


def probe_directories(config: DaemonConfig) -> Iterator[Finding]:
    """Findings of all data directories: identity, files, room and syncs."""
    yield from _identities(config)
    path = config.metadata_log_dir
    if os.path.isdir(path):
        yield from _files(path)
        yield from _voters(config)
    for wide in wider_modes([*config.data_dirs, config.audit_log]):
        yield note("files", wide.path, f"other users have rights to it (mode {wide.mode:o})", wide.remedy)
    for directory in config.data_dirs:
        inside = wider_files(directory)
        if inside is not None:
            yield note("files", directory, str(inside), inside.remedy)
    for directory in config.data_dirs:
        if os.path.isdir(directory):
            yield from _disk(directory, config.quorum_fetch_timeout_ms)


def identity_of(config: DaemonConfig) -> MetaProperties | None:
    """The metadata directory's meta.properties; None if it cannot be read."""
    try:
        return read_meta_properties(RealDisk(), config.metadata_log_dir)
    except StorageError:
        return None


def _identities(config: DaemonConfig) -> Iterator[Finding]:
    found: dict[str, MetaProperties] = {}
    for directory in config.data_dirs:
        if not os.path.isdir(directory):
            yield _not_a_directory(directory)
            continue
        try:
            properties = read_meta_properties(RealDisk(), directory)
        except StorageError as error:
            if directory != config.metadata_log_dir:  # else `_files` reports it
                text, _, remedy = str(error).partition(". ")
                yield problem("files", directory, f"it would be offline: {text}", remedy)
            continue
        if properties is not None:
            found[directory] = properties
        elif directory != config.metadata_log_dir:
            yield problem("files", directory, "it is not formatted", "run kraftd format --ignore-formatted")
    try:
        check_meta_properties(found, node_id=config.node_id)
    except DirectoryProblem as error:
        text, _, remedy = str(error).partition(". ")
        yield problem("files", config.metadata_log_dir, text, remedy)


def _not_a_directory(path: str) -> Finding:
    if os.path.lexists(path):
        return problem(
            "files",
            path,
            "it is not a directory",
            "move what stands there away, and mount or copy the directory",
        )
    return problem("files", path, "there is no such directory", "run kraftd format, or mount it")


def _files(path: str) -> Iterator[Finding]:
    """The findings of a rehearsed start. A running node may write meanwhile: only what two passes both find
    counts.
    """
    disk = RealDisk()
    refusals, notes = rehearse_start(disk, path)
    if refusals:
        again: Sequence[Refusal] = rehearse_start(disk, path).refusals
        refusals = [one for one in refusals if one in again]
    for one in refusals:
        yield problem("files", one.path, f"a start is refused: {one.reason}", DAMAGE_REMEDY)
    for text in notes:
        yield note("files", path, f"a start would report: {text}")
    if not refusals:
        yield ok("files", path, "a start finds its files sound")


def _voters(config: DaemonConfig) -> Iterator[Finding]:
    state = QuorumStateFile(RealDisk(), f"{config.metadata_log_dir}/{PARTITION_DIRECTORY}")
    try:
        check_static_voters(state.path, state.read(), config.node_id, config.quorum_voters)
    except DirectoryProblem as error:
        if "controller.quorum.voters" in str(error):  # `_files` reports a malformed file
            text, _, remedy = str(error).rpartition(". ")
            yield problem("files", config.metadata_log_dir, f"a start is refused: {text}", remedy)
    except StorageError:
        return


def _disk(directory: str, fetch_timeout_ms: int) -> Iterator[Finding]:
    try:
        room = os.statvfs(directory)
        state = DiskState(room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize, sync_times(directory))
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            yield problem("disk", directory, DISK_FULL, "make room, or move the directory to a larger disk")
            return
        text = f"it cannot be written to: {error.strerror or error}"
        yield problem("disk", directory, text, "give this user the right to it, make room, or check the disk")
        return
    yield from judge_disk(directory, state, fetch_timeout_ms)


def sync_times(directory: str) -> list[float]:
    """How long each of a few syncs took (ms), of a file without a name. Raises OSError."""
    times_ms = []
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        for _ in range(SYNCS):
            file.write(bytes(PROBE_BYTES))
            began_s = time.perf_counter()
            os.fdatasync(file.fileno())
            times_ms.append((time.perf_counter() - began_s) * 1000)
    return times_ms
