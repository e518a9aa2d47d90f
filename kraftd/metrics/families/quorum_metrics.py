"""Kafka's metrics of a raft replica: `raft-metrics` (KIP-595, KIP-853), and of the requests that it sends."""

from __future__ import annotations

from collections.abc import Callable

from kraftd.metrics.families.family import Bean, Family, Samples
from kraftd.metrics.state.readings import Readings
from kraftd.net.traffic import Traffic
from kraftd.raft.metrics import RaftMetrics

STATES = (
    "leader",
    "prospective",
    "prospective-voted",
    "candidate",
    "unattached",
    "unattached-voted",
    "follower",
    "observer",
)

_RAFT = Bean("kafka.server", "raft-metrics", named=False)


def _state(readings: Readings) -> Samples:
    return [((state,), float(state == readings.raft.current_state)) for state in STATES]


def _raft(name: str, meaning: str) -> Family:
    """A number of the core by the same name; none if it does not apply."""
    field = name.replace("-", "_")
    assert field in RaftMetrics.__struct_fields__
    return _RAFT.gauge(name, meaning, lambda r: getattr(r.raft, field))


_TRAFFIC: tuple[tuple[str, str, str, Callable[[Traffic], int]], ...] = (
    ("counter", "connection-creation-total", "connections opened to", lambda t: t.opened),
    ("counter", "connection-close-total", "connections closed to", lambda t: t.closed),
    ("gauge", "connection-count", "open connections to", lambda t: t.opened - t.closed),
    (
        "counter",
        "network-io-total",
        "requests sent to, and responses received from,",
        lambda t: t.requests + t.responses,
    ),
    ("counter", "request-total", "requests sent to", lambda t: t.requests),
    ("counter", "response-total", "responses received from", lambda t: t.responses),
    ("counter", "outgoing-byte-total", "bytes sent to", lambda t: t.out_bytes),
    ("counter", "incoming-byte-total", "bytes received from", lambda t: t.in_bytes),
)


def _traffic(type_: str, peer: str, traffic: Callable[[Readings], Traffic]) -> tuple[Family, ...]:
    bean = Bean("kafka.server", type_, named=False)
    families = []
    for kind, name, meaning, read in _TRAFFIC:
        add = bean.counter if kind == "counter" else bean.gauge
        families.append(add(name, f"{meaning} {peer}", lambda r, read=read: read(traffic(r))))  # type: ignore[misc]
    return tuple(families)


FAMILIES: tuple[Family, ...] = (
    _RAFT.family(
        "gauge",
        "current-state",
        "1 for the current state of this replica, 0 for the others",
        _state,
        ("state",),
    ),
    _raft("current-leader", "id of the leader of the epoch, -1 while it is unknown"),
    _raft("current-vote", "id of the candidate that this replica voted for in the epoch, -1 without a vote"),
    _RAFT.family(
        "gauge",
        "current-vote-directory-id",
        "1; the label is the directory id of the candidate that this replica voted for",
        lambda r: [((r.raft.current_vote_directory_id,), 1)],
        ("directory_id",),
    ),
    _raft("current-epoch", "epoch of the quorum"),
    _raft("high-watermark", "offset below which all records are committed, -1 while it is unknown"),
    _raft("log-end-offset", "offset of the next record of the log"),
    _raft("log-end-epoch", "epoch of the last record of the log"),
    _raft("number-of-voters", "number of voters"),
    _raft("number-of-observers", "number of observers; on the leader only"),
    _raft("number-unknown-voter-connections", "voters whose address is unknown"),
    _raft(
        "uncommitted-voter-change",
        "1 while a change of the voters is not yet committed, else 0; on the leader only",
    ),
    _raft("election-latency-avg", "average duration of an election, in milliseconds; NaN without one"),
    _raft("election-latency-max", "duration of the longest election, in milliseconds; NaN without one"),
    _raft("commit-latency-avg", "average milliseconds from append to commit; on the leader only"),
    _raft("commit-latency-max", "most milliseconds from append to commit; on the leader only"),
    _raft("append-records-rate", "records per second that this node appended as leader"),
    _raft("fetch-records-rate", "records per second that this node fetched from the leader"),
    _RAFT.gauge(
        "poll-idle-ratio-avg",
        "share of the last minute in which the event loop was idle, 0 to 1",
        lambda r: r.idle_ratio,
    ),
    *_traffic("raft-channel-metrics", "other controllers of the quorum", lambda r: r.quorum_traffic),
    *_traffic("registration-metrics", "the active controller, to register", lambda r: r.controller_traffic),
)
