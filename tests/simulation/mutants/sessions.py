"""Defects of the client side: of fetch sessions, and of the metadata log as clients read it."""

from __future__ import annotations

from typing import Any

from kraftd.answers.log_source import LogSource
from kraftd.fetch import sessions
from kraftd.fetch.session_cache import SessionCache
from kraftd.fetch.slots import Slot
from kraftd.fetch.subscription import Subscription
from kraftd.host.cluster_view import NodeView
from kraftd.messages.fetch_response import EpochEndOffset
from kraftd.simulation.schedule import MS
from tests.simulation.mutants.planted import Planted


def forget_what_changed(patch: Any) -> None:
    """S20: a fetch ignores a partition that has changed since the fetch before."""
    changed = Subscription.partition_changed

    def forgetful(self: Subscription, slot: Slot) -> int | None:
        progress_bytes = changed(self, slot)
        if progress_bytes is None:
            del self.dirty[slot]
        return progress_bytes

    patch.setattr(Subscription, "partition_changed", forgetful)


def keep_the_session_epoch(patch: Any) -> None:
    """S20: the epoch of a session stays the same."""
    patch.setattr(sessions, "next_epoch", lambda epoch: max(epoch, 1))


def show_the_log_end(patch: Any) -> None:
    """S20: a node shows the end of its log as the high watermark."""
    patch.setattr(NodeView, "high_watermark", property(lambda self: self.log_end_offset))


def take_a_lag_for_a_truncation(patch: Any) -> None:
    """S20: a lagging node answers a reader that is ahead of it with a diverging epoch."""

    def diverging(self: LogSource, slot: Slot) -> EpochEndOffset | None:
        end = self._view.end_offset_for_epoch(slot.last_fetched_epoch)
        lags = slot.last_fetched_epoch >= 0 and end.offset < slot.fetch_offset
        return EpochEndOffset(end.epoch, end.offset) if lags else None

    patch.setattr(LogSource, "_diverging", diverging)


def take_a_lag_for_the_end(patch: Any) -> None:
    """S20: a lagging node tells a reader that is ahead of it that its offset is out of range."""
    error = LogSource._error

    def hasty(self: LogSource, slot: Slot, reader: Any) -> int:
        self.leaders_log_end = self._view.log_end_offset
        return error(self, slot, reader)

    patch.setattr(LogSource, "_error", hasty)


def never_wake(patch: Any) -> None:
    """S20: a session always counts as caught up with the log."""
    look = LogSource.availability

    def at_the_end(self: LogSource, slot: Slot, reader: Any) -> Any:
        return look(self, slot, reader)._replace(available_bytes=0)

    patch.setattr(LogSource, "availability", at_the_end)


def mix_sessions_up(patch: Any) -> None:
    """S20: the session cache returns some session for any id."""
    patch.setattr(SessionCache, "get", lambda self, _: next(iter(self), None))


READING: dict[str, Any] = {
    "voter_count": 3,
    "act_gap_us": 20 * MS,
    "reader_count": 3,
    "reader_gap_us": 100 * MS,
    "reader_loss": 0.0,
    "session_slots": 1_000,
}

ALL: dict[Any, Planted] = {
    forget_what_changed: Planted("S20", **READING),
    keep_the_session_epoch: Planted("S20", **READING),
    show_the_log_end: Planted("S20", **READING),
    take_a_lag_for_a_truncation: Planted("S20", **READING),
    take_a_lag_for_the_end: Planted("S20", **READING),
    never_wake: Planted("S20", **READING),
    mix_sessions_up: Planted("S20", **READING),
}
