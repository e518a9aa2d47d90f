"""FeatureLevelRecord: a metadata record of key 12, versions 0, flexible 0+.

Generated from schemas/FeatureLevelRecord.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class FeatureLevelRecord(Message):
    name: str = ""
    feature_level: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "FeatureLevelRecord", 12, "metadata",
    (0, 0), (0, 32767),
    (
        ("FeatureLevelRecord", (
            ("name", "Name", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("feature_level", "FeatureLevel", "int16", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
