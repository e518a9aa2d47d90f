"""What the broker of the process hosts: directories, fetchers, the replicas and the groups that lag most.

Found in slices, as a broker may host a hundred thousand partitions.
"""

from __future__ import annotations

from collections.abc import Generator
from heapq import nlargest

from msgspec import Struct

from kraftd.broker_node.fetching.fetcher import Fetcher
from kraftd.broker_node.fetching.followed import Followed, State
from kraftd.broker_node.node import BrokerNode
from kraftd.metrics.state.group_survey import GroupSurvey, slices, survey_groups

MAX_FETCHERS = 50  # with rows; those that lag most
MAX_LAGGING = 20  # partitions with rows; those that lag most


class FetcherRow(Struct):
    """A connection to a leader. `lag` is that of its partition that is furthest behind, in records."""

    leader_id: int
    number: int
    partitions: int = 0
    failed: int = 0
    truncating: int = 0
    lag: int = 0


class LagRow(Struct, frozen=True):
    """A partition that is followed, and lacks records of its leader or is not fetched."""

    topic: str
    partition: int
    leader_id: int
    lag: int
    state: str


class DirectoryRow(Struct):
    """A log directory. `moving_in`: logs that are copied to it from another one."""

    path: str
    error: str | None
    is_cordoned: bool
    replicas: int = 0
    size_bytes: int = 0
    moving_in: int = 0


class HostedSurvey(Struct, frozen=True):
    """`under_replicated`: how many of those that it leads lack a replica in the ISR."""

    replicas: int
    leads: int
    under_replicated: int
    fetcher_count: int
    fetchers: list[FetcherRow]
    lagging_count: int
    lagging: list[LagRow]
    directories: list[DirectoryRow]
    groups: GroupSurvey


def survey_hosted(broker: BrokerNode) -> Generator[None, None, HostedSurvey]:
    """Go through all replicas, all that are followed, and all committed offsets; yields after each slice."""
    directories = {
        path: DirectoryRow(path, broker.directory_errors.get(path), path in broker.cordoning.paths)
        for path in broker.cordoning.ids
    }
    replicas = leads = under_replicated = 0
    for part in slices(broker.replicas):
        replicas += len(part)
        for hosted in part:
            if hosted.partition is not None and hosted.partition.is_leader:
                leads += 1
                under_replicated += hosted.is_under_replicated
            if hosted.log is not None and hosted.log.parent in directories:
                directories[hosted.log.parent].replicas += 1
                directories[hosted.log.parent].size_bytes += hosted.log.size_bytes
        yield
    for moves in slices(broker.log_moves):
        for _, moving in moves:
            if moving.future.parent in directories:
                directories[moving.future.parent].moving_in += 1
        yield
    fetchers: list[FetcherRow] = []
    furthest: list[LagRow] = []
    lagging_count = 0
    for fetcher in list(broker.fetchers):
        row = FetcherRow(fetcher.leader_id, fetcher.number)
        for followed in slices(fetcher.followed.values()):
            lagging = [_lag_row(fetcher, one) for one in followed if one.lag or one.state is State.FAILED]
            _count(row, followed)
            lagging_count += len(lagging)
            furthest = nlargest(MAX_LAGGING, furthest + lagging, _urgency)
            yield
        fetchers.append(row)
    groups = yield from survey_groups(broker)
    return HostedSurvey(
        replicas,
        leads,
        under_replicated,
        len(fetchers),
        sorted(fetchers, key=lambda one: (-one.failed, -one.lag, one.leader_id, one.number))[:MAX_FETCHERS],
        lagging_count,
        furthest,
        list(directories.values()),
        groups,
    )


def _count(row: FetcherRow, followed: list[Followed]) -> None:
    row.partitions += len(followed)
    for one in followed:
        row.failed += one.state is State.FAILED
        row.truncating += one.state is State.TRUNCATING
        row.lag = max(row.lag, one.lag)


def _lag_row(fetcher: Fetcher, one: Followed) -> LagRow:
    return LagRow(one.hosted.topic, one.hosted.index, fetcher.leader_id, one.lag, one.state.value)


def _urgency(row: LagRow) -> tuple[bool, int]:
    """Those that are not fetched come first."""
    return row.state == State.FAILED.value, row.lag
