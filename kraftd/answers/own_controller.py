"""Requests that this node's own controller answers from its image, leader or not: ACLs, SCRAM users, tokens.

A broker answers these from its metadata too, and authorizes them as the controller does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.answers.effects import HandToController

if TYPE_CHECKING:
    from kraftd.answers.node import AnsweringNode
    from kraftd.requests.call import Call


def handle(node: AnsweringNode, call: Call) -> None:
    node.outbox.emit(HandToController(call))
