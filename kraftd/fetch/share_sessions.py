"""Sessions of share fetches: which partitions a member of a share group reads from this broker (KIP-932).

A session belongs to one member and to the connection that began it, and ends with either.
"""

from __future__ import annotations

from collections.abc import Iterable

from kraftd.fetch.session_cache import FINAL_EPOCH, INITIAL_EPOCH, next_epoch
from kraftd.ground.refusal import Refusal
from kraftd.named_tuple import NamedTuple
from kraftd.types import Uuid
from kraftd.wire.error_code import ErrorCode

TopicIdPartition = tuple[Uuid, int]


class Member(NamedTuple):
    """A member of a share group."""

    group_id: str
    member_id: str


class ShareSession:
    """One session. `epoch` is what its next request must carry.

    partitions: in the order in which they are read, each with whether the next answer must have it, records
    or not: one that was added since, or had an error. names: of their topics, those that are gone included.
    """

    __slots__ = ("connection_id", "epoch", "member", "names", "partitions")

    def __init__(self, member: Member, connection_id: int, partitions: Iterable[TopicIdPartition]) -> None:
        self.member = member
        self.connection_id = connection_id
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.partitions = dict.fromkeys(partitions, False)  # the first answer has them all
        self.names: dict[Uuid, str] = {}

    def __repr__(self) -> str:
        return f"<ShareSession of {self.member}, epoch {self.epoch}, {len(self.partitions)} partitions>"

    def update(self, asked: Iterable[TopicIdPartition], forgotten: Iterable[TopicIdPartition]) -> None:
        """Add partitions, and remove others."""
        for one in asked:
            self.partitions.setdefault(one, True)
        for one in forgotten:
            self.partitions.pop(one, None)

    def must_answer(self, one: TopicIdPartition, *, has_records: bool, has_error: bool) -> bool:
        """Return whether an answer has a partition."""
        return has_records or has_error or self.partitions.get(one, False)

    def answered(self, one: TopicIdPartition, *, has_records: bool, has_error: bool) -> None:
        """Note that an answer had a partition; what had records is read last the next time."""
        if one in self.partitions:
            if has_records:
                del self.partitions[one]
            self.partitions[one] = has_error


class EndedSession(NamedTuple):
    """What a session has read; is_group_empty: no member of its group has a session here any more."""

    member: Member
    partitions: tuple[TopicIdPartition, ...]
    is_group_empty: bool


class ShareSessions:
    """All sessions of a broker; `limit` is group.share.max.share.sessions.

    evicted_count: sessions that ended with their connections.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.evicted_count = 0
        self._sessions: dict[Member, ShareSession] = {}
        self._by_connection: dict[int, ShareSession] = {}
        self._group_sizes: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<ShareSessions {len(self._sessions)} of {self.limit}>"

    def __len__(self) -> int:
        return len(self._sessions)

    def partition_count(self) -> int:
        """How many partitions all sessions have."""
        return sum(len(one.partitions) for one in list(self._sessions.values()))

    def fetch(
        self,
        member: Member,
        epoch: int,
        connection_id: int,
        asked: Iterable[TopicIdPartition],
        forgotten: Iterable[TopicIdPartition] = (),
        *,
        acknowledges: bool = False,
    ) -> ShareSession:
        """The session of a fetch: a new one, or the one that goes on, or with the final epoch the one to end.

        Raises Refusal: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_LIMIT_REACHED,
        INVALID_REQUEST for acknowledgements before anything is delivered, or UNKNOWN_SERVER_ERROR if the
        first fetch names a partition twice.
        """
        if epoch == INITIAL_EPOCH:
            if acknowledges:
                raise Refusal(ErrorCode.INVALID_REQUEST)
            self.end(member)
            places = list(asked)
            if len(set(places)) < len(places):
                raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)  # as in Kafka
            if len(self._sessions) >= self.limit:
                raise Refusal(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
            session = self._sessions[member] = ShareSession(member, connection_id, places)
            self._by_connection[connection_id] = session
            self._group_sizes[member.group_id] = self._group_sizes.get(member.group_id, 0) + 1
            return session
        session = self.go_on(member, epoch)
        if epoch != FINAL_EPOCH:
            session.update(asked, forgotten)
        return session

    def acknowledge(self, member: Member, epoch: int) -> ShareSession:
        """The session of acknowledgements without a fetch. Raises Refusal as `fetch`."""
        if epoch == INITIAL_EPOCH:
            raise Refusal(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        return self.go_on(member, epoch)

    def go_on(self, member: Member, epoch: int) -> ShareSession:
        """A session's next request has come."""
        session = self._sessions.get(member)
        if session is None:
            raise Refusal(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if epoch != FINAL_EPOCH:
            if session.epoch != epoch:
                raise Refusal(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
            session.epoch = next_epoch(epoch)
        return session

    def end(self, member: Member) -> EndedSession | None:
        """End the session of a member; None without one."""
        session = self._sessions.pop(member, None)
        if session is None:
            return None
        left = self._group_sizes[member.group_id] - 1
        if left:
            self._group_sizes[member.group_id] = left
        else:
            del self._group_sizes[member.group_id]
        return EndedSession(member, tuple(session.partitions), not left)

    def connection_closed(self, connection_id: int) -> EndedSession | None:
        """End the session that a connection began last; None if it began none.

        One that has ended before ends without partitions: only now its group may be empty.
        """
        session = self._by_connection.pop(connection_id, None)
        if session is None:
            return None
        if self._sessions.get(session.member) is session:
            self.evicted_count += 1
            return self.end(session.member)
        return EndedSession(session.member, (), session.member.group_id not in self._group_sizes)
