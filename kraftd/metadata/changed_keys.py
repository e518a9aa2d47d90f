"""Which records of a snapshot have changed in the image since, from its undo journal (KIP-630).

A record counts once, however often it was modified or deleted. One that is new since the snapshot counts only
when it is modified or deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Reversible
from typing import Any

from kraftd.metadata import journal as j


def changed_keys(entries: Reversible[j.Entry], not_in_snapshots: Collection[object]) -> set[Hashable]:
    """The keys of the journal's entries; `not_in_snapshots` are tables that no snapshot holds.

    A table of tables (configs by resource, quotas by entity) counts by its inner keys, each of which is a
    record.
    """
    left_out = {id(place) for place in not_in_snapshots}
    after: dict[tuple[int, Any], Any] = {}  # the value after each entry, walking backwards
    found: set[Hashable] = set()
    for _, kind, place, key, before in reversed(entries):
        if kind == j.FIELD:
            if key == "next_producer_id" and before >= 0:
                found.add(key)
            continue
        if id(place) in left_out:
            continue
        at = id(place), key
        if isinstance(before, dict):
            now = after.get(at, place.get(key, j.ABSENT))
            kept = now if isinstance(now, dict) else {}
            found.update((at, name) for name, value in before.items() if kept.get(name, j.ABSENT) != value)
        elif before is not None and before is not j.ABSENT:
            found.add(at)
        after[at] = before
    return found
