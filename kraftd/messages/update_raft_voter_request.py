"""UpdateRaftVoterRequest: a request of key 82, versions 0, flexible 0+.

Generated from schemas/UpdateRaftVoterRequest.json; do not edit.
"""

from __future__ import annotations

from msgspec import field

from kraftd.wire.message import Message, Table


class Listener(Message):
    name: str = ""
    host: str = ""
    port: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class KRaftVersionFeature(Message):
    min_supported_version: int = 0
    max_supported_version: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class UpdateRaftVoterRequest(Message):
    cluster_id: str | None = ""
    current_leader_epoch: int = 0
    voter_id: int = 0
    voter_directory_id: bytes = bytes(16)
    listeners: list[Listener] = []
    kraft_version_feature: KRaftVersionFeature = field(default_factory=KRaftVersionFeature)
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "UpdateRaftVoterRequest", 82, "request",
    (0, 0), (0, 32767),
    (
        ("UpdateRaftVoterRequest", (
            ("cluster_id", "ClusterId", "string", 0, (0, 0), (0, 32767), None, None, None, 0, ""),
            ("current_leader_epoch", "CurrentLeaderEpoch", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("voter_id", "VoterId", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("voter_directory_id", "VoterDirectoryId", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
            ("listeners", "Listeners", "Listener", 1, (0, 0), None, None, None, None, 0, ""),
            ("kraft_version_feature", "KRaftVersionFeature", "KRaftVersionFeature", 0, (0, 0), None, None, None, None, 0, ""),
        )),
        ("Listener", (
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
