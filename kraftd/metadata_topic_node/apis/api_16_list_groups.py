"""ListGroups (16), v0-5, and ListTransactions (66), v0-2: empty lists, because brokers coordinate all of
them.

Authorization: none, as the answer has no names. Sent by: admin clients, to all nodes that they know: also
to this one once an answer to Metadata had the metadata log. Answered at once. Errors: NOT_COORDINATOR if no
broker can be named to the client, because an empty list would then be wrong. Differs from a broker: that
error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.answers.nodes import broker_listener, brokers
from kraftd.ground.refusal import Refusal
from kraftd.wire.api import response_class
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.metadata_topic_node.node import MetadataTopicNode
    from kraftd.requests.call import Call


def handle(node: MetadataTopicNode, call: Call) -> None:
    if not node.knows_metadata(call):
        return
    if not brokers(node.view, broker_listener(node.settings, call.listener)):
        raise Refusal(ErrorCode.NOT_COORDINATOR)
    node.boundary.answer(call, response_class(call.key)())
