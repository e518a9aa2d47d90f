"""Kafka's metrics of a raft replica: `raft-metrics` (KIP-595, KIP-853), and of the requests that it sends."""

from __future__ import annotations

from collections.abc import Callable

from kraftd.metrics.family import Bean, Family, Samples
from kraftd.metrics.readings import Readings
from kraftd.net.outbound import Traffic
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
    ("counter", "connection-creation-total", "connections opened", lambda t: t.opened),
    ("counter", "connection-close-total", "connections closed", lambda t: t.closed),
    ("gauge", "connection-count", "connections that are open", lambda t: t.opened - t.closed),
    (
        "counter",
        "network-io-total",
        "requests sent and responses received",
        lambda t: t.requests + t.responses,
    ),
    ("counter", "request-total", "requests sent", lambda t: t.requests),
    ("counter", "response-total", "responses received", lambda t: t.responses),
    ("counter", "outgoing-byte-total", "bytes sent", lambda t: t.out_bytes),
    ("counter", "incoming-byte-total", "bytes received", lambda t: t.in_bytes),
)


def _traffic(type_: str, to: str, traffic: Callable[[Readings], Traffic]) -> tuple[Family, ...]:
    bean = Bean("kafka.server", type_, named=False)
    made = []
    for kind, name, meaning, read in _TRAFFIC:
        add = bean.counter if kind == "counter" else bean.gauge
        made.append(add(name, f"{meaning}, {to}", lambda r, read=read: read(traffic(r))))  # type: ignore[misc]
    return tuple(made)


FAMILIES: tuple[Family, ...] = (
    _RAFT.family(
        "gauge", "current-state", "1 for the state that this replica is in, 0 for others", _state, ("state",)
    ),
    _raft("current-leader", "id of the leader of the epoch, -1 while it is unknown"),
    _raft("current-vote", "id that this replica voted for in the epoch, -1 without a vote"),
    _RAFT.family(
        "gauge",
        "current-vote-directory-id",
        "1, with the directory id that this replica voted for",
        lambda r: [((r.raft.current_vote_directory_id,), 1)],
        ("directory_id",),
    ),
    _raft("current-epoch", "epoch of the quorum"),
    _raft("high-watermark", "offset below which all is committed, -1 while it is unknown"),
    _raft("log-end-offset", "offset of the next record of the log"),
    _raft("log-end-epoch", "epoch of the last record of the log"),
    _raft("number-of-voters", "voters of the quorum"),
    _raft("number-of-observers", "observers that the leader knows of; on the leader only"),
    _raft("number-unknown-voter-connections", "voters whose address is unknown"),
    _raft("uncommitted-voter-change", "1 while a change of voters is not committed; on the leader only"),
    _raft("election-latency-avg", "milliseconds that elections took lately, on average; NaN without one"),
    _raft("election-latency-max", "milliseconds that the longest election took lately; NaN without one"),
    _raft("commit-latency-avg", "milliseconds from append to commit lately, on average; on a leader"),
    _raft("commit-latency-max", "milliseconds from append to commit lately, at most; on a leader"),
    _raft("append-records-rate", "records a second that were appended as leader, lately"),
    _raft("fetch-records-rate", "records a second that were fetched from the leader, lately"),
    _RAFT.gauge(
        "poll-idle-ratio-avg", "part of its time that the event loop was idle lately", lambda r: r.idle_ratio
    ),
    *_traffic("raft-channel-metrics", "to other controllers of the quorum", lambda r: r.quorum_traffic),
    *_traffic(
        "registration-metrics", "to the active controller, to register", lambda r: r.controller_traffic
    ),
)
