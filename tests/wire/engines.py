"""The C engine as tests see it."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def c_engine() -> Any:
    """The module of the C engine, or None where it is not built."""
    try:
        return import_module("kraftd.wire._engine")
    except ImportError:
        return None
