"""AddRaftVoterRequest: a request of key 80, versions 0-1, flexible 0+.

Generated from schemas/AddRaftVoterRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class Listener(Message):
    name: str = ""
    host: str = ""
    port: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AddRaftVoterRequest(Message):
    cluster_id: str | None = ""
    timeout_ms: int = 0
    voter_id: int = 0
    voter_directory_id: bytes = bytes(16)
    listeners: list[Listener] = []
    ack_when_committed: bool = True
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "AddRaftVoterRequest", 80, "request",
    (0, 1), (0, 32767),
    (
        ("AddRaftVoterRequest", (
            ("cluster_id", "ClusterId", "string", 0, (0, 1), (0, 32767), None, None, None, 0, ""),
            ("timeout_ms", "TimeoutMs", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("voter_id", "VoterId", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("voter_directory_id", "VoterDirectoryId", "uuid", 0, (0, 1), None, None, None, None, 0, ""),
            ("listeners", "Listeners", "Listener", 1, (0, 1), None, None, None, None, 0, ""),
            ("ack_when_committed", "AckWhenCommitted", "bool", 0, (1, 1), None, None, None, None, 0, 1),
        )),
        ("Listener", (
            ("name", "Name", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("host", "Host", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("port", "Port", "uint16", 0, (0, 1), None, None, None, None, 0, 0),
        )),
    ),
)
