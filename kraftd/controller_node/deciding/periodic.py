"""Periodic work of an active controller: a table of tasks, each with the time at which it is next due."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.controller.activation import write_no_op
from kraftd.controller.brokers.states import fence_stale_broker, leave_partitions
from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.controller.partitions.election import balance_leaders, elect_unclean_leaders
from kraftd.controller.tokens.change import sweep_expired_tokens
from kraftd.controller_node.deciding.decision_rights import DecisionRights
from kraftd.controller_node.deciding.decisions import Decisions
from kraftd.ground.ticks import next_tick_ms
from kraftd.replica.fatal_faults import FATAL
from kraftd.requests.outbox import Outbox

FENCE = "fence stale brokers"
LEAVE = "leave partitions"
AFTER_ERROR_MS = 300_000
FULL_DISK_MS = 1_000
LONG_DECISION_MS = 5  # while one is under way, nothing else is decided

Task = Callable[[Context], Decision[Any]]


class Periodic:
    """Tasks by name, with their periods; a task that returns True has more to do and is due again at once.

    `failures` counts tasks that failed unexpectedly.
    """

    def __init__(
        self, context: Context, rights: DecisionRights, decisions: Decisions, outbox: Outbox
    ) -> None:
        self.failures = 0
        self._context = context
        self._rights = rights
        self._decisions = decisions
        self._outbox = outbox
        settings = context.settings
        self._tasks: dict[str, tuple[int, Task]] = {  # period 0: never due by itself
            FENCE: (max(1, settings.broker_session_timeout_ms // 8), fence_stale_broker),
            LEAVE: (0, leave_partitions),  # see ``hasten``
            "write a no-op": (settings.metadata_max_idle_interval_ms, write_no_op),
        }
        if settings.auto_leader_rebalance_enable:
            interval_ms = settings.leader_imbalance_check_interval_ms
            self._tasks["balance leaders"] = (interval_ms, balance_leaders)
        interval_ms = settings.unclean_leader_election_interval_ms
        self._tasks["elect uncleanly"] = (interval_ms, elect_unclean_leaders)
        if settings.tokens.secret_key:
            interval_ms = settings.tokens.expiry_check_interval_ms
            self._tasks["sweep expired delegation tokens"] = (interval_ms, sweep_expired_tokens)
        self._due: dict[str, int] = {}
        self.deadline_ms: int | None = None

    def activate(self) -> None:
        """Start: this node decides from now on, and every task is due about one period later."""
        now_ms = self._context.now_ms
        tasks = self._tasks.items()
        self._due = {name: next_tick_ms(now_ms, period_ms) for name, (period_ms, _) in tasks if period_ms}
        self._settle()

    def hasten(self, name: str) -> None:
        """Make that task due now, on the active controller."""
        if self._due:
            self._due[name] = self._context.now_ms
            self._settle()

    def deactivate(self) -> None:
        self._due = {}
        self._settle()

    def run_due(self) -> None:
        """Run the tasks whose time has come."""
        now_ms = self._context.now_ms
        if self.deadline_ms is None or now_ms < self.deadline_ms:
            return
        disk_full = self._rights.disk_full
        if disk_full or self._decisions.long.is_under_way:
            later_ms = now_ms + (FULL_DISK_MS if disk_full else LONG_DECISION_MS)
            self._due = {name: max(due_ms, later_ms) for name, due_ms in self._due.items()}
            self._settle()
            return
        for name, due_ms in list(self._due.items()):
            if due_ms > now_ms or name not in self._due:
                continue
            period_ms, task = self._tasks[name]
            try:
                decision = self._decisions.decide_alone(task, gather=False)
            except FATAL:
                raise
            except Exception as error:  # a fault ends the task, not the controller
                self.failures += 1
                self._outbox.log(
                    "error", "a periodic task failed", task=name, error=repr(error), exc_info=error
                )
                self._due[name] = now_ms + AFTER_ERROR_MS
                continue
            if name in self._due:
                if decision.answer is True:
                    self._due[name] = now_ms  # after the calls that have arrived meanwhile
                elif period_ms:
                    self._due[name] = next_tick_ms(now_ms, period_ms)
                else:
                    del self._due[name]
                if name == FENCE and decision.answer is not True:
                    # The oldest session cannot end earlier; a heartbeat only postpones that.
                    ends_ms = self._context.heartbeats.next_deadline_ms()
                    if ends_ms is not None:
                        self._due[name] = max(now_ms + 1, ends_ms)
        self._settle()

    def _settle(self) -> None:
        self.deadline_ms = min(self._due.values(), default=None)

    def __repr__(self) -> str:
        return f"<Periodic {len(self._due)} tasks, next at {self.deadline_ms} ms>"
