"""The C engine for tests."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def c_engine() -> Any:
    """The module of the C engine, or None if it is not built."""
    try:
        return import_module("kraftd.wire._engine")
    except ImportError:
        return None
