"""What an active controller does of itself, and when: a table of tasks, each with the time it is next due."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kraftd.controller.activation import write_no_op
from kraftd.controller.broker_states import fence_stale_broker, leave_partitions
from kraftd.controller.context import Context, ControllerSettings
from kraftd.controller.decision import Decision
from kraftd.controller.election import balance_leaders, elect_unclean_leaders

if TYPE_CHECKING:
    from kraftd.server.node import Node

FENCE = "fence stale brokers"
LEAVE = "leave partitions"
AFTER_ERROR_MS = 300_000
FULL_DISK_MS = 1_000
LONG_DECISION_MS = 5  # while one is under way, nothing else is decided

Task = Callable[[Context], Decision[Any]]


class Periodic:
    """Tasks by name with their periods; one whose answer is True has more to do and is due again at once."""

    def __init__(self, settings: ControllerSettings) -> None:
        self._tasks: dict[str, tuple[int, Task]] = {}
        self._add(FENCE, max(1, settings.session_timeout_ms // 8), fence_stale_broker)
        self._add("write a no-op", settings.max_idle_interval_ms, write_no_op)
        if settings.leader_rebalance:
            self._add("balance leaders", settings.leader_imbalance_check_interval_ms, balance_leaders)
        self._add("elect uncleanly", settings.unclean_election_check_interval_ms, elect_unclean_leaders)
        self._tasks[LEAVE] = (0, leave_partitions)  # when there is something to leave: see ``hasten``
        self._due: dict[str, int] = {}
        self.deadline_ms: int | None = None

    def _add(self, name: str, period_ms: int, task: Task) -> None:
        if period_ms > 0:
            self._tasks[name] = (period_ms, task)

    def activate(self, now_ms: int) -> None:
        """This node decides from now on: every task is due one period later."""
        self._due = {name: now_ms + period_ms for name, (period_ms, _) in self._tasks.items() if period_ms}
        self._settle()

    def hasten(self, name: str, now_ms: int) -> None:
        """That task is due now, on the active controller."""
        if self._due:
            self._due[name] = now_ms
            self._settle()

    def deactivate(self) -> None:
        self._due = {}
        self._settle()

    def run_due(self, node: Node) -> None:
        """Run the tasks whose time has come."""
        now_ms = node.now_ms
        if self.deadline_ms is None or now_ms < self.deadline_ms:
            return
        if node.disk_full or node.long.is_under_way:
            later_ms = now_ms + (FULL_DISK_MS if node.disk_full else LONG_DECISION_MS)
            self._due = {name: max(due_ms, later_ms) for name, due_ms in self._due.items()}
            self._settle()
            return
        for name, due_ms in list(self._due.items()):
            if due_ms > now_ms or name not in self._due:
                continue
            period_ms, task = self._tasks[name]
            try:
                decision = node.decide_alone(task)
            except Exception as error:  # the task's fault costs the task, not the controller
                node.metadata_errors += 1
                node.say("error", "a periodic task failed", task=name, error=repr(error), exc_info=error)
                self._due[name] = now_ms + AFTER_ERROR_MS
                continue
            if name in self._due:
                if decision.answer is True:
                    self._due[name] = now_ms  # after those who have asked something meanwhile
                elif period_ms:
                    self._due[name] = now_ms + period_ms
                else:
                    del self._due[name]
                if name == FENCE and decision.answer is not True:
                    # The oldest session cannot end before; a heartbeat only moves that further away.
                    ends_ms = node.context.heartbeats.next_deadline_ms()
                    if ends_ms is not None:
                        self._due[name] = max(now_ms + 1, ends_ms)
        self._settle()

    def _settle(self) -> None:
        self.deadline_ms = min(self._due.values(), default=None)

    def __repr__(self) -> str:
        return f"<Periodic {len(self._due)} tasks, next at {self.deadline_ms} ms>"
