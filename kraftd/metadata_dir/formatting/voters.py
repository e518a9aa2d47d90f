"""The voters that a dynamic quorum is formatted with: `id@host:port:directory-id`, comma-separated
(KIP-853)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from itertools import pairwise

from kraftd.messages.voters_record import Endpoint, KRaftVersionFeature, Voter, VotersRecord
from kraftd.named_tuple import NamedTuple
from kraftd.types import Uuid, parse_uuid, uuid_text


class InitialVoter(NamedTuple):
    """One voter, at its controller listener."""

    id: int
    host: str
    port: int
    directory_id: Uuid

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.id}@{host}:{self.port}:{uuid_text(self.directory_id)}"


def parse_voters(text: str) -> list[InitialVoter]:
    """The voters in the text, by id. Raises ValueError that names a wrong or duplicate voter, and for no
    voters.
    """
    voters = sorted(_parse_voter(part.strip()) for part in text.strip().split(",") if part)
    if not voters:
        raise ValueError("no voter is named; write id@host:port:directory-id,…")
    for one, other in pairwise(voters):
        if one.id == other.id:
            raise ValueError(f"node id {one.id} is named more than once")
    return voters


def _parse_voter(text: str) -> InitialVoter:
    node, at, rest = text.partition("@")
    if rest.startswith("["):
        host, bracket, rest = rest[1:].partition("]")
        colon, at = rest[:1] == ":", at and bracket
        rest = rest[1:]
    else:
        host, colon_text, rest = rest.partition(":")
        colon = bool(colon_text)
    port_text, second_colon, directory = rest.partition(":")
    expected = f"{text!r}: id@host:port:directory-id is expected"
    if not (at and node and host and colon and second_colon):
        raise ValueError(expected)
    try:
        node_id, port = int(node), int(port_text)
    except ValueError:
        raise ValueError(f"{expected}; the id and the port are numbers") from None
    if not 0 <= node_id < 1 << 31:
        raise ValueError(f"{text!r}: a node id is a number from 0 to {(1 << 31) - 1}")
    if not 0 <= port <= 65535:
        raise ValueError(f"{text!r}: {port} is no port")
    try:
        return InitialVoter(node_id, host, port, parse_uuid(directory))
    except ValueError as error:
        raise ValueError(f"{text!r}: directory id {error}") from None


def voters_record(voters: Iterable[InitialVoter], listener: str) -> VotersRecord:
    """The voters' record, as format puts it into the first checkpoint, with listener names in upper case."""
    return VotersRecord(
        voters=[
            Voter(
                voter_id=voter.id,
                voter_directory_id=voter.directory_id,
                endpoints=[Endpoint(name=listener.upper(), host=_host_text(voter.host), port=voter.port)],
                kraft_version_feature=KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
            )
            for voter in sorted(voters)
        ]
    )


def _host_text(host: str) -> str:
    """A host as Java prints it: IPv6 addresses with all eight groups, the rest as it is."""
    try:
        groups = ipaddress.IPv6Address(host).exploded.split(":")
    except ValueError:
        return host
    return ":".join(f"{int(group, 16):x}" for group in groups)
