"""What a step costs, in calls of functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

STEPS = ("handle", "tick", "step", "flush")


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


def counted_steps(coordinator: Any) -> list[Counted]:
    """Count what each step of a coordinator calls from now on."""
    steps = {name: Counted(getattr(coordinator, name)) for name in STEPS}
    for name, counted in steps.items():
        setattr(coordinator, name, counted)
    return list(steps.values())
