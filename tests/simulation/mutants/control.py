"""Defects of controllers: of the image, of decisions and of their answers."""

from __future__ import annotations

from typing import Any

from kraftd.messages.producer_ids_record import ProducerIdsRecord
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
    """C6: the record of a block is not taken in."""
    from kraftd.metadata import replay

    patch.setitem(replay.REPLAY, ProducerIdsRecord, lambda image, message: None)


ALL = {
    answer_before_commit: ("C2", "S19"),
    keep_what_was_undone: ("C1", "C2", "error"),
    hand_out_producer_ids_again: ("C6", "C1"),
}
