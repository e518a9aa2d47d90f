"""Nodes that run under one id, as the leader sees them: the id was given twice, and their fetches alternate.

Both fetch, each from its own directory. A replaced disk is no twin: the old one no longer fetches. The voters
of a static quorum have no directory ids in the core, but their fetches do (v17).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from kraftd.raft.replica_views import ReplicaView
from kraftd.requests.call import Call
from kraftd.requests.outbox import Outbox
from kraftd.requests.repeats import MAX_PEERS, Repeats
from kraftd.types import ZERO_UUID, Uuid, uuid_text

MAX_DIRECTORIES = 10  # to remember of one id
LIVE_MS = 3_000  # a running replica fetches about twice a second
REMEDY = "give one of them an id of its own (node.id), and format its directory"


def twins(views: Iterable[ReplicaView], now_ms: int) -> dict[int, str]:
    """By id, a line for each under which several directories fetch: the fault, and what to do."""
    live: dict[int, list[str]] = defaultdict(list)
    for one in views:
        fetches = one.last_fetch_ms is not None and now_ms - one.last_fetch_ms < LIVE_MS
        if fetches and one.key.id >= 0 and one.key.directory_id is not None:
            role = "the voter" if one.is_voter else "an observer"
            live[one.key.id].append(f"{uuid_text(one.key.directory_id)} ({role})")
    return {node_id: _line(node_id, found) for node_id, found in live.items() if len(found) > 1}


def _line(node_id: int, directories: list[str]) -> str:
    return f"node {node_id} runs more than once, from the directories {', '.join(directories)}; {REMEDY}"


class _Fetcher(Struct):
    """One id: when, in ms, and from which host each of its directories fetched last.

    alternated_ms is when a directory fetched again after another one had: one process has one directory.
    """

    directories: dict[Uuid, tuple[int, str]]
    last: Uuid
    alternated_ms: int | None = None


class FetchingDirectories:
    """Notes the directories that fetch under each id; logs those that alternate, at once and then once a
    minute with a count.
    """

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._repeats = Repeats()
        self._fetchers: dict[int, _Fetcher] = {}

    def note(self, call: Call, now_ms: int) -> None:
        """Note a Fetch that the leader answers without an error."""
        message: Any = call.message
        directory = message.topics[0].partitions[0].replica_directory_id
        node_id = message.replica_state.replica_id  # v15; directories are of v17
        if directory == ZERO_UUID or node_id < 0:
            return
        one = self._fetchers.get(node_id)
        if one is not None and one.last == directory:  # as nearly always
            one.directories[directory] = (now_ms, call.host)
            return
        if one is None:
            if len(self._fetchers) >= MAX_PEERS:
                del self._fetchers[next(iter(self._fetchers))]
            one = self._fetchers[node_id] = _Fetcher({}, directory)
        before = one.directories.pop(directory, None)
        one.directories[directory] = (now_ms, call.host)
        one.last = directory
        if len(one.directories) > MAX_DIRECTORIES:
            del one.directories[next(iter(one.directories))]
        if before is not None and now_ms - before[0] < LIVE_MS:
            one.alternated_ms = now_ms
            self._log(call, node_id, one, now_ms)

    def lines(self, now_ms: int) -> dict[int, str]:
        """By id, a line for each whose directories alternated just now."""
        return {
            node_id: _line(node_id, live)
            for node_id, one in self._fetchers.items()
            if one.alternated_ms is not None
            and now_ms - one.alternated_ms < LIVE_MS
            and len(live := self._live(one, now_ms)) > 1
        }

    def _live(self, one: _Fetcher, now_ms: int) -> list[str]:
        return [
            f"{uuid_text(directory)} (at {host})"
            for directory, (fetched_ms, host) in one.directories.items()
            if now_ms - fetched_ms < LIVE_MS
        ]

    def _log(self, call: Call, node_id: int, one: _Fetcher, now_ms: int) -> None:
        count = self._repeats.due(node_id, call.arrived_ns)
        if count:
            self._outbox.say(
                "warning",
                "a node runs more than once",
                from_node=node_id,
                directories=self._live(one, now_ms),
                remedy=REMEDY,
                seen=count,
            )

    def __repr__(self) -> str:
        return f"<FetchingDirectories of {len(self._fetchers)} ids>"
