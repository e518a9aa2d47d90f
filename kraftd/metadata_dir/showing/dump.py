"""Dumps segments and checkpoints: their records and their damage as rows, without changing a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec

from kraftd.log.disk import Disk
from kraftd.log.errors import CorruptStorage, StorageError
from kraftd.log.segment import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    SegmentIndex,
    find_valid_batch,
    offset_of_name,
    scan,
    segment_name,
)
from kraftd.metadata_dir.files.bootstrap import FILE_NAME as BOOTSTRAP
from kraftd.metadata_dir.files.checkpoint import CheckpointReader, parse_checkpoint_name
from kraftd.metadata_dir.showing.coordinator_records import Fields, decoder_of, record_fields
from kraftd.metadata_dir.showing.dump_state import reader_of
from kraftd.metadata_dir.showing.topic_records import is_of_topic, topic_record_fields
from kraftd.redaction.configs import REDACTED
from kraftd.redaction.records import hidden_fields
from kraftd.types import uuid_text
from kraftd.wire.batch import Batch, ControlRecordType, CorruptBatch, control_records, values
from kraftd.wire.errors import ProtocolError
from kraftd.wire.message import Message
from kraftd.wire.record_frame import decode_record

Row = dict[str, Any]
"""What JSON can hold. Every row has `kind` (batch, record, control, file, damage) and `path`."""


def find_dumpable(disk: Disk, paths: list[str]) -> list[str]:
    """The segments and checkpoints that paths name: each file, and the files of each directory and its
    __cluster_metadata-0 in order of offset. Raises FileNotFoundError for a path that does not exist.
    """
    found: list[str] = []
    for path in paths:
        if not disk.exists(path):
            raise FileNotFoundError(path)
        inner = f"{path}/__cluster_metadata-0"
        for directory in (path, inner):
            found += [f"{directory}/{name}" for name in disk.list_names(directory) if _is_dumpable(name)]
        if not disk.list_names(path) and not disk.list_names(inner) and not disk.exists(f"{path}/."):
            found.append(path)
    return found


def _is_dumpable(name: str) -> bool:
    if name.endswith(LOG_SUFFIX):
        return offset_of_name(name) is not None
    return name == BOOTSTRAP or (name.endswith(".checkpoint") and parse_checkpoint_name(name) is not None)


def dump(
    disk: Disk, path: str, *, records: bool = True, verify: bool = True, show_secrets: bool = False
) -> Iterator[Row]:
    """The rows of one file, in order; damage is a row, and reading goes on after it.

    With verify false checksums are not computed; with records false there are batch rows only. Secrets in
    records are hidden unless they are to be shown. A file beside the log (`dump_state`) has rows of its own.
    """
    if (reader := reader_of(path)) is not None:
        return reader(disk, path)
    record_rows = partial(_record_rows, show_secrets=show_secrets)
    if (fields_of := _fields_of(disk, path)) is not None:
        record_rows = partial(_topic_rows, fields_of)
    return _rows(disk, path, record_rows if records else None, verify=verify, dense=fields_of is None)


def _fields_of(disk: Disk, path: str) -> Callable[[Batch], Iterator[Fields]] | None:
    """How the records of a topic's segment are shown; None for the metadata log."""
    if (decode := decoder_of(path)) is not None:
        return partial(record_fields, decode)
    return topic_record_fields if is_of_topic(disk, path) else None


def _rows(
    disk: Disk,
    path: str,
    record_rows: Callable[[str, Batch], Iterator[Row]] | None,
    *,
    verify: bool,
    dense: bool,
) -> Iterator[Row]:
    """The rows of a segment or checkpoint. Unless it is dense, its topic's cleaner may have left gaps."""
    file = disk.open(path)
    try:
        end = file.size_bytes()
        position, expected = 0, _first_offset(path)
        while position < end:
            try:
                for batch in scan(file, position, end, verify=verify):
                    header = batch.header
                    gap = 0 if expected is None else header.base_offset - expected
                    if gap < 0 or (gap and dense):
                        reason = f"offset {header.base_offset} is where {expected} belongs"
                        yield _damage(path, batch.position, expected, reason)
                    expected = header.next_offset
                    position = batch.position + header.size_bytes
                    yield _batch_row(path, batch)
                    if record_rows is not None:
                        yield from record_rows(path, batch)
                break
            except CorruptBatch as error:
                following = find_valid_batch(file, error.position + 1, end, expected or 0)
                where = "a torn tail" if following is None else f"readable again at byte {following}"
                yield _damage(
                    path, error.position, expected, f"{error.reason}; {where}", end - error.position
                )
                if following is None:
                    break
                position, expected = following, None
    finally:
        file.close()


def verify(disk: Disk, path: str) -> Iterator[Row]:
    """The damage rows of one file: of batches, records, a checkpoint's frame, a segment's indexes."""
    if (reader := reader_of(path)) is not None:
        yield from (row for row in reader(disk, path) if row["kind"] == "damage")
        return
    last_offset = -1
    reported = set()
    fields_of = _fields_of(disk, path)
    record_rows = _unreadable_records if fields_of is None else partial(_unreadable_of_topic, fields_of)
    for row in _rows(disk, path, record_rows, verify=True, dense=fields_of is None):
        if row["kind"] == "damage":
            reported.add(row["position"])
            yield row
        elif row["kind"] == "batch":
            last_offset = row["last_offset"]
    if path.endswith(LOG_SUFFIX):
        yield from _verify_index(disk, path, last_offset, dense=fields_of is None)
    else:
        yield from (row for row in _verify_checkpoint(disk, path) if row["position"] not in reported)


def _verify_checkpoint(disk: Disk, path: str) -> Iterator[Row]:
    reader = None
    try:
        reader = CheckpointReader(disk, path)
        for _ in reader.values():
            pass
    except CorruptStorage as error:
        yield _damage(path, error.position, error.offset, error.reason)
    except (ProtocolError, StorageError) as error:
        yield _damage(path, 0, None, str(error))
    finally:
        if reader is not None:
            reader.close()


def _verify_index(disk: Disk, path: str, last_offset: int, *, dense: bool) -> Iterator[Row]:
    base_offset = offset_of_name(os.path.basename(path))
    if base_offset is None:
        return
    directory = os.path.dirname(path)
    file = disk.open(path)
    try:
        index_path = f"{directory}/{segment_name(base_offset, OFFSET_INDEX_SUFFIX)}"
        time_path = f"{directory}/{segment_name(base_offset, TIME_INDEX_SUFFIX)}"
        parts: list[bytes] = []
        for path_of_part in (index_path, time_path):
            try:
                parts.append(disk.read_bytes(path_of_part))
            except FileNotFoundError:
                parts.append(b"")
                if not _is_last(disk, directory, base_offset):  # the last one is still written to
                    yield _damage(path_of_part, 0, None, "missing; the next start makes it anew")
        size_bytes = file.size_bytes()
        for path_of_part, of_offsets, of_times in ((index_path, parts[0], b""), (time_path, b"", parts[1])):
            if SegmentIndex.load(base_offset, of_offsets, of_times, size_bytes) is None:
                yield _damage(path_of_part, 0, None, "contradicting itself; the next start makes it anew")
        index = SegmentIndex.load(base_offset, parts[0], parts[1], size_bytes)
        if index is None:
            return
        if index.last_entry is not None:
            offset, position = index.last_entry
            try:
                at = next(scan(file, position, file.size_bytes(), verify=False), None)
            except CorruptBatch:
                at = None  # the log is sound, so the index is wrong
            # Older releases of Kafka index the first of several batches under the offset of the last one.
            fits = at is not None and (
                at.header.last_offset == offset if dense else at.header.base_offset <= offset
            )
            if not fits or offset > last_offset:
                yield _damage(index_path, 0, offset, f"its last entry does not fit byte {position}")
    finally:
        file.close()


def _is_last(disk: Disk, directory: str, base_offset: int) -> bool:
    names = [name for name in disk.list_names(directory) if name.endswith(LOG_SUFFIX)]
    return all((offset_of_name(name) or 0) <= base_offset for name in names)


def _first_offset(path: str) -> int | None:
    name = os.path.basename(path)
    return offset_of_name(name) if name.endswith(LOG_SUFFIX) else 0


def _damage(path: str, position: int, offset: int | None, reason: str, size_bytes: int | None = None) -> Row:
    row: Row = {"kind": "damage", "path": path, "position": position, "offset": offset, "reason": reason}
    if size_bytes is not None:
        row["bytes_behind"] = size_bytes
    return row


def _batch_row(path: str, batch: Batch) -> Row:
    header = batch.header
    return {
        "kind": "batch",
        "path": path,
        "position": batch.position,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.record_count,
        "epoch": header.leader_epoch,
        "timestamp_ms": header.max_timestamp_ms,
        "size_bytes": header.size_bytes,
        "control": header.is_control,
        "compression": header.compression,
        "crc": header.crc,
    }


def _record_rows(path: str, batch: Batch, *, show_secrets: bool) -> Iterator[Row]:
    base_offset = batch.header.base_offset
    try:
        if batch.header.is_control:
            for record in control_records(batch):
                name = (
                    ControlRecordType(record.type).name
                    if record.message is not None
                    else f"UNKNOWN({record.type})"
                )
                yield {
                    "kind": "control",
                    "path": path,
                    "offset": record.offset,
                    "type": name,
                    "version": record.version,
                    "data": None if record.message is None else plain(record.message),
                }
            return
        found = values(batch)
    except (CorruptBatch, ProtocolError) as error:
        yield _damage(path, batch.position, base_offset, str(error))
        return
    for at, value in enumerate(found):
        try:
            message, version = decode_record(value)
        except ProtocolError as error:
            yield _damage(path, batch.position, base_offset + at, str(error))
            continue
        yield {
            "kind": "record",
            "path": path,
            "offset": base_offset + at,
            "epoch": batch.header.leader_epoch,
            "timestamp_ms": batch.header.base_timestamp_ms,
            "type": type(message).__name__,
            "version": version,
            "data": plain(message) if show_secrets else shown_fields(message),
        }


def _topic_rows(fields_of: Callable[[Batch], Iterator[Fields]], path: str, batch: Batch) -> Iterator[Row]:
    """The records of a topic's partition; those of a coordinator's and markers have a sentence."""
    kind = "control" if batch.header.is_control else "record"
    try:
        for fields in fields_of(batch):
            if (reason := fields.get("unreadable")) is not None:
                yield _damage(path, batch.position, fields["offset"], reason)
                continue
            if "data" not in fields:  # a coordinator's record
                found = {name: plain(fields.pop(name)) for name in ("key", "value")}
                fields["data"] = {name: one for name, one in found.items() if one is not None}
            yield {"kind": kind, "path": path, **fields, "epoch": batch.header.leader_epoch}
    except CorruptBatch as error:
        yield _damage(path, batch.position, batch.header.base_offset, str(error))


def _unreadable_of_topic(
    fields_of: Callable[[Batch], Iterator[Fields]], path: str, batch: Batch
) -> Iterator[Row]:
    return (row for row in _topic_rows(fields_of, path, batch) if row["kind"] == "damage")


def _unreadable_records(path: str, batch: Batch) -> Iterator[Row]:
    """Damage rows for the records of a batch that cannot be decoded."""
    offset = batch.header.base_offset
    try:
        if batch.header.is_control:
            control_records(batch)
            return
        found = values(batch)
    except (CorruptBatch, ProtocolError) as error:
        yield _damage(path, batch.position, offset, str(error))
        return
    for value in found:
        try:
            decode_record(value)
        except ProtocolError as error:
            yield _damage(path, batch.position, offset, str(error))
        offset += 1


def shown_fields(message: Message) -> dict[str, Any]:
    """A metadata record as JSON values, with `[redacted]` in place of each secret."""
    fields: dict[str, Any] = plain(message)
    for name in hidden_fields(message):
        if name in fields:
            fields[name] = REDACTED
    return fields


def plain(value: object) -> Any:
    """A message as JSON values: uuids as text, other bytes in hex."""
    if value is None or isinstance(value, int | str | float):
        return value
    if isinstance(value, Message):
        fields = {name: plain(getattr(value, name)) for name in value.__struct_fields__}
        if not fields.get("unknown_tags"):
            fields.pop("unknown_tags", None)
        return fields
    if isinstance(value, bytes | memoryview):
        raw = bytes(value)
        return uuid_text(raw) if len(raw) == 16 else raw.hex()
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def as_json_line(row: Row) -> bytes:
    """One row as a line."""
    return msgspec.json.encode(row) + b"\n"
