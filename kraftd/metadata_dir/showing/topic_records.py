"""Rows of an ordinary topic's partition: the records of clients, and markers of transactions.

A partition is recognized by the topic id in the `partition.metadata` beside its segments.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from kraftd.log.disk import Disk
from kraftd.log.partition_metadata import FILE_NAME, decode_topic_id
from kraftd.metadata_dir.showing.coordinator_records import Fields, marker_fields
from kraftd.types import METADATA_TOPIC_ID, shown_bytes
from kraftd.wire.batch import Batch, records
from kraftd.wire.keyed_records import read_keyed_records


def is_of_topic(disk: Disk, path: str) -> bool:
    """Return whether a segment is of a topic other than `__cluster_metadata`."""
    try:
        data = disk.read_bytes(f"{os.path.dirname(path) or '.'}/{FILE_NAME}")
        return decode_topic_id(data) != METADATA_TOPIC_ID
    except (OSError, ValueError):
        return False


def topic_record_fields(batch: Batch) -> Iterator[Fields]:
    """What each record holds: text, or base64 where bytes are no UTF-8; of a marker what
    `coordinator_records` says. Raises CorruptBatch.
    """
    if batch.header.is_control:
        for view in records(batch):
            yield {"offset": view.offset, "timestamp_ms": view.timestamp_ms, **marker_fields(batch, view)}
    for record in read_keyed_records(batch):
        yield {
            "offset": record.offset,
            "timestamp_ms": record.timestamp_ms,
            "type": "Record",
            "version": batch.header.magic,
            "data": {
                "key": shown_bytes(record.key),
                "value": shown_bytes(record.value),
                "headers": [[name, shown_bytes(value)] for name, value in record.headers],
            },
        }
