"""Decisions: taken on the image, appended, and answered once they are committed."""

from __future__ import annotations

from collections.abc import Callable
from types import GeneratorType
from typing import Any

from kraftd.controller.brokers.states import Unchanged
from kraftd.controller.context import Context
from kraftd.controller.decision import Deciding, Decision
from kraftd.controller_node.deciding.appending import Appends
from kraftd.controller_node.deciding.decision_rights import DecisionRights
from kraftd.controller_node.deciding.long_decisions import MAX_INLINE_RECORDS, LongDecisions, first_slice
from kraftd.controller_node.deciding.parked_answers import ParkedAnswers
from kraftd.ground.pace import at_once
from kraftd.ground.refusal import Refusal
from kraftd.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraftd.requests.boundary import Boundary
from kraftd.requests.call import Call, FrameMemo
from kraftd.requests.refused_rows import RefusedRows
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode

# Of the context, the request and its version; a generator, if it may take several event loop callbacks.
Decide = Callable[[Context, Any, int], Decision[Any] | Deciding]

HEARTBEAT = int(ApiKey.BROKER_HEARTBEAT)


class Decisions:
    """Decides for a call by `decide`, without one by `decide_alone`.

    `parked` holds the answers that wait for the commit of an append; `long` holds the decision under way that
    takes many slices. `failures` counts decisions that failed unexpectedly.
    """

    def __init__(
        self,
        boundary: Boundary,
        context: Context,
        rights: DecisionRights,
        appends: Appends,
        parked: ParkedAnswers,
        long: LongDecisions,
    ) -> None:
        self.failures = 0
        self.timed_out = 0  # requests without time left
        self.appends = appends
        self.parked = parked
        self.long = long
        self._boundary = boundary
        self._context = context
        self._rights = rights
        self._unchanged = FrameMemo()

    @property
    def busy(self) -> bool:
        """Return whether accepted decisions still wait for their answers."""
        return bool(self.parked) or self.long.busy

    def decide(
        self, call: Call, decide: Decide, *, on_standby: bool = False, refused: RefusedRows | None = None
    ) -> None:
        """Take a decision on the image; append its records; answer once they are committed.

        An answer without records waits for the commit of the records that it may reflect: no answer shows
        what could still be undone. Reads in Kafka's controller wait likewise, for the highest offset in its
        purgatory. A decision that knows its `seen_offset` waits for that. `on_standby` lets every controller
        answer from what it has applied. `refused` has the rows of elements that are refused already: they
        follow those of the decision's answer. A long decision takes several event loop callbacks, and the
        others wait. Raises Refusal.
        """
        rights, long = self._rights, self.long
        if rights.active_epoch is None or rights.stopping:
            rights.check_may_decide(on_standby=on_standby)

        def again() -> None:
            self.decide(call, decide, on_standby=on_standby, refused=refused)

        if call.key != HEARTBEAT and long.put_off(call, again):
            return
        context, epoch = self._context, rights.active_epoch
        context.next_offset = self.appends.next_offset
        try:
            made = decide(context, call.message, call.version)
            decision = first_slice(made) if isinstance(made, GeneratorType) else made
        except Refusal as refusal:
            self.timed_out += refusal.code == ErrorCode.REQUEST_TIMED_OUT
            raise
        except Exception:
            self.failures += 1
            raise
        if not isinstance(decision, Decision) or len(decision.records) > MAX_INLINE_RECORDS:
            if not long.is_under_way:
                long.begin(call, decision, refused)
            else:
                long.put_off(call, again)
            return
        if decision.records and long.is_under_way:
            long.put_off(call, again)
            return
        response = decision.answer
        if refused:
            parts = at_once(long.frame(call, response, refused))
        else:
            if type(response) is not BrokerHeartbeatResponse or response.error_code:
                self._boundary.count(call, response)
            parts = call.frame(response)
        if decision.records:
            end_offset = self.appends.append(decision.records, decision.atomic, call)
            if rights.active_epoch != epoch:
                # The step of the append also ended the leadership (a late check-quorum), which undid the
                # records.
                raise rights.not_controller()
        else:
            end_offset = context.next_offset
        if decision.after is not None:
            decision.after(end_offset)
        if not decision.records:
            seen_offset = decision.seen_offset
            end_offset = self.appends.decided_end if seen_offset is None else seen_offset + 1
        self.parked.answer(call, parts, end_offset)

    def answer_unchanged(self, call: Call, find: Callable[[Context, Any], Unchanged | None]) -> bool:
        """Answer a heartbeat that changes nothing, if this node decides and `find` has its answer. Return
        whether it was answered; the others need a decision.
        """
        rights = self._rights
        if rights.active_epoch is None or rights.stopping:
            return False
        try:
            found = find(self._context, call.message)
        except Exception:
            self.failures += 1
            raise
        if found is None:
            return False
        answer, seen_offset = found
        self.parked.answer(call, call.frame_repeated(answer, self._unchanged), seen_offset + 1)
        return True

    def decide_alone(
        self, decide: Callable[[Context], Decision[Any]], *, gather: bool = True
    ) -> Decision[Any]:
        """Take a decision without a call: periodic work, activation, the node's own registration. Without
        `gather` its records are a batch of their own.

        Raises Refusal.
        """
        context = self._context
        context.next_offset = self.appends.next_offset
        decision = decide(context)
        if decision.records:
            end_offset = self.appends.append(decision.records, decision.atomic, gather=gather)
        else:
            end_offset = context.next_offset
        if decision.after is not None:
            decision.after(end_offset)
        return decision

    def __repr__(self) -> str:
        return f"<Decisions {self.parked!r}, {self.long!r}>"
