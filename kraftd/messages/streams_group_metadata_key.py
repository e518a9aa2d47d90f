"""StreamsGroupMetadataKey: the key of a group coordinator's record of key 17, versions 0.

Generated from schemas/StreamsGroupMetadataKey.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class StreamsGroupMetadataKey(Message):
    group_id: str = ""


SCHEMA: Table = (
    "StreamsGroupMetadataKey", 17, "coordinator-key",
    (0, 0), None,
    (
        ("StreamsGroupMetadataKey", (
            ("group_id", "GroupId", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
