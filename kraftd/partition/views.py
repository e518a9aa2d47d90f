"""What a partition reads of the metadata and of its log: structural types, so that neither is imported."""

from __future__ import annotations

from typing import Protocol

from kraftd.types import OffsetAndEpoch


class Registration(Protocol):
    """A partition as the metadata has it."""

    @property
    def replicas(self) -> tuple[int, ...]: ...
    @property
    def isr(self) -> tuple[int, ...]: ...
    @property
    def leader(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def partition_epoch(self) -> int: ...
    @property
    def leader_recovery_state(self) -> int: ...


class BrokerView(Protocol):
    """The registered brokers."""

    def alive_epoch(self, broker_id: int) -> int | None:
        """The broker epoch of a broker that is registered and not fenced, else None."""

    def is_shutting_down(self, broker_id: int) -> bool:
        """Return whether a broker is in controlled shutdown."""


class EpochView(Protocol):
    """The log's leader epochs, each with its first offset. The log keeps them in step with its records."""

    @property
    def entries(self) -> list[tuple[int, int]]: ...
    @property
    def latest(self) -> int | None: ...

    def end_offset_for(self, epoch: int, log_end: int) -> OffsetAndEpoch | None: ...
    def epoch_of(self, offset: int) -> int | None: ...
