"""`kraftd-last-start.json`: the identity and the peers with which a metadata log was last started.

It lies beside the log, so it shows a cluster id, node id or directory id that was changed in
`meta.properties` since. It also holds the former voters of a static quorum, with their addresses.
"""

from __future__ import annotations

import contextlib
from typing import TypeVar

import msgspec

from kraftd.log.disk import Disk, write_atomically
from kraftd.log.errors import DirectoryProblem, DiskFull, ReadOnlyStorage
from kraftd.metadata_dir.files.meta_properties import FILE_NAME as META_PROPERTIES
from kraftd.metadata_dir.files.meta_properties import MetaProperties
from kraftd.types import uuid_text

FILE_NAME = "kraftd-last-start.json"
VERSION = 0
Value = TypeVar("Value")


class Peer(msgspec.Struct, frozen=True):
    """A voter of controller.quorum.voters."""

    id: int
    host: str
    port: int


class Server(msgspec.Struct, frozen=True):
    """One of controller.quorum.bootstrap.servers."""

    host: str
    port: int


class LastStart(msgspec.Struct, frozen=True, rename="camel"):
    """The content of the file."""

    cluster_id: str
    node_id: int
    directory_id: str
    voters: tuple[Peer, ...] = ()
    bootstrap_servers: tuple[Server, ...] = ()
    data_version: int = VERSION


def read_last_start(disk: Disk, partition: str) -> LastStart | None:
    """The last start's content; None if there was none. Raises DirectoryProblem for a malformed file."""
    path = f"{partition}/{FILE_NAME}"
    try:
        data = disk.read_bytes(path)
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(data, type=LastStart)
    except msgspec.DecodeError as error:
        raise DirectoryProblem(f"{path} cannot be read: {error}. Remove it: a start writes it anew") from None


def note_start(disk: Disk, partition: str, started: LastStart) -> None:
    """Write the file if it differs. A full or read-only disk leaves the old one: no promise depends on it."""
    if read_last_start(disk, partition) == started:
        return
    with contextlib.suppress(DiskFull, ReadOnlyStorage):
        write_atomically(disk, f"{partition}/{FILE_NAME}", msgspec.json.encode(started))


def forget_last_start(disk: Disk, partition: str) -> None:
    """Remove the file: another identity takes the log over."""
    disk.remove(f"{partition}/{FILE_NAME}")


def check_same_identity(disk: Disk, path: str, partition: str, found: MetaProperties) -> None:
    """Raise DirectoryProblem if the log was last started with another `meta.properties` than `found`."""
    started = read_last_start(disk, partition)
    if started is None:
        return
    _check(path, partition, "cluster.id", found.cluster_id, started.cluster_id)
    _check(path, partition, "node.id", found.node_id, started.node_id)
    directory_id = None if found.directory_id is None else uuid_text(found.directory_id)
    _check(path, partition, "directory.id", directory_id, started.directory_id)


def _check(path: str, partition: str, key: str, found: Value | None, started: Value) -> None:
    if found != started:
        now = f"{key} is {found}" if found is not None else f"{key} is missing"
        raise DirectoryProblem(
            f"{path}/{META_PROPERTIES}: {now}, but the log beside it was last started with {key} {started}. "
            f"Put {key}={started} back. If the log was moved here on purpose, remove {partition}/{FILE_NAME}"
        )
