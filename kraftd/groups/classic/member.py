"""A member of a classic group."""

from __future__ import annotations

from kraftd.groups.call import Call
from kraftd.messages.describe_groups_response import DescribedGroupMember

Protocols = list[tuple[str, bytes]]  # name and the member's metadata for it, the member's choice first


class ClassicMember:
    """What a member said when it joined, what it is assigned, and the request in which it waits.

    is_new: its first JoinGroup is not answered yet, so it is watched although it waits.
    """

    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "member_id",
        "protocol_type",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocol_type: str,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.assignment = assignment
        self.awaiting_join: Call | None = None
        self.awaiting_sync: Call | None = None
        self.is_new = False

    def __repr__(self) -> str:
        waits = " joins" if self.awaiting_join else " syncs" if self.awaiting_sync else ""
        return f"<ClassicMember {self.member_id} {[name for name, _ in self.protocols]}{waits}>"

    def metadata(self, protocol: str | None) -> bytes | None:
        """What the member said for a protocol; None if it does not support it."""
        return next((metadata for name, metadata in self.protocols if name == protocol), None)

    def is_waiting(self) -> bool:
        """Return whether a request of the member waits here, which is as good as a heartbeat."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)

    def size_bytes(self) -> int:
        """About what the member holds in memory; an assignment is bounded by the size of a record."""
        return MEMBER_BYTES + sum(len(name) + len(metadata) for name, metadata in self.protocols)

    def described(self, protocol: str | None) -> DescribedGroupMember:
        """The member in DescribeGroups, with its metadata for a protocol if one is named."""
        return DescribedGroupMember(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            member_metadata=(self.metadata(protocol) or b"") if protocol is not None else b"",
            member_assignment=self.assignment,
        )


MEMBER_BYTES = 1024  # of a member without its metadata, with its deadline
