"""`meta.properties`: the node and cluster of a directory, and its own id (KIP-858, KIP-853)."""

from __future__ import annotations

import re
import time
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping

from kraftd.configdef.properties import parse
from kraftd.log.disk import Disk, write_atomically
from kraftd.log.errors import DirectoryProblem
from kraftd.named_tuple import NamedTuple
from kraftd.types import (
    DIRECTORY_LOST,
    DIRECTORY_MIGRATING,
    DIRECTORY_UNASSIGNED,
    ReplicaKey,
    Uuid,
    parse_uuid,
    uuid_text,
)

FILE_NAME = "meta.properties"
_NUMBER = re.compile(r"[+-]?[0-9]{1,20}")
_RESERVED = (DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, DIRECTORY_LOST)


class MetaProperties(NamedTuple):
    """The file's content; version 0 (ZooKeeper's time) may lack everything, version 1 has node and
    cluster."""

    version: int
    cluster_id: str | None
    node_id: int | None
    directory_id: Uuid | None

    @property
    def replica_key(self) -> ReplicaKey:
        """The node and its directory; -1 without a node id."""
        return ReplicaKey(-1 if self.node_id is None else self.node_id, self.directory_id)


def read_meta_properties(disk: Disk, directory: str) -> MetaProperties | None:
    """The properties of a directory; None if it has none. Raises DirectoryProblem for a malformed file."""
    path = f"{directory}/{FILE_NAME}"
    try:
        data = disk.read_bytes(path)
    except FileNotFoundError:
        return None
    try:
        return decode_meta_properties(data)
    except ValueError as error:
        raise DirectoryProblem(
            f"{path}: {error}. Correct the file by hand, or move the directory aside and format a new one"
        ) from None


def write_meta_properties(disk: Disk, directory: str, properties: MetaProperties, now_ms: int) -> None:
    """Write the file; it is durable on return."""
    write_atomically(disk, f"{directory}/{FILE_NAME}", encode_meta_properties(properties, now_ms))


def decode_meta_properties(data: bytes) -> MetaProperties:
    """The content as Kafka reads it: in Latin-1, with the last of several values of a key.

    Raises ValueError saying which property is missing or wrong.
    """
    return _with_hint(data, _decode)


def decode_identity(data: bytes) -> MetaProperties:
    """The content of a file that names its node and its cluster, as a start needs it. Raises ValueError."""
    return _with_hint(data, _identity)


def _with_hint(data: bytes, decode: Callable[[Mapping[str, str]], MetaProperties]) -> MetaProperties:
    try:
        return decode({entry.key: entry.value for entry in parse(data.decode("latin-1"))})
    except ValueError as error:
        if data.startswith(BOM_UTF8):
            why = "the file begins with a byte order mark, which is a part of its first key"
            raise ValueError(f"{error} ({why})") from None
        raise


def _identity(found: Mapping[str, str]) -> MetaProperties:
    properties = _decode(found)
    for key, value in (("cluster.id", properties.cluster_id), ("node.id", properties.node_id)):
        if value in (None, ""):
            why = "" if properties.version else " (without version=1 the node id is broker.id)"
            raise ValueError(f"{key} is missing{why}")
    return properties


def check_keys_are_unique(data: bytes) -> None:
    """Raise ValueError for a key with two values: Kafka takes the last one, but either may be right."""
    values: dict[str, str] = {}
    for entry in parse(data.decode("latin-1")):
        if values.setdefault(entry.key, entry.value) != entry.value:
            both = f"{values[entry.key]} and {entry.value}"
            raise ValueError(f"line {entry.line}: {entry.key} is there twice, as {both}")


def _decode(found: Mapping[str, str]) -> MetaProperties:
    version = _integer(found, "version", 0)
    if version not in (0, 1):
        raise ValueError(f"version={version} is unknown; 0 and 1 are known")
    directory_id = None
    if "directory.id" in found:
        try:
            directory_id = parse_uuid(found["directory.id"])
        except ValueError as error:
            raise ValueError(f"directory.id: {error}") from None
    cluster_id = found.get("cluster.id")
    if version == 0:
        return MetaProperties(0, cluster_id, _integer(found, "broker.id", None), directory_id)
    if cluster_id is None:
        raise ValueError("cluster.id is missing")
    node_id = _integer(found, "node.id", None)
    if node_id is None:
        raise ValueError("node.id is missing")
    return MetaProperties(1, cluster_id, node_id, directory_id)


def encode_meta_properties(properties: MetaProperties, now_ms: int) -> bytes:
    """The file of version 1, as java.util.Properties lays it out."""
    written = time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(now_ms // 1000))
    lines = ["#", f"#{written}", f"node.id={properties.node_id}"]
    if properties.directory_id is not None:
        lines.append(f"directory.id={uuid_text(properties.directory_id)}")
    lines += ["version=1", f"cluster.id={_escaped(properties.cluster_id or '')}"]
    return ("\n".join(lines) + "\n").encode("latin-1")


def check_meta_properties(
    found: Mapping[str, MetaProperties], *, cluster_id: str | None = None, node_id: int | None = None
) -> None:
    """Check that these directories belong together and to this node (and its cluster, if known).

    Raises DirectoryProblem for another cluster or node, a reserved directory id, or a duplicate one.
    """
    seen: dict[Uuid, str] = {}
    for directory, properties in sorted(found.items()):
        path = f"{directory}/{FILE_NAME}"
        if properties.cluster_id is not None:
            if cluster_id is not None and properties.cluster_id != cluster_id:
                raise DirectoryProblem(
                    f"{path} belongs to cluster {properties.cluster_id}, not {cluster_id}. Use the "
                    f"directory "
                    "of this cluster, or the cluster id of this directory"
                )
            cluster_id = properties.cluster_id
        if properties.node_id is not None:
            if node_id is not None and properties.node_id != node_id:
                raise DirectoryProblem(
                    f"{path} belongs to node {properties.node_id}, this is node {node_id}. If the data was "
                    f"moved, "
                    f"configure node.id={properties.node_id}; for a new node choose an empty directory and "
                    f"format it"
                )
            node_id = properties.node_id
        if properties.directory_id is not None:
            text = uuid_text(properties.directory_id)
            if properties.directory_id in _RESERVED:
                raise DirectoryProblem(f"{path}: directory.id={text} is reserved. Format a new directory")
            other = seen.setdefault(properties.directory_id, directory)
            if other != directory:
                raise DirectoryProblem(
                    f"{path}: directory.id={text} is also that of {other}; one is a copy of the other. "
                    f"Remove the copy"
                )


def is_reserved(directory_id: Uuid) -> bool:
    """Return whether an id must not be a directory's: it has another meaning, or its text begins
    with a dash.
    """
    return directory_id in _RESERVED or uuid_text(directory_id).startswith("-")


def _escaped(value: str) -> str:
    """A value as java.util.Properties writes it."""
    value = re.sub(r"[\\=:#!]", r"\\\g<0>", value)
    if value.startswith(" "):
        value = "\\" + value
    return re.sub(r"[^ -~]", lambda match: f"\\u{ord(match[0]):04X}", value)


def _integer(found: Mapping[str, str], name: str, default: int | None) -> int | None:
    text = found.get(name)
    if text is None:
        return default
    if name == "version":
        text = text.strip()  # only this value is stripped, as in Kafka
    if not _NUMBER.fullmatch(text) or not -(1 << 31) <= int(text) < 1 << 31:
        raise ValueError(f"{name}={text} is no number of 32 bits")
    return int(text)
