"""Valid names of topics: checked first for every name from outside."""

from __future__ import annotations

import re
from collections.abc import Callable

MAX_NAME_LENGTH = 249  # a partition's directory is the name, a dash and an index of up to five digits

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
_SHOWN_LENGTH = 300

# Returns whether the authorizer lets the sender see a topic of this name.
NameTest = Callable[[str], bool]


def any_name(name: str) -> bool:
    """The NameTest that passes every name."""
    return True


def topic_name_problem(name: str) -> str | None:
    """The fault of a topic's name, or None: valid are 1 to 249 of a-z A-Z 0-9 . _ - but not '.' and '..'."""
    if 0 < len(name) <= MAX_NAME_LENGTH and _LEGAL.fullmatch(name) and name not in (".", ".."):
        return None
    if not name:
        return "A topic's name cannot be empty."
    if len(name) > MAX_NAME_LENGTH:
        shown = name if len(name) <= _SHOWN_LENGTH else name[:_SHOWN_LENGTH] + "…"
        return f"Topic name {shown!r} has {len(name)} characters, the most is {MAX_NAME_LENGTH}."
    if name in (".", ".."):
        return f"A topic cannot be named '{name}'."
    return f"Topic name {name!r} has characters other than ASCII letters and digits, '.', '_' and '-'."


def may_collide(name: str) -> bool:
    """Return whether the name has a character that metric names fold: '.' and '_' are equal there."""
    return "." in name or "_" in name
