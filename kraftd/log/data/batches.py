"""What a log must know of a batch that its caller has verified."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class AppendedBatch(Protocol):
    """What an append needs to know of a batch; a BatchHeader has it too."""

    @property
    def base_offset(self) -> int: ...
    @property
    def last_offset(self) -> int: ...
    @property
    def max_timestamp_ms(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...


class VerifiedBatch(NamedTuple):
    """An AppendedBatch."""

    base_offset: int
    last_offset: int
    max_timestamp_ms: int
    leader_epoch: int
    size_bytes: int
