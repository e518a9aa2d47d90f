"""Defects of controllers: of the image, of decisions and of their answers."""

from __future__ import annotations

from typing import Any

from kraftd.metadata.image import Image
from kraftd.server import node as server_node
from kraftd.server.node import Node
from kraftd.server.parked import ParkedAnswers


def answer_before_commit(patch: Any) -> None:
    """C2: an answer does not wait for its records."""
    patch.setattr(ParkedAnswers, "release", lambda self, high_watermark: _all(self))
    decide = Node.decide

    def at_once(self: Node, *arguments: Any, **options: Any) -> None:
        decide(self, *arguments, **options)
        for call, parts in _all(self.parked):
            self._out.append(server_node.Answer(call.connection_id, call.slot, parts))

    patch.setattr(Node, "decide", at_once)


def _all(parked: ParkedAnswers) -> list[Any]:
    return parked.abandon()


def keep_what_was_undone(patch: Any) -> None:
    """C1: a leader that loses its epoch keeps what it had decided and not committed."""
    patch.setattr(Image, "undo_to", lambda self, offset: None)


def hand_out_producer_ids_again(patch: Any) -> None:
    """C6: every block of producer ids begins at the same id."""
    patch.setattr(Image, "next_producer_id", property(lambda self: 0, lambda self, value: None))


ALL = {
    answer_before_commit: ("C2", "S19"),
    keep_what_was_undone: ("C1", "C2", "error"),
    hand_out_producer_ids_again: ("C6", "C1"),
}
