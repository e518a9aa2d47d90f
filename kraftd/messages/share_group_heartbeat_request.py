"""ShareGroupHeartbeatRequest: a request of key 76, versions 1, flexible 0+.

Generated from schemas/ShareGroupHeartbeatRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ShareGroupHeartbeatRequest(Message):
    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    rack_id: str | None = None
    subscribed_topic_names: tuple[str, ...] | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ShareGroupHeartbeatRequest", 76, "request",
    (1, 1), (0, 32767),
    (
        ("ShareGroupHeartbeatRequest", (
            ("group_id", "GroupId", "string", 0, (1, 1), None, None, None, None, 0, ""),
            ("member_id", "MemberId", "string", 0, (1, 1), None, None, None, None, 0, ""),
            ("member_epoch", "MemberEpoch", "int32", 0, (1, 1), None, None, None, None, 0, 0),
            ("rack_id", "RackId", "string", 0, (1, 1), (0, 32767), None, None, None, 0, None),
            ("subscribed_topic_names", "SubscribedTopicNames", "string", 1, (1, 1), (0, 32767), None, None, None, 0, None),
        )),
    ),
)
