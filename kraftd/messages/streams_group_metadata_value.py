"""StreamsGroupMetadataValue: the value of a group coordinator's record of key 17, versions 0, flexible 0+.

Generated from schemas/StreamsGroupMetadataValue.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class LastAssignmentConfig(Message):
    key: str = ""
    value: str = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class StreamsGroupMetadataValue(Message):
    epoch: int = 0
    metadata_hash: int = 0
    validated_topology_epoch: int = -1
    last_assignment_configs: list[LastAssignmentConfig] | None = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "StreamsGroupMetadataValue", 17, "coordinator-value",
    (0, 0), (0, 32767),
    (
        ("StreamsGroupMetadataValue", (
            ("epoch", "Epoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("metadata_hash", "MetadataHash", "int64", 0, (0, 0), None, None, None, None, 0, 0),
            ("validated_topology_epoch", "ValidatedTopologyEpoch", "int32", 0, (0, 0), None, (0, 32767), 0, None, 0, -1),
            ("last_assignment_configs", "LastAssignmentConfigs", "LastAssignmentConfig", 1, (0, 0), (0, 32767), (0, 32767), 1, None, 0, ""),
        )),
        ("LastAssignmentConfig", (
            ("key", "Key", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("value", "Value", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
