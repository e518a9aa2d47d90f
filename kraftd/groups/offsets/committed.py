"""An offset that a group has committed."""

from __future__ import annotations

from msgspec import Struct

from kraftd.messages.offset_commit_value import OffsetCommitValue


class Committed(Struct, frozen=True, gc=False):
    """An offset with what came with it.

    leader_epoch: of the last record that was consumed, -1 if unknown (KIP-232). expires_ms: when the offset
    expires, -1 if by `offsets.retention.minutes`. record_offset: that of its record.
    """

    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    expires_ms: int
    topic_id: bytes
    record_offset: int

    def is_expired(self, start_ms: int, now_ms: int, retention_ms: int) -> bool:
        """Return whether its time is over, which began at `start_ms` unless it has an expiry of its own."""
        return now_ms >= self.expires_ms if self.expires_ms != -1 else now_ms - start_ms >= retention_ms


def committed_of(value: OffsetCommitValue, record_offset: int) -> Committed:
    """The offset that a record holds."""
    return Committed(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
        value.topic_id,
        record_offset,
    )
