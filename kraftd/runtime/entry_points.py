"""What users add to kraftd in Python: found by its entry point, made with the file's properties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class EntryPointError(Exception):
    """An entry point cannot be loaded; the text names the key, the value and what to do."""


def load_entry_point(key: str, name: str, group: str, properties: Mapping[str, str]) -> Any:
    """What the entry point of a name in a group makes of the properties. Raises EntryPointError."""
    from importlib.metadata import entry_points

    what = group.removeprefix("kraftd.")
    known = {entry.name: entry for entry in entry_points(group=group)}
    if name not in known:
        there_are = f"there are {', '.join(sorted(known))}" if known else "there is none"
        raise EntryPointError(
            f"{key}={name}: no {what} of that name is installed; kraftd runs no Java classes. Install a "
            f"Python package with an entry point {name!r} in the group {group} ({there_are}), or remove "
            "the key"
        )
    try:
        return known[name].load()(dict(properties))
    except Exception as error:
        raise EntryPointError(f"{key}={name}: the {what} cannot be loaded: {error!r}") from error
