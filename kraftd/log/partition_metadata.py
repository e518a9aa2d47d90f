"""`partition.metadata`: the topic id of a partition's directory."""

from __future__ import annotations

from kraftd.types import Uuid, parse_uuid, uuid_text

FILE_NAME = "partition.metadata"
_HEAD = b"version: 0\ntopic_id: "
_ID_CHARACTERS = 22


def encode_topic_id(topic_id: Uuid) -> bytes:
    """Content of the file."""
    return _HEAD + uuid_text(topic_id).encode()


def is_torn(data: bytes) -> bool:
    """Return whether the content is what a loss of power may leave of the file: a beginning, then zeros."""
    found = data.rstrip(b"\0")
    return _HEAD.startswith(found[: len(_HEAD)]) and len(found) < len(_HEAD) + _ID_CHARACTERS


def decode_topic_id(data: bytes) -> Uuid:
    """The topic id in the file. Raises ValueError for anything else."""
    fields = {}
    for line in data.decode().splitlines():
        key, _, value = line.partition(": ")
        fields[key] = value
    if not fields.get("version", "").isdecimal():
        raise ValueError(f"version {fields.get('version')!r} is no number")
    return parse_uuid(fields.get("topic_id", ""))
