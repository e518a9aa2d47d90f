"""Faults that must end a node: its state is half changed, and no answer could repair that."""

from __future__ import annotations

from kraftd.controller.activation import ActivationError
from kraftd.raft.replica import ConsensusBroken
from kraftd.raft.transitions import IllegalTransition


class HalfChanged(RuntimeError):
    """A fault interrupted a change of the log, the image or the requests that wait for them."""


FATAL = (HalfChanged, ConsensusBroken, IllegalTransition, ActivationError)
