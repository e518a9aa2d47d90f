"""RemoveRaftVoterRequest: a request of key 81, versions 0, flexible 0+.

Generated from schemas/RemoveRaftVoterRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class RemoveRaftVoterRequest(Message):
    cluster_id: str | None = ""
    voter_id: int = 0
    voter_directory_id: bytes = bytes(16)
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "RemoveRaftVoterRequest", 81, "request",
    (0, 0), (0, 32767),
    (
        ("RemoveRaftVoterRequest", (
            ("cluster_id", "ClusterId", "string", 0, (0, 0), (0, 32767), None, None, None, 0, ""),
            ("voter_id", "VoterId", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("voter_directory_id", "VoterDirectoryId", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
