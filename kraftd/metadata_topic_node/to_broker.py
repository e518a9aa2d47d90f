"""Requests that a broker answers for this node: coordinators and producer ids.

This node asks the brokers one after another, first the one that answered last; one that is slow holds up a
client for a second, not until the cluster gives it up. If none answers, the client gets a retriable error,
so that its other requests on the connection do not wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kraftd.answers.effects import Answered, SendToNode
from kraftd.answers.forwarding import Progress
from kraftd.answers.nodes import broker_listener, brokers
from kraftd.ground.destination import Destination
from kraftd.ground.pace import Slices
from kraftd.requests.call import Call
from kraftd.wire.message import Message

if TYPE_CHECKING:
    from kraftd.metadata_topic_node.node import MetadataTopicNode

BROKER_WAIT_MS = 1000  # with a broker; some clients wait for an answer no longer than 10 s


def pass_on(
    node: MetadataTopicNode,
    call: Call,
    message: Message,
    on_answer: Callable[[Any], Slices[Message]],
) -> None:
    """Pass a message on to a broker; `on_answer` makes the client's answer from the broker's.

    COORDINATOR_NOT_AVAILABLE if no broker answers.
    """
    listener = broker_listener(node.settings, call.listener)
    tried: dict[int, int] = {}  # brokers by the id of the SendToNode

    def send(request_id: int) -> Progress:
        known = brokers(node.view, listener)
        left = sorted(known.keys() - tried.values())
        if not left:
            return Progress.NO_OTHER
        broker_id = node.last_broker_id if node.last_broker_id in left else left[0]
        tried[request_id] = broker_id
        endpoint = known[broker_id][0]
        node.outbox.emit(
            SendToNode(request_id, Destination(broker_id, endpoint.host, endpoint.port), message, listener)
        )
        return Progress.SENT

    def done(answered: Answered) -> bool:
        node.last_broker_id = tried[answered.request_id]
        call.settled = False
        node.boundary.large.begin(call, answer(answered.message))
        return True

    def answer(message: Any) -> Slices[None]:
        yield from node.boundary.answer_in_slices(call, (yield from on_answer(message)))

    node.passing_on.begin(call, node.now_ms, send, done, BROKER_WAIT_MS)
