"""OffsetCommitValue: the value of a group coordinator's record of key 1, versions 0-4, flexible 4+.

Generated from schemas/OffsetCommitValue.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class OffsetCommitValue(Message):
    offset: int = 0
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp: int = 0
    expire_timestamp: int = -1
    topic_id: bytes = bytes(16)
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "OffsetCommitValue", 1, "coordinator-value",
    (0, 4), (4, 32767),
    (
        ("OffsetCommitValue", (
            ("offset", "offset", "int64", 0, (0, 4), None, None, None, None, 0, 0),
            ("leader_epoch", "leaderEpoch", "int32", 0, (3, 4), None, None, None, None, 1, -1),
            ("metadata", "metadata", "string", 0, (0, 4), None, None, None, None, 0, ""),
            ("commit_timestamp", "commitTimestamp", "int64", 0, (0, 4), None, None, None, None, 0, 0),
            ("expire_timestamp", "expireTimestamp", "int64", 0, (1, 1), None, None, None, None, 1, -1),
            ("topic_id", "topicId", "uuid", 0, (4, 4), None, (4, 32767), 0, None, 1, ""),
        )),
    ),
)
