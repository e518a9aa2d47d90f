"""Several nodes that run under one id, as the leader sees them: their fetches alternate.

Both fetch, each from its own directory, or from copies of one. A replaced disk is no duplicate: the old one
no longer fetches. The voters of a static quorum have no directory ids in the core, but their fetches do
(v17). Copies, and fetches before v17, are recognized by their connections.
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

MAX_SEEN = 10  # connections to remember of one id
MIN_RETURNS, MIN_RETURNS_MS = 4, 1_000  # how often, and for how long, connections alternate
LIVE_MS = 3_000  # a running replica fetches about twice a second
REMEDY = "give one of them an id of its own (node.id), and format a directory for it"


def duplicate_ids(views: Iterable[ReplicaView], now_ms: int) -> dict[int, str]:
    """By id, a line for each under which several directories fetch: the fault, and what to do."""
    live: dict[int, list[str]] = defaultdict(list)
    for one in views:
        fetches = one.last_fetch_ms is not None and now_ms - one.last_fetch_ms < LIVE_MS
        if fetches and one.key.id >= 0 and one.key.directory_id is not None:
            role = "the voter" if one.is_voter else "an observer"
            live[one.key.id].append(f"{uuid_text(one.key.directory_id)} ({role})")
    return {node_id: _line(node_id, found) for node_id, found in live.items() if len(found) > 1}


def _line(node_id: int, directories: list[str]) -> str:
    copies = ", copies of one" if len({one.split(" ")[0] for one in directories}) == 1 else ""
    return (
        f"node {node_id} runs more than once, from the directories {', '.join(directories)}{copies}; {REMEDY}"
    )


Seen = tuple[int, Uuid]  # a connection and the directory that fetches by it; ZERO_UUID before v17


class _Fetcher(Struct):
    """One id: when, in ms, and from which host each connection and directory fetched last.

    `returns` counts how often since `returned_ms` a connection fetched again after another one had.
    `alternated_ms` is when that, or the same of directories, showed two processes.
    """

    seen: dict[Seen, tuple[int, str]]
    last: Seen
    returns: int = 0
    returned_ms: int = 0
    changed_ms: int = 0  # another connection or directory than before fetched
    alternated_ms: int | None = None


class FetchingReplicas:
    """Notes the sources of fetches under each id. Logs ids whose directories or connections alternate, at
    once and then once a minute with a count.

    One process has one directory. It fetches from a leader by one connection. It opens another when the first
    is lost, or when it asks a bootstrap server for the leader. So connections that alternate for
    MIN_RETURNS_MS belong to two processes.
    """

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._repeats = Repeats()
        self._fetchers: dict[int, _Fetcher] = {}

    def note(self, call: Call, now_ms: int) -> None:
        """Note a Fetch that the leader answers without an error."""
        message: Any = call.message
        key = (call.connection_id, message.topics[0].partitions[0].replica_directory_id)
        node_id = message.replica_state.replica_id  # v15
        if node_id < 0:
            node_id = message.replica_id
            if node_id < 0:
                return
        one = self._fetchers.get(node_id)
        if one is not None and one.last == key:  # nearly always
            one.seen[key] = (now_ms, call.host)
            return
        if one is None:
            if len(self._fetchers) >= MAX_PEERS:
                del self._fetchers[next(iter(self._fetchers))]
            self._fetchers[node_id] = _Fetcher({key: (now_ms, call.host)}, key)
            return
        if now_ms - one.changed_ms >= LIVE_MS:
            one.returns = 0
        one.changed_ms = now_ms
        if _alternates(one, key, now_ms):
            one.alternated_ms = now_ms
        one.seen.pop(key, None)
        one.seen[key] = (now_ms, call.host)
        one.last = key
        if len(one.seen) > MAX_SEEN:
            del one.seen[next(iter(one.seen))]
        if one.alternated_ms == now_ms:
            self._log(call, node_id, one, now_ms)

    def is_late(self, call: Call, node_id: int) -> bool:
        """Return whether this id has fetched by a later connection than that of the call."""
        fetcher = self._fetchers.get(node_id)
        return fetcher is not None and any(seen[0] > call.connection_id for seen in fetcher.seen)

    def lines(self, now_ms: int) -> dict[int, str]:
        """By id, a line for each under which several processes fetched just now."""
        return {
            node_id: _line(node_id, live)
            for node_id, one in self._fetchers.items()
            if one.alternated_ms is not None
            and now_ms - one.alternated_ms < LIVE_MS
            and len(live := _live(one, now_ms)) > 1
        }

    def _log(self, call: Call, node_id: int, fetcher: _Fetcher, now_ms: int) -> None:
        count = self._repeats.due(node_id, call.arrived_ns)
        if count:
            self._outbox.log(
                "warning",
                "a node runs more than once",
                from_node=node_id,
                directories=_live(fetcher, now_ms),
                remedy=REMEDY,
                seen=count,
            )

    def __repr__(self) -> str:
        return f"<FetchingReplicas of {len(self._fetchers)} ids>"


def _alternates(fetcher: _Fetcher, key: Seen, now_ms: int) -> bool:
    """Return whether a fetch shows that two processes alternate; notes a connection's return."""
    connection_id, directory = key
    before = fetcher.seen.get(key)
    if before is not None and connection_id != fetcher.last[0] and now_ms - before[0] < LIVE_MS:
        fetcher.returns += 1
        if fetcher.returns == 1:
            fetcher.returned_ms = now_ms
        if fetcher.returns >= MIN_RETURNS and now_ms - fetcher.returned_ms >= MIN_RETURNS_MS:
            return True
    if directory in (ZERO_UUID, fetcher.last[1]) or fetcher.last[1] == ZERO_UUID:
        return False
    return any(seen[1] == directory and now_ms - at[0] < LIVE_MS for seen, at in fetcher.seen.items())


def _live(fetcher: _Fetcher, now_ms: int) -> list[str]:
    """The sources of current fetches: directory and host. A copied directory is listed once for each
    connection.
    """
    return [
        f"{_name(directory)} (at {host})"
        for (_, directory), (fetched_ms, host) in fetcher.seen.items()
        if now_ms - fetched_ms < LIVE_MS
    ]


def _name(directory: Uuid) -> str:
    return uuid_text(directory) if directory != ZERO_UUID else "unknown"
