"""What a step costs, in calls of functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


class Counted:
    """Calls a function, and counts what it calls, each time it is called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.calls: list[int] = []

    def __call__(self, *arguments: Any) -> Any:
        self.calls.append(0)
        sys.setprofile(self._count)
        try:
            return self.function(*arguments)
        finally:
            sys.setprofile(None)

    def _count(self, _frame: object, event: str, _: object) -> None:
        self.calls[-1] += event in ("call", "c_call")
