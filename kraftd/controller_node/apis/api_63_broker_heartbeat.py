"""BrokerHeartbeat (63), v0-2: a broker is alive, wants to be fenced or not, or wants to shut down.

Authorization: CLUSTER_ACTION. Sent by: brokers, every 2 s. Answered after the commit of what it changed.
Errors: STALE_BROKER_EPOCH, NOT_CONTROLLER.
Differs from Apache Kafka: a heartbeat that changes nothing waits only for the commit of records that concern
its broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.brokers.states import begin_heartbeat, renew_session, unchanged
from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.controller_node.deciding.periodic import LEAVE
from kraftd.ground.pace import Slices
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.broker_heartbeat_response import BrokerHeartbeatResponse

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> None:
    if node.active:
        renew_session(node.context, call.message)
        node.core_answers.note_heartbeat(call)
    if not node.decisions.answer_unchanged(call, unchanged):
        node.decisions.decide(call, _beat)
    if node.context.heartbeats.departures:
        node.periodic.hasten(LEAVE)


def _beat(
    ctx: Context, request: BrokerHeartbeatRequest, _version: int
) -> Decision[BrokerHeartbeatResponse] | Slices[Decision[BrokerHeartbeatResponse]]:
    return begin_heartbeat(ctx, request)
