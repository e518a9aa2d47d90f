"""LeaderChangeMessage: data, versions 0-1, flexible 0+.

Generated from schemas/LeaderChangeMessage.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class Voter(Message):
    voter_id: int = 0
    voter_directory_id: bytes = bytes(16)
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class LeaderChangeMessage(Message):
    version: int = 0
    leader_id: int = 0
    voters: list[Voter] = []
    granting_voters: list[Voter] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "LeaderChangeMessage", None, "data",
    (0, 1), (0, 32767),
    (
        ("LeaderChangeMessage", (
            ("version", "Version", "int16", 0, (0, 1), None, None, None, None, 0, 0),
            ("leader_id", "LeaderId", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("voters", "Voters", "Voter", 1, (0, 1), None, None, None, None, 0, ""),
            ("granting_voters", "GrantingVoters", "Voter", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("Voter", (
            ("voter_id", "VoterId", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("voter_directory_id", "VoterDirectoryId", "uuid", 0, (1, 1), None, None, None, None, 0, ""),
        )),
    ),
)
