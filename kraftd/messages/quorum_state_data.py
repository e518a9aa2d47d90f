"""QuorumStateData: data, versions 0-1, flexible 0+.

Generated from schemas/QuorumStateData.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class Voter(Message):
    voter_id: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class QuorumStateData(Message):
    cluster_id: str = ""
    leader_id: int = -1
    leader_epoch: int = -1
    voted_id: int = -1
    voted_directory_id: bytes = bytes(16)
    applied_offset: int = 0
    current_voters: list[Voter] | None = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "QuorumStateData", None, "data",
    (0, 1), (0, 32767),
    (
        ("QuorumStateData", (
            ("cluster_id", "ClusterId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("leader_id", "LeaderId", "int32", 0, (0, 1), None, None, None, None, 0, -1),
            ("leader_epoch", "LeaderEpoch", "int32", 0, (0, 1), None, None, None, None, 0, -1),
            ("voted_id", "VotedId", "int32", 0, (0, 1), None, None, None, None, 0, -1),
            ("voted_directory_id", "VotedDirectoryId", "uuid", 0, (1, 1), None, None, None, None, 0, ""),
            ("applied_offset", "AppliedOffset", "int64", 0, (0, 0), None, None, None, None, 0, 0),
            ("current_voters", "CurrentVoters", "Voter", 1, (0, 0), (0, 0), None, None, None, 0, ""),
        )),
        ("Voter", (
            ("voter_id", "VoterId", "int32", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
