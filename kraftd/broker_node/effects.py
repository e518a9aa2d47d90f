"""Effects of a broker node, in addition to those of any node that answers from an image."""

from __future__ import annotations

from kraftd.ground.effect import Effect


class NotRegistered(Effect, frozen=True):
    """The broker could not register within its time: the process must end."""

    within_ms: int
