"""The connections to other nodes of a node beside the controller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.answers.effects import SendToNode
from kraftd.ground.destination import Destination
from kraftd.messages.alter_partition_request import AlterPartitionRequest
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.net.link import CLOSED, Link
from kraftd.net.outbound import Times
from kraftd.runtime.peers.sending import Road
from kraftd.runtime.served_node import ServedNode

CONTROLLER = Destination(1, "127.0.0.1", 9093)


class Wiring:
    """Keeps what is opened, and opens nothing."""

    def __init__(self) -> None:
        self.opened: list[Link] = []
        self.delays_ms: list[int] = []
        self.wire = None
        self.loop_hold_times: Any = None
        self.lines: list[Any] = []
        self.after_step = None

    def now_ms(self) -> int:
        return 0

    def call_soon(self, function: Callable[..., object], *arguments: Any) -> None: ...

    def call_later_ms(self, delay_ms: int, function: Callable[[], object]) -> Any:
        self.delays_ms.append(delay_ms)
        return object()

    def open(self, address: Destination, link: Link) -> None:
        self.opened.append(link)


def test_each_channel_to_the_controller_has_a_connection_of_its_own() -> None:
    """A controller answers the requests of a connection one after the other."""
    wiring: Any = Wiring()
    node = ServedNode(wiring, (), {"": Road(wiring)}, 1_000, lambda wire: None, "2")  # type: ignore[arg-type,return-value]
    for number, channel in enumerate(("heartbeat", "alter-partition", "heartbeat", "")):
        request = AlterPartitionRequest() if number == 1 else BrokerHeartbeatRequest()
        node.send_to_node(SendToNode(number, CONTROLLER, request, channel=channel))
    assert len(wiring.opened) == 3


def test_a_heartbeat_that_is_not_answered_fails_sooner_than_other_requests() -> None:
    """Before the session is over, the next one has to reach another controller."""
    wiring: Any = Wiring()
    road, make = {"": Road(wiring)}, lambda wire: None
    node = ServedNode(wiring, (), road, 10_000, make, "2", {"heartbeat": Times(2_000)})  # type: ignore[arg-type,return-value]
    for number, channel in enumerate(("alter-partition", "heartbeat")):
        node.send_to_node(SendToNode(number, CONTROLLER, BrokerHeartbeatRequest(), channel=channel))
    assert wiring.delays_ms == [10_000, 2_000]


def test_why_requests_to_a_node_fail_is_logged_once_in_a_while() -> None:
    wiring: Any = Wiring()
    node = ServedNode(wiring, (), {"": Road(wiring)}, 1_000, lambda wire: None, "2")  # type: ignore[arg-type,return-value]
    request = SendToNode(1, CONTROLLER, BrokerHeartbeatRequest())
    node.failed = lambda tag, failure: None  # type: ignore[method-assign]
    node.send_to_node(request)
    wiring.opened[0].not_opened(CLOSED)
    node.lost(CONTROLLER, "Connection refused")
    node.silent(CONTROLLER, "no answer in time")
    fields = {"peer": 1, "at": "127.0.0.1:9093", "reason": "Connection refused"}
    (line,) = wiring.lines
    assert (line.level, line.text, line.fields) == ("warning", "a request to a node failed", fields)
