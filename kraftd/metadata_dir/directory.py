"""A controller's metadata directory: locked, verified to be this node's, its files accessible."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kraftd.log.disk import Disk, Lock
from kraftd.log.errors import DirectoryProblem, StorageError
from kraftd.metadata_dir.files.bootstrap import FILE_NAME as BOOTSTRAP_FILE_NAME
from kraftd.metadata_dir.files.file_kinds import check_file_kinds
from kraftd.metadata_dir.files.last_start import check_same_identity
from kraftd.metadata_dir.files.meta_properties import (
    FILE_NAME,
    MetaProperties,
    check_meta_properties,
    is_reserved,
    read_meta_properties,
    write_meta_properties,
)
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC, Uuid

LOCK_FILE = ".lock"
PARTITION_DIRECTORY = f"{METADATA_TOPIC}-{METADATA_PARTITION}"


class MetadataDirectory:
    """An opened metadata.log.dir. close releases its lock.

    `directory_ids` are those of the log directories, by path. `unreadable` has the others, and why.
    """

    def __init__(
        self,
        path: str,
        properties: MetaProperties,
        lock: Lock,
        directory_ids: Mapping[str, Uuid],
        unreadable: Mapping[str, StorageError],
    ) -> None:
        assert properties.cluster_id is not None and properties.node_id is not None
        assert properties.directory_id is not None
        self.path = path
        self.partition_path = f"{path}/{PARTITION_DIRECTORY}"
        self.cluster_id: str = properties.cluster_id
        self.node_id: int = properties.node_id
        self.directory_id: Uuid = properties.directory_id
        self.directory_ids = directory_ids
        self.unreadable = unreadable
        self._lock = lock

    def __repr__(self) -> str:
        return f"<MetadataDirectory {self.path} of node {self.node_id}, cluster {self.cluster_id}>"

    def close(self) -> None:
        self._lock.release()


def open_directory(
    disk: Disk,
    path: str,
    node_id: int,
    *,
    other_directories: Sequence[str] = (),
    new_directory_id: Callable[[], Uuid],
    now_ms: int,
) -> MetadataDirectory:
    """Lock a formatted metadata.log.dir and check that it, and the other log.dirs, belong to this node.

    A directory from before KIP-858 gets an id and version 1, as at a start of Kafka. One of the others whose
    disk or meta.properties cannot be read does not stop the start. Raises DirectoryProblem, DirectoryLocked,
    ReadOnlyStorage.
    """
    check_file_kinds(disk, path)
    found: dict[str, MetaProperties] = {}
    unreadable: dict[str, StorageError] = {}
    for directory in dict.fromkeys([path, *other_directories]):
        try:
            properties = read_meta_properties(disk, directory)
            if directory != path:
                disk.list_names(directory)  # without that right, none of its logs can be found
        except StorageError as error:
            if directory == path:
                raise
            unreadable[directory] = error
        else:
            found[directory] = _complete(disk, directory, properties)
    for directory in found:
        if directory != path and disk.list_names(f"{directory}/{PARTITION_DIRECTORY}"):
            raise DirectoryProblem(
                f"{directory} holds a metadata log, but metadata.log.dir is {path}. Point metadata.log.dir "
                f"at the one "
                "in use and move the other away"
            )
    check_meta_properties(found, node_id=node_id)
    check_same_identity(disk, path, f"{path}/{PARTITION_DIRECTORY}", found[path])
    lock = disk.lock(f"{path}/{LOCK_FILE}")
    try:
        ids = {}
        for one, properties in list(found.items()):
            directory_id = properties.directory_id or fresh_directory_id(new_directory_id)
            if properties.version == 0 or properties.directory_id is None:
                found[one] = properties._replace(version=1, directory_id=directory_id)
                try:
                    write_meta_properties(disk, one, found[one], now_ms)
                except StorageError as error:
                    if one == path:
                        raise
                    unreadable[one] = error
                    continue
            ids[one] = directory_id
    except BaseException:
        lock.release()
        raise
    return MetadataDirectory(path, found[path], lock, ids, unreadable)


def fresh_directory_id(new_uuid: Callable[[], Uuid]) -> Uuid:
    """A random id that is valid for a directory. Raises ValueError after 100 invalid ones."""
    for _ in range(100):
        if not is_reserved(candidate := new_uuid()):
            return candidate
    raise ValueError("the source of random ids gives reserved ids only")


def holds_a_log(disk: Disk, path: str) -> bool:
    """Return whether a directory has records in a metadata log, formatted or not."""
    partition = f"{path}/{PARTITION_DIRECTORY}"
    for name in disk.list_names(partition):
        if name.endswith(".log"):
            file = disk.open(f"{partition}/{name}")
            try:
                if file.size_bytes():
                    return True
            finally:
                file.close()
    return False


def _complete(disk: Disk, directory: str, properties: MetaProperties | None) -> MetaProperties:
    """The properties, which name a node and a cluster. Raises DirectoryProblem."""
    if properties is None:
        raise _not_formatted(disk, directory)
    for name, value in (("node id", properties.node_id), ("cluster id", properties.cluster_id)):
        if value is None:
            remedy = (
                "Restore that file: the directory holds a metadata log"
                if holds_a_log(disk, directory)
                else "Format the directory anew"
            )
            raise DirectoryProblem(f"{directory}/{FILE_NAME} has no {name}. {remedy}")
    return properties


def _not_formatted(disk: Disk, path: str) -> DirectoryProblem:
    if holds_a_log(disk, path):
        return DirectoryProblem(
            f"{path} holds a metadata log but no {FILE_NAME}. Restore that file (node.id, cluster.id, "
            f"directory.id, "
            "version=1): formatting would make it another node's"
        )
    if disk.exists(f"{path}/{BOOTSTRAP_FILE_NAME}"):
        return DirectoryProblem(
            f"{path} is half formatted: it has {BOOTSTRAP_FILE_NAME} but no {FILE_NAME}. Run kraftd format "
            f"again"
        )
    return DirectoryProblem(
        f"{path} is not formatted: it has no {FILE_NAME}. Run kraftd format first, with --config and "
        "--cluster-id; --standalone begins a new cluster, --ignore-formatted leaves this node's other "
        "directories as they are"
    )
