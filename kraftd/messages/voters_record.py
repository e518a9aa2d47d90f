"""VotersRecord: data, versions 0, flexible 0+.

Generated from schemas/VotersRecord.json; do not edit.
"""

from __future__ import annotations

from msgspec import field

from kraftd.wire.message import Message, Table


class Endpoint(Message):
    name: str = ""
    host: str = ""
    port: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class KRaftVersionFeature(Message):
    min_supported_version: int = 0
    max_supported_version: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class Voter(Message):
    voter_id: int = 0
    voter_directory_id: bytes = bytes(16)
    endpoints: list[Endpoint] = []
    kraft_version_feature: KRaftVersionFeature = field(default_factory=KRaftVersionFeature)
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class VotersRecord(Message):
    version: int = 0
    voters: list[Voter] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "VotersRecord", None, "data",
    (0, 0), (0, 32767),
    (
        ("VotersRecord", (
            ("version", "Version", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("voters", "Voters", "Voter", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("Voter", (
            ("voter_id", "VoterId", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("voter_directory_id", "VoterDirectoryId", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
            ("endpoints", "Endpoints", "Endpoint", 1, (0, 0), None, None, None, None, 0, ""),
            ("kraft_version_feature", "KRaftVersionFeature", "KRaftVersionFeature", 0, (0, 0), None, None, None, None, 0, ""),
        )),
        ("Endpoint", (
            ("name", "Name", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("host", "Host", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("port", "Port", "uint16", 0, (0, 0), None, None, None, None, 0, 0),
        )),
        ("KRaftVersionFeature", (
            ("min_supported_version", "MinSupportedVersion", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("max_supported_version", "MaxSupportedVersion", "int16", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
