"""A connection is not read for a while: its client has used up a quota (KIP-219)."""

from __future__ import annotations

from collections.abc import Callable

from kraftd.host.ports import Timer
from kraftd.requests.effects import MuteConnection


def mute_connection(timer: Timer, mute: Callable[[int, bool], None], effect: MuteConnection) -> None:
    """Mute the connection, and let it be read again in time; `mute` does either."""
    mute(effect.connection_id, True)
    timer.call_at(timer.now_ms() + effect.for_ms, mute, effect.connection_id, False)
