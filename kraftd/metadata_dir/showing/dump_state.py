"""Rows of the files beside the log, each recognized by its name.

They are `quorum-state`, `high-watermark`, `meta.properties`, `partition.metadata`, the indexes of a segment,
a snapshot of producers, `leader-epoch-checkpoint`, and a log directory's offsets
(`recovery-point-offset-checkpoint` and its like).

A row has `kind` "file", `type`, `offset` (None where the row is the whole file), `version` and `data`;
content that cannot be parsed is a `damage` row.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from kraftd.configdef.properties import parse
from kraftd.log.data.transaction_index import ENTRY_BYTES, decode_aborted
from kraftd.log.disk import Disk
from kraftd.log.epochs import FILE_NAME as EPOCHS
from kraftd.log.epochs import decode_epochs
from kraftd.log.errors import CorruptStorage
from kraftd.log.offset_checkpoint import (
    CLEANED_TO,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    decode_offsets,
)
from kraftd.log.partition_metadata import FILE_NAME as PARTITION_METADATA
from kraftd.log.partition_metadata import decode_topic_id
from kraftd.log.segment import (
    OFFSET_INDEX_SUFFIX,
    PRODUCER_SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    offset_of_name,
)
from kraftd.metadata_dir.files.high_watermark import FILE_NAME as HIGH_WATERMARK
from kraftd.metadata_dir.files.high_watermark import decode_mark
from kraftd.metadata_dir.files.meta_properties import FILE_NAME as META_PROPERTIES
from kraftd.metadata_dir.files.meta_properties import decode_identity
from kraftd.metadata_dir.files.quorum_state import FILE_NAME as QUORUM_STATE
from kraftd.metadata_dir.files.quorum_state import decode_quorum_state
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID, parse_uuid, uuid_text
from kraftd.wire.producer_snapshot import decode_producers

Row = dict[str, Any]
Entries = Iterator[tuple[int | None, int, dict[str, Any]]]  # offset, version, data

_OFFSET_ENTRY = struct.Struct(">II")  # offset after the base offset, position in bytes
_TIME_ENTRY = struct.Struct(">qI")  # timestamp in ms, offset after the base offset


class _Unsound(ValueError):
    """A fault of a file, and its byte."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position = position


def reader_of(path: str) -> Callable[[Disk, str], Iterator[Row]] | None:
    """The reader of a file that is neither segment nor checkpoint; None for an unknown name."""
    name = os.path.basename(path)
    if name in _WHOLE_FILES or _suffix(name) in _OF_OFFSETS:
        return dump_state
    return None


def dump_state(disk: Disk, path: str) -> Iterator[Row]:
    """The rows of one file, and a damage row at the end if it cannot be parsed."""
    name = os.path.basename(path)
    data = disk.read_bytes(path)
    suffix = _suffix(name)
    try:
        if suffix is None:
            entries = _WHOLE_FILES[name](data)
            if name == PARTITION_METADATA and _is_of_metadata(path):
                _check_topic_id(data)
        else:
            base_offset = offset_of_name(name)
            assert base_offset is not None
            entries = _OF_OFFSETS[suffix](data, base_offset)
        for offset, version, fields in entries:
            yield {
                "kind": "file",
                "path": path,
                "offset": offset,
                "type": name if suffix is None else suffix[1:],
                "version": version,
                "data": fields,
            }
    except ValueError as error:
        position = error.position if isinstance(error, _Unsound) else 0
        yield {"kind": "damage", "path": path, "position": position, "offset": None, "reason": str(error)}


def _suffix(name: str) -> str | None:
    """What follows the offset in a name; None for a name without one."""
    return None if offset_of_name(name) is None else name[20:]


def _quorum_state(data: bytes) -> Entries:
    decode_quorum_state(data)
    fields = msgspec.json.decode(data.split(b"\n", 1)[0])
    yield None, fields["data_version"], fields


def _offsets(data: bytes) -> Entries:
    for (topic, partition), offset in decode_offsets(data).items():
        yield offset, 0, {"topic": topic, "partition": partition, "offset": offset}


def _high_watermark(data: bytes) -> Entries:
    decode_mark(data)
    fields = msgspec.json.decode(data.split(b"\n", 1)[0])
    yield None, fields["data_version"], fields


def _meta_properties(data: bytes) -> Entries:
    properties = decode_identity(data)
    yield None, properties.version, {entry.key: entry.value for entry in parse(data.decode("latin-1"))}


def _partition_metadata(data: bytes) -> Entries:
    lines = data.decode("utf-8", errors="replace").splitlines()
    fields = dict(line.split(": ", 1) for line in lines if ": " in line)
    if fields.get("version") != "0":
        raise ValueError(f"version is {fields.get('version', 'missing')}; 0 is known")
    parse_uuid(fields.get("topic_id", ""))  # for its ValueError
    yield None, 0, fields


def _is_of_metadata(path: str) -> bool:
    return os.path.basename(os.path.dirname(os.path.abspath(path))) == f"{METADATA_TOPIC}-0"


def _check_topic_id(data: bytes) -> None:
    """Raise ValueError unless the file is one of the metadata log."""
    if (topic_id := decode_topic_id(data)) != METADATA_TOPIC_ID:
        known = uuid_text(METADATA_TOPIC_ID)
        raise ValueError(f"topic_id is {uuid_text(topic_id)}; the metadata log has {known}")


def _epochs(data: bytes) -> Entries:
    entries = decode_epochs(data)
    if entries is None:
        raise ValueError("it is no file of epochs in ascending order; the next start makes it anew")
    for epoch, start_offset in entries:
        yield start_offset, 0, {"epoch": epoch, "start_offset": start_offset}


def _offset_index(data: bytes, base_offset: int) -> Entries:
    previous = (-1, 0)
    for at, relative, position in _entries(data, _OFFSET_ENTRY):
        if relative <= previous[0] or position <= previous[1]:
            raise _Unsound(at, "its entries do not ascend; the next start makes it anew")
        previous = (relative, position)
        yield base_offset + relative, 0, {"position": position}


def _time_index(data: bytes, base_offset: int) -> Entries:
    previous = (-2, -1)  # a segment without a timestamp has -1
    for at, timestamp_ms, relative in _entries(data, _TIME_ENTRY):
        if timestamp_ms <= previous[0] or relative < previous[1]:
            raise _Unsound(at, "its entries do not ascend; the next start makes it anew")
        previous = (timestamp_ms, relative)
        yield base_offset + relative, 0, {"timestamp_ms": timestamp_ms}


def _transaction_index(data: bytes, base_offset: int) -> Entries:
    try:
        for aborted in decode_aborted(data, "", base_offset):
            yield aborted.last_offset, 0, aborted._asdict()
    except CorruptStorage as error:
        raise _Unsound(error.position, error.reason) from None
    if torn_bytes := len(data) % ENTRY_BYTES:
        raise _Unsound(len(data) - torn_bytes, f"{torn_bytes} bytes are no entry of {ENTRY_BYTES}")


def _producers(data: bytes, _: int) -> Entries:
    for producer in decode_producers(data):
        yield None, 1, producer._asdict()


def _entries(data: bytes, form: struct.Struct) -> Iterator[tuple[int, int, int]]:
    """(byte, first, second) of each entry. Zeros are space that Kafka reserves after the last one."""
    whole = len(data) - len(data) % form.size
    for at in range(0, whole, form.size):
        if not any(data[at : at + form.size]):
            if any(data[at:]):
                raise _Unsound(at, "an entry of zeros has others behind it; the next start makes it anew")
            break
        first, second = form.unpack_from(data, at)
        yield at, first, second
    if whole < len(data):
        raise _Unsound(
            whole, f"{len(data) - whole} bytes are no entry of {form.size}; the next start makes it anew"
        )


_WHOLE_FILES: dict[str, Callable[[bytes], Entries]] = {
    QUORUM_STATE: _quorum_state,
    HIGH_WATERMARK: _high_watermark,
    META_PROPERTIES: _meta_properties,
    PARTITION_METADATA: _partition_metadata,
    EPOCHS: _epochs,
    **dict.fromkeys((RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS, CLEANED_TO), _offsets),
}
_OF_OFFSETS: dict[str | None, Callable[[bytes, int], Entries]] = {
    OFFSET_INDEX_SUFFIX: _offset_index,
    TIME_INDEX_SUFFIX: _time_index,
    TRANSACTION_INDEX_SUFFIX: _transaction_index,
    PRODUCER_SNAPSHOT_SUFFIX: _producers,
}
