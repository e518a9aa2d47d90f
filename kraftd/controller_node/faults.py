"""Faults that a node must not survive: its own state is half changed, and no answer could make that good."""

from __future__ import annotations

from kraftd.controller.activation import ActivationError
from kraftd.raft.replica import ConsensusBroken
from kraftd.raft.transitions import IllegalTransition


class HalfChanged(RuntimeError):
    """The log, the image or what waits for them was changed in part when a fault came."""


FATAL = (HalfChanged, ConsensusBroken, IllegalTransition, ActivationError)
