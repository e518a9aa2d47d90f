"""The base of effects: what a pure node or core asks its runner to do, in order."""

from __future__ import annotations

from msgspec import Struct


class Effect(Struct, frozen=True, gc=False):
    """The base of all effects."""
