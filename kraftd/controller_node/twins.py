"""Nodes that run under one id, as the leader sees them: the id was given twice, and their fetches alternate.

Both fetch, each from its own directory. A replaced disk is no twin: the old one no longer fetches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from kraftd.raft.replica_views import ReplicaView
from kraftd.types import uuid_text

LIVE_MS = 3_000  # a running replica fetches about twice a second
REMEDY = "give one of them an id of its own (node.id), and format its directory"


def twins(views: Iterable[ReplicaView], now_ms: int) -> list[str]:
    """One line for each id under which several directories fetch: the fault, and what to do."""
    live: dict[int, list[str]] = defaultdict(list)
    for one in views:
        fetches = one.last_fetch_ms is not None and now_ms - one.last_fetch_ms < LIVE_MS
        if fetches and one.key.id >= 0 and one.key.directory_id is not None:
            role = "the voter" if one.is_voter else "an observer"
            live[one.key.id].append(f"{uuid_text(one.key.directory_id)} ({role})")
    return [
        f"node {node_id} runs more than once, from the directories {', '.join(found)}; {REMEDY}"
        for node_id, found in sorted(live.items())
        if len(found) > 1
    ]
