"""Small rules: how work is divided among callbacks, texts are truncated, and periodic tasks become due."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kraftd.controller.activation import write_no_op
from kraftd.controller.brokers.states import fence_stale_broker, leave_partitions
from kraftd.controller.context import TokenSettings
from kraftd.controller.decision import Decision
from kraftd.controller.partitions.election import balance_leaders, elect_unclean_leaders
from kraftd.controller.tokens.change import sweep_expired_tokens
from kraftd.controller_node import core_answers
from kraftd.controller_node.core_answers import _text_of
from kraftd.controller_node.deciding import long_decisions
from kraftd.controller_node.deciding.long_decisions import first_slice, next_records, take_time_off
from kraftd.controller_node.deciding.periodic import (
    AFTER_ERROR_MS,
    FENCE,
    FULL_DISK_MS,
    LONG_DECISION_MS,
    Periodic,
)
from kraftd.ground.ticks import next_tick_ms
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.create_topics_request import CreateTopicsRequest
from kraftd.messages.describe_configs_request import DescribeConfigsRequest
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.replica.fatal_faults import HalfChanged
from kraftd.requests.call import Call
from kraftd.requests.effects import LogLine
from kraftd.requests.outbox import Outbox
from kraftd.wire.api import ApiKey
from kraftd.wire.record_frame import VersionedRecord
from tests.controller.cluster import Cluster


@pytest.mark.parametrize(("waited_ms", "left_ms"), [(0, 1_000), (1, 999), (1_500, -500)])
def test_the_time_that_a_call_has_waited_reduces_its_timeout(waited_ms: int, left_ms: int) -> None:
    call = Call(1, 0, "C", "h", ApiKey.CREATE_TOPICS, 7, 1, "c", CreateTopicsRequest(timeout_ms=1_000))
    take_time_off(call, waited_ms)
    assert call.message.timeout_ms == left_ms
    call.message = DescribeConfigsRequest()  # has no timeout
    take_time_off(call, waited_ms)


def test_a_short_decision_is_made_at_once_a_long_one_in_several_callbacks() -> None:
    def deciding(pauses: int) -> Any:
        for _ in range(pauses):
            yield
        return decision

    decision = Decision("answer")
    assert first_slice(deciding(0)) is decision
    rest = deciding(2)
    assert first_slice(rest) is rest
    next(rest)  # the second callback; the third ends it
    with pytest.raises(StopIteration) as end:
        next(rest)
    assert end.value.value is decision


@pytest.mark.parametrize(
    ("record", "cost"),
    [
        (PartitionRecord(), 4),
        (PartitionChangeRecord(), 5),
        (ConfigRecord(), 4),
        (RemoveTopicRecord(b"?" * 16), 10),  # unknown
        (None, 15),  # removes a topic of five partitions
    ],
)
@pytest.mark.parametrize("budget", [15, 30, 61])
def test_a_callback_applies_records_within_its_budget_and_at_least_one(
    monkeypatch: pytest.MonkeyPatch, record: Any, cost: int, budget: int
) -> None:
    monkeypatch.setattr(long_decisions, "APPLY_BUDGET_US", budget)
    cluster = Cluster().broker(1)
    topic = cluster.topic("a", *[(1,)] * 5)
    records = [VersionedRecord(record or RemoveTopicRecord(topic.id), 0) for _ in range(100)]
    some = next_records(cluster.image, records)
    assert len(some) == -(-budget // cost)
    assert len(some) + len(records) == 100


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ([], ""),
        (["abcd", "efgh"], "abcd\nefgh"),
        (["abcd", "efghi"], "abcd\n… and 1 more"),
        (["a", "b", "c" * 9, "d"], "a\nb\n… and 2 more"),
        (["a" * 9, "b" * 10], "a" * 9 + "\n… and 1 more"),
        (["a" * 10, "b"], "… and 2 more"),
    ],
)
def test_a_text_that_is_too_long_loses_its_last_lines(
    monkeypatch: pytest.MonkeyPatch, lines: list[str], text: str
) -> None:
    monkeypatch.setattr(core_answers, "MAX_TEXT_LENGTH", 10)
    assert _text_of(iter(lines)) == text


class Clock:
    """Periodic work with tasks whose results the test sets."""

    def __init__(self) -> None:
        cluster = Cluster()
        self.context = cluster.ctx
        self.context.now_ms = 10_000
        self.decision_rights: Any = SimpleNamespace(disk_full=False)
        self.long: Any = SimpleNamespace(is_under_way=False)
        self.done: list[str] = []
        self.answers: dict[str, Any] = {}
        self.session_ends_ms: int | None = None
        self.context.heartbeats.next_deadline_ms = lambda: self.session_ends_ms  # type: ignore[method-assign]
        decisions: Any = SimpleNamespace(long=self.long, decide_alone=lambda task, gather: task(self.context))
        self.outbox = Outbox()
        self.periodic = Periodic(self.context, self.decision_rights, decisions, self.outbox)
        self.periodic._tasks = {
            name: (period_ms, self._task(name))
            for name, period_ms in ((FENCE, 50), ("often", 100), ("rarely", 1_000), ("asked for", 0))
        }

    def _task(self, name: str) -> Any:
        def task(_: Any) -> Decision[Any]:
            self.done.append(name)
            answer = self.answers.get(name)
            if isinstance(answer, Exception):
                raise answer
            return Decision(answer)

        return task

    def run(self, later_ms: int = 0) -> list[str]:
        """Let time pass; return the tasks that run."""
        self.context.now_ms += later_ms
        self.done = []
        self.periodic.run_due()
        return self.done

    def due_ms(self) -> int | None:
        """Milliseconds until the next task is due; None if no task is."""
        deadline_ms = self.periodic.deadline_ms
        return None if deadline_ms is None else deadline_ms - self.context.now_ms


def test_each_task_is_due_a_period_after_its_last_run() -> None:
    clock = Clock()
    assert clock.due_ms() is None and clock.run(60_000) == []
    clock.periodic.activate()
    assert clock.due_ms() == 50
    assert clock.run(49) == []
    assert clock.run(1) == [FENCE]
    assert clock.due_ms() == 50
    assert clock.run(50) == [FENCE, "often"]
    assert clock.run(900) == [FENCE, "often", "rarely"]
    clock.periodic.deactivate()
    assert clock.due_ms() is None and clock.run(60_000) == []


def test_a_task_with_more_to_do_is_due_again_at_once() -> None:
    clock = Clock()
    clock.periodic.activate()
    clock.answers["often"] = True
    assert clock.run(100) == [FENCE, "often"]
    assert clock.due_ms() == 0
    assert clock.run() == ["often"]
    clock.answers["often"] = None
    assert clock.run() == ["often"]
    assert clock.run() == [] and clock.due_ms() == 50


@pytest.mark.parametrize(("ends_in_ms", "due_ms"), [(None, 50), (20, 20), (9_000, 900), (0, 1), (-5, 1)])
def test_silent_brokers_are_checked_when_the_oldest_session_ends(ends_in_ms: int | None, due_ms: int) -> None:
    clock = Clock()
    clock.periodic._tasks.pop("often")
    clock.periodic.activate()
    clock.session_ends_ms = None if ends_in_ms is None else clock.context.now_ms + 100 + ends_in_ms
    assert clock.run(100) == [FENCE]
    assert clock.due_ms() == due_ms  # 900: the rare task


def test_unfinished_fencing_continues_at_once() -> None:
    clock = Clock()
    clock.periodic.activate()
    clock.session_ends_ms = 1 << 40
    clock.answers[FENCE] = True
    assert clock.run(50) == [FENCE]
    assert clock.due_ms() == 0


def test_a_task_on_demand_runs_on_the_active_controller_until_it_is_done() -> None:
    clock = Clock()
    clock.periodic.hasten("asked for")
    assert clock.due_ms() is None
    clock.periodic.activate()
    clock.periodic.hasten("asked for")
    clock.answers["asked for"] = True
    assert clock.due_ms() == 0
    assert clock.run() == ["asked for"]
    clock.answers["asked for"] = None
    assert clock.run() == ["asked for"]
    assert clock.run() == [] and clock.due_ms() == 50


def test_a_failed_task_is_logged_and_retried_after_minutes() -> None:
    clock = Clock()
    clock.periodic.activate()
    error = clock.answers[FENCE] = ZeroDivisionError("planted")
    assert clock.run(100) == [FENCE, "often"]
    fields = {"task": FENCE, "error": repr(error), "exc_info": error}
    assert clock.outbox.take() == [LogLine("error", "a periodic task failed", fields)]
    assert clock.periodic.failures == 1
    clock.answers.clear()
    assert FENCE not in clock.run(AFTER_ERROR_MS - 1)
    assert FENCE in clock.run(1)


@pytest.mark.parametrize(
    ("disk_full", "under_way", "later_ms"),
    [(True, False, FULL_DISK_MS), (True, True, FULL_DISK_MS), (False, True, LONG_DECISION_MS)],
)
def test_tasks_wait_while_the_node_cannot_decide(disk_full: bool, under_way: bool, later_ms: int) -> None:
    clock = Clock()
    clock.periodic.activate()
    clock.decision_rights.disk_full, clock.long.is_under_way = disk_full, under_way
    assert clock.run(100) == []
    assert clock.due_ms() == later_ms
    clock.decision_rights.disk_full = clock.long.is_under_way = False
    assert clock.run(later_ms)[:2] == [FENCE, "often"]


@pytest.mark.parametrize(
    ("settings", "lacking"),
    [
        ({}, {"sweep expired delegation tokens"}),
        ({"auto_leader_rebalance_enable": False}, {"balance leaders", "sweep expired delegation tokens"}),
        ({"metadata_max_idle_interval_ms": 0}, {"write a no-op", "sweep expired delegation tokens"}),
    ],
)
def test_a_task_that_the_settings_switch_off_is_never_due(settings: Any, lacking: set[str]) -> None:
    cluster = Cluster(**settings)
    nothing: Any = None
    periodic = Periodic(cluster.ctx, nothing, nothing, Outbox())
    all_tasks = {
        FENCE: (max(1, cluster.settings.broker_session_timeout_ms // 8), fence_stale_broker),
        "write a no-op": (cluster.settings.metadata_max_idle_interval_ms, write_no_op),
        "balance leaders": (cluster.settings.leader_imbalance_check_interval_ms, balance_leaders),
        "elect uncleanly": (cluster.settings.unclean_leader_election_interval_ms, elect_unclean_leaders),
    }
    periodic.activate()
    due = {
        name: (due_ms - cluster.ctx.now_ms, periodic._tasks[name][1])
        for name, due_ms in periodic._due.items()
    }
    now_ms = cluster.ctx.now_ms
    assert due == {
        name: (next_tick_ms(now_ms, period_ms) - now_ms, task)
        for name, (period_ms, task) in all_tasks.items()
        if name not in lacking
    }
    assert repr(periodic) == f"<Periodic {len(due)} tasks, next at {periodic.deadline_ms} ms>"


def test_sessions_of_an_odd_length_are_looked_after_at_whole_milliseconds() -> None:
    cluster = Cluster(broker_session_timeout_ms=9_001)
    nothing: Any = None
    periodic = Periodic(cluster.ctx, nothing, nothing, Outbox())
    assert periodic._tasks[FENCE] == (1_125, fence_stale_broker)
    assert isinstance(periodic._tasks[FENCE][0], int)
    shortest = Periodic(Cluster(broker_session_timeout_ms=5).ctx, nothing, nothing, Outbox())
    assert shortest._tasks[FENCE][0] == 1


def test_expired_tokens_are_swept_if_there_can_be_any() -> None:
    cluster = Cluster(tokens=TokenSettings(secret_key="s", expiry_check_interval_ms=77))
    nothing: Any = None
    tasks = Periodic(cluster.ctx, nothing, nothing, Outbox())._tasks
    assert tasks["sweep expired delegation tokens"] == (77, sweep_expired_tokens)
    assert tasks["leave partitions"] == (0, leave_partitions)


def test_each_task_that_fails_is_counted() -> None:
    clock = Clock()
    clock.periodic.activate()
    clock.answers = {FENCE: ZeroDivisionError("planted"), "often": ZeroDivisionError("planted")}
    assert clock.run(100) == [FENCE, "often"]
    assert clock.periodic.failures == 2


def test_a_task_that_leaves_the_node_half_changed_ends_the_process() -> None:
    clock = Clock()
    clock.periodic.activate()
    clock.answers[FENCE] = HalfChanged("planted")
    with pytest.raises(HalfChanged):
        clock.run(100)
    assert clock.outbox.take() == [] and clock.periodic.failures == 0
