"""ShareGroupMemberMetadataValue: the value of a group coordinator's record of key 10, versions 0, flexible 0+.

Generated from schemas/ShareGroupMemberMetadataValue.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ShareGroupMemberMetadataValue(Message):
    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ShareGroupMemberMetadataValue", 10, "coordinator-value",
    (0, 0), (0, 32767),
    (
        ("ShareGroupMemberMetadataValue", (
            ("rack_id", "RackId", "string", 0, (0, 0), (0, 32767), None, None, None, 0, ""),
            ("client_id", "ClientId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("client_host", "ClientHost", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("subscribed_topic_names", "SubscribedTopicNames", "string", 1, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
