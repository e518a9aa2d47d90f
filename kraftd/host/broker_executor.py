"""Performs the effects of a broker node, beside those of any node that answers from an image."""

from __future__ import annotations

from kraftd.broker_node.effects import NotRegistered
from kraftd.broker_node.node import BrokerNode
from kraftd.host.answering_executor import AnsweringExecutor, Around, at_once
from kraftd.host.cluster_view import NodeView
from kraftd.host.ports import AnswerWire, Ports


class CannotRegister(Exception):
    """No controller has registered this broker in time; the text says what to look at."""


class BrokerExecutor(AnsweringExecutor):
    """One broker node beside a replica."""

    node: BrokerNode

    def __init__(
        self, node: BrokerNode, view: NodeView, ports: Ports, wire: AnswerWire, around: Around = at_once
    ) -> None:
        super().__init__(node, view, ports, wire, around)

        def not_registered(effect: NotRegistered) -> None:
            ports.failed(
                CannotRegister(
                    f"no controller registered this broker within {effect.within_ms} ms "
                    "(initial.broker.registration.timeout.ms): the lines before say why"
                )
            )

        self.performers[NotRegistered] = not_registered
