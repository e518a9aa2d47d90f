"""StreamsGroupTopologyKey: the key of a group coordinator's record of key 23, versions 0.

Generated from schemas/StreamsGroupTopologyKey.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class StreamsGroupTopologyKey(Message):
    group_id: str = ""


SCHEMA: Table = (
    "StreamsGroupTopologyKey", 23, "coordinator-key",
    (0, 0), None,
    (
        ("StreamsGroupTopologyKey", (
            ("group_id", "GroupId", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
