"""The source of the metrics at one moment: the packages' state, and the runtime's measurements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kraftd.broker_node.node import BrokerNode
from kraftd.controller_node.node import Node
from kraftd.histogram import Histogram
from kraftd.host.storage import Storage
from kraftd.metrics.state.sight import Sight
from kraftd.metrics.state.survey import Survey
from kraftd.net.listener import Connections
from kraftd.net.traffic import Traffic
from kraftd.raft.metrics import RaftMetrics

if TYPE_CHECKING:
    from kraftd.answers.node import AnsweringNode
    from kraftd.log_dirs.cleaner import LogCleaner
    from kraftd.log_dirs.full_directories import Room


@dataclass(frozen=True, kw_only=True)
class SnapshotReadings:
    """Snapshots made here, with times in nanoseconds and the latest one's size, and those of leaders."""

    made: Histogram
    made_bytes: int
    made_ms: int
    failures: int
    is_making: bool
    damaged_files: int
    downloads: int
    downloads_refused: int
    download_bytes: int


@dataclass(frozen=True, kw_only=True)
class Readings:
    """The readings of a running controller at one moment. Histograms are of nanoseconds; the cost does not
    grow with the image.

    steps: how long each held the loop. delays: how late timers ran. syncs: of the log. idle_ratio: the recent
    share of time in which the loop's thread was idle. disk_bytes: read and written by this process, as the
    system counts; None if it does not. disk_room: bytes of the log's disk, free for this process and in all.
    survey: the newest one of the partitions, on the active controller. events: returns the latest of the
    audit stream, oldest first. sight: the leader's description of the quorum, where another node has asked.
    status_urls: of the other controllers' pages.
    troubles: the peers' faults while there is no leader. refused: the nodes refused within the last minute.
    ahead: the replicas that have applied records which this quorum lost. went_back: voters that hold less
    than they had shown. duplicate_ids: ids under which several nodes run. addresses: advertised ones that
    do not lead to their nodes.
    logins: by listener, how many succeeded, failed and expired. certificates: by listener, the expiry of
    its own, in seconds since 1970. authorizations: how many were denied, and allowed if that is counted.
    clients: the node's side for ordinary clients; None without a listener for them.
    log_cleaner: of a broker in the process. full_directories: how long ago each of its log directories that
    has no room refused a write last, in ms. full_rooms: their room. truncations: of the log, how many, and of
    how many records; last_truncation has the fields of the last one's line in the log.
    """

    now_ms: int
    wall_ms: int
    node: Node
    storage: Storage
    raft: RaftMetrics
    steps: Histogram
    longest_step_ns: int
    delays: Histogram
    syncs: Histogram
    idle_ratio: float
    disk_full: bool
    stopping: bool
    connections: Connections
    quorum_traffic: Traffic
    controller_traffic: Traffic
    snapshots: SnapshotReadings
    snapshot_read: tuple[int, int] = (0, 0)
    disk_bytes: tuple[int, int] | None = None
    about: dict[str, str] = field(default_factory=dict)
    events: Callable[[], list[dict[str, Any]]] = list
    troubles: Sequence[str] = ()
    refused: Sequence[str] = ()
    ahead: Sequence[str] = ()
    went_back: Sequence[str] = ()
    duplicate_ids: Sequence[str] = ()
    addresses: Sequence[str] = ()
    logins: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    certificates: Mapping[str, float] = field(default_factory=dict)
    disk_room: tuple[int, int] | None = None
    sight: Sight | None = None
    status_urls: Mapping[int, str] = field(default_factory=dict)
    survey: Survey | None = None
    authorizations: tuple[int, int] = (0, 0)
    clients: AnsweringNode | None = None
    log_cleaner: LogCleaner | None = None
    full_directories: Mapping[str, int] = field(default_factory=dict)
    full_rooms: Mapping[str, Room] = field(default_factory=dict)
    truncations: tuple[int, int] = (0, 0)
    last_truncation: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        return f"<Readings of {self.node!r} at {self.now_ms} ms>"


def broker_of(readings: Readings) -> BrokerNode | None:
    """The broker of the process, if it is one."""
    return readings.clients if isinstance(readings.clients, BrokerNode) else None
