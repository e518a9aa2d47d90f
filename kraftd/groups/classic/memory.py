"""What the members of all groups may hold in memory."""

from __future__ import annotations

from msgspec import Struct


class MemberMemory(Struct):
    """A bound for all shards of a broker, which Apache Kafka does not have; about, in bytes."""

    max_bytes: int
    used_bytes: int = 0

    def has_room(self, count: int) -> bool:
        """Return whether members may hold so many bytes more."""
        return self.used_bytes + count <= self.max_bytes
