"""Committed offsets of a log, read in a row: nearly all records of a coordinator's partition are such ones.

Kafka and kraftd write them in one form, of a fixed size if there is no metadata. Those of a group and a topic
share their names here, and the bytes of the topic's id. Whatever has another form is left to the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

from kraftd.groups.offsets.committed import Committed
from kraftd.groups.offsets.store import TopicPartition
from kraftd.groups.records import OFFSET_COMMIT_VERSION, is_offset_key
from kraftd.groups.state import ShardState
from kraftd.messages.offset_commit_key import OffsetCommitKey
from kraftd.wire.codec import decode_prefix
from kraftd.wire.errors import ProtocolError

# A value: version, offset, leader epoch, length of the metadata, time, and the topic's id as tagged field.
_VALUE = Struct(">hqibq3s16s")
_NO_TEXT = 1  # of compact strings
_TAGGED = b"\1\0\x10"  # one field, of tag 0, of 16 bytes
_PARTITION = Struct(">i")  # the end of a key
MOST_NAMES = 10_000  # of groups and topics that are remembered

Names = dict[bytes, tuple[str, str]]  # a group and a topic by the key without its partition


def apply_offsets(state: ShardState, records: Sequence[tuple[Any, ...]], known: Names) -> int:
    """Apply records of no transaction, up to the first that is no such offset; return how many.

    A record is given by the fields of `wire.records.Record`. What `known` lacks is added.
    """
    timeline, unpack, size, partition_of = state.timeline, _VALUE.unpack, _VALUE.size, _PARTITION.unpack
    committed_end = timeline.committed
    head: bytes | None = None
    topic, topic_id = "", b""
    offsets: dict[TopicPartition, Committed] = {}
    for number, (record_offset, _, key, value, _) in enumerate(records):
        if value is None or len(value) != size:
            return number
        version, offset, leader_epoch, text, time_ms, tagged, found_id = unpack(value)
        if version != OFFSET_COMMIT_VERSION or text != _NO_TEXT or tagged != _TAGGED:
            return number
        timeline.offset = record_offset
        if key is None:
            return number
        if key[:-4] != head:
            head = key[:-4]
            names = known.get(head)
            if names is None:
                names = _names_of(key)
                if names is None:
                    return number
                if len(known) >= MOST_NAMES:
                    known.clear()
                known[head] = names
            group_id, topic = names
            if group_id not in state.groups:
                state.new_classic_group(group_id)
            offsets = state.offsets.begin_group(group_id)
        if found_id != topic_id:
            topic_id = found_id
        place = topic, partition_of(key[-4:])[0]
        committed = Committed(offset, leader_epoch, "", time_ms, -1, topic_id, record_offset)
        if record_offset < committed_end:
            offsets[place] = committed
        else:
            timeline.put(offsets, place, committed)
    return len(records)


def _names_of(key: bytes) -> tuple[str, str] | None:
    """The group and the topic of an offset's key; None for another key."""
    if not is_offset_key(key):
        return None
    try:
        found, end = decode_prefix(OffsetCommitKey, 0, key, 2)
    except ProtocolError:
        return None
    return (found.group, found.topic) if end == len(key) else None
