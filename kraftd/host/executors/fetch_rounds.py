"""A follower's round without a step of its node: the records of an answer are written, and the next fetch
follows (`kraftd.broker_node.fetching.steady_rounds`).
"""

from __future__ import annotations

from typing import Protocol

from kraftd.broker_node.events import AppendsEnded, WriteEnded
from kraftd.broker_node.fetching.steady_rounds import SteadyRounds, SteadyRow
from kraftd.broker_node.node import BrokerNode
from kraftd.ground.event import Event
from kraftd.host.broker_logs.broker_logs import BrokerLogs
from kraftd.host.ports import Timer
from kraftd.messages.fetch_request import FetchRequest


class Executor(Protocol):
    """The executor of the node."""

    node: BrokerNode
    timer: Timer
    logs: BrokerLogs

    def step(self, event: Event) -> None: ...


def run_round(
    executor: Executor, request_id: int, rounds: SteadyRounds, rows: list[SteadyRow]
) -> FetchRequest | bool:
    """Write what was judged; returns the next fetch, or True if records could not be written: then the node
    goes on by a step.
    """
    logs, node = executor.logs, executor.node
    now_ms = executor.timer.now_ms()
    node.keep_time(now_ms)
    rounds.begin(rows, now_ms)
    wall_ms, write, opened = node.wall_ms, logs.appends.write_at_once, logs.directories.logs
    has_failed = False
    for row in rows:
        if row.append is not None:
            hosted = row.followed.hosted
            key = hosted.topic, hosted.index
            row.error = write(key, opened.get(key), row.append, wall_ms)
            has_failed |= row.error is not None
    if has_failed:
        rounds.fail(rows)
        node.own_requests.forget(request_id)
        executor.step(AppendsEnded([_outcome(row) for row in rows if row.append is not None]))
        return True
    following = rounds.end(rows, now_ms)
    logs.flush_due()
    return following


def _outcome(row: SteadyRow) -> WriteEnded:
    assert row.append is not None
    hosted = row.followed.hosted
    return WriteEnded(hosted.topic, hosted.index, (row.append,), row.error)
