"""The frame of a metadata record, which is the value of a record in the metadata log.

Frame version (always 1), the record's key and the version of its body, each an unsigned varint, then the body.
"""

from __future__ import annotations

import importlib
from functools import lru_cache
from typing import Any, NamedTuple

from kraftd.wire.codec import decode, encode_bytes
from kraftd.wire.errors import ProtocolError
from kraftd.wire.message import Message

FRAME_VERSION = 1


class VersionedRecord(NamedTuple):
    """A metadata record and the version in which it is (to be) written."""

    message: Message
    version: int


def encode_record(record: VersionedRecord) -> bytes:
    """The record as the value of a log record. Raises ProtocolError when the version cannot carry it."""
    message, version = record
    return _prefix(type(message), version) + encode_bytes(message, version)


def decode_record(view: bytes | memoryview) -> VersionedRecord:
    """The record in a log record's value. Raises ProtocolError: unknown frame, key or version, a malformed body."""
    # All three numbers are below 128 in every record that exists.
    if len(view) < 3:
        raise ProtocolError(f"metadata record: {len(view)} bytes are no frame")
    frame_version, key, version = view[0], view[1], view[2]
    if frame_version != FRAME_VERSION:
        raise ProtocolError(
            f"metadata record: frame version {frame_version} is unknown, only {FRAME_VERSION} is read"
        )
    if (found := _classes().get(key)) is None:
        raise ProtocolError(f"metadata record: no record has key {key}")
    cls, first, last = found
    if not first <= version <= last:
        raise ProtocolError(f"{cls.__name__}: version {version} is unknown, {first} to {last} are read")
    return VersionedRecord(decode(cls, version, view, 3), version)


@lru_cache(maxsize=1)
def _classes() -> dict[int, tuple[type[Any], int, int]]:
    """Record key to (class, first version, last version). By name: messages are a layer above."""
    registry = importlib.import_module("kraftd.messages.registry")
    return {
        key: (getattr(importlib.import_module(f"kraftd.messages.{module}"), name), first, last)
        for key, (module, name, first, last) in registry.METADATA_RECORDS.items()
    }


@lru_cache(maxsize=256)
def _prefix(cls: type[Message], version: int) -> bytes:
    key = importlib.import_module(cls.__module__).SCHEMA[1]
    if key is None or key not in _classes():
        raise ProtocolError(f"{cls.__name__} is not a metadata record")
    return bytes((FRAME_VERSION, key, version))
