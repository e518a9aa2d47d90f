"""Requests for the state of share groups, which brokers send to the share coordinator
(`kraftd.groups.share_state`): InitializeShareGroupState (83), v0; ReadShareGroupState (84), v0;
WriteShareGroupState (85), v0-1; DeleteShareGroupState (86), v0; ReadShareGroupStateSummary (87), v0-1.

Authorization: CLUSTER_ACTION. Sent by: brokers. Answered once what they write is committed. Errors, per
partition: INVALID_REQUEST, FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH, UNKNOWN_TOPIC_OR_PARTITION,
NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE. A request without a group or a
partition has an empty answer. Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.ground.pace import Slices

if TYPE_CHECKING:
    from kraftd.broker_node.node import BrokerNode
    from kraftd.requests.call import Call


def handle(node: BrokerNode, call: Call) -> Slices[None]:
    if node.knows_metadata(call):
        yield from node.coordinators.share_states.handle(call)
