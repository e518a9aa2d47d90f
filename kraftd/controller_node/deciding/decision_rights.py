"""Whether this node takes decisions, and the refusals of a node that does not."""

from __future__ import annotations

from kraftd.ground.refusal import Refusal
from kraftd.raft.core import RaftCore
from kraftd.wire.error_code import ErrorCode


class DecisionRights:
    """The state on which a node's right to decide depends, for all its parts to read.

    `active_epoch` is the epoch in which the node takes decisions, None on a standby. `stopping`: the daemon
    is about to end, and the node starts no work without a request. `ending`: the core is shutting down and
    appends nothing more. `disk_full`: nothing new is decided; reads are still answered.
    """

    __slots__ = ("_core", "active_epoch", "disk_full", "ending", "stopping")

    def __init__(self, core: RaftCore) -> None:
        self.active_epoch: int | None = None
        self.stopping = False
        self.ending = False
        self.disk_full = False
        self._core = core

    @property
    def active(self) -> bool:
        """Return whether this node takes decisions."""
        return self.active_epoch is not None

    def check_may_decide(self, *, on_standby: bool = False) -> None:
        """Raises Refusal on a standby, and on a leader that is about to resign."""
        if (self.active_epoch is None and not on_standby) or (self.stopping and len(self._core.voters) > 1):
            raise self.not_controller()

    def check_may_append(self) -> None:
        """Raises Refusal while the log accepts nothing."""
        if self.disk_full:
            raise Refusal(ErrorCode.NOT_CONTROLLER, "The controller's disk is full.")
        if self.ending:
            raise self.not_controller()

    def not_controller(self) -> Refusal:
        """The refusal of Kafka's standby controllers."""
        leader_id = self._core.leader_id
        if leader_id is None:
            return Refusal(ErrorCode.NOT_CONTROLLER, "No controller appears to be active.")
        return Refusal(ErrorCode.NOT_CONTROLLER, f"The active controller appears to be {leader_id}.")

    def __repr__(self) -> str:
        role = f"active in epoch {self.active_epoch}" if self.active else "standby"
        marks = [name for name in ("stopping", "ending", "disk_full") if getattr(self, name)]
        return f"<DecisionRights {', '.join([role, *marks])}>"
