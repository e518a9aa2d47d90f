"""The differences of two JSON values as text."""

from __future__ import annotations

import difflib
import json
from typing import Any


def difference(kafka: Any, kraftd: Any) -> str:
    """A unified diff of two JSON values."""
    first, second = (json.dumps(value, indent=1, default=repr).splitlines() for value in (kafka, kraftd))
    return "\n".join(difflib.unified_diff(first, second, "kafka", "kraftd", lineterm=""))
