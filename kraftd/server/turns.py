"""What a node does between requests, a piece in each turn of the loop; it asks for one turn at a time.

In this order: it lets go of what committed decisions have replaced, goes on with a long decision, and reads
what is committed into the image, which stands still while a long decision looks at it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.server.effects import TakeTurn

if TYPE_CHECKING:
    from kraftd.server.node import Node


class Turns:
    """Whether a turn has been asked for."""

    __slots__ = ("_asked",)

    def __init__(self) -> None:
        self._asked = False

    def ask(self, node: Node) -> None:
        """There is more to do, in another turn."""
        if not self._asked:
            self._asked = True
            node.emit(TakeTurn())

    def came(self, node: Node) -> None:
        """The turn that was asked for."""
        self._asked = False
        if node.active and self.forget(node):
            return
        if node.long.busy:
            node.long.go_on(node)
            self._ask_for_more(node)
        elif not node.active:  # an active controller applies what it decides itself
            self.replay(node)

    def _ask_for_more(self, node: Node) -> None:
        if node.long.busy or node.replay.busy:
            self.ask(node)

    def forget(self, node: Node) -> bool:
        """Let go of some of what committed records have replaced: whether there is more."""
        more = node.image.forget_some()
        if more:
            self.ask(node)
        return more

    def read_on(self, node: Node) -> None:
        """What is committed and not in the image has to be read from the log."""
        read = node.replay.more(node.core.high_watermark or 0)
        if read is not None:
            node.emit(read)

    def replay(self, node: Node) -> None:
        """Apply some of what has been read."""
        if node.long.busy:
            self.ask(node)
            return
        replay = node.replay
        next_offset = replay.next_offset
        follow_up = replay.turn(node.core.high_watermark or 0)
        if next_offset < replay.snapshot_end <= replay.next_offset:
            node.loading.end_snapshot(node.now_ms)
        if isinstance(follow_up, TakeTurn):
            self.ask(node)
        elif follow_up is not None:
            node.emit(follow_up)
        elif replay.complete:
            node.caught_up()

    def __repr__(self) -> str:
        return f"<Turns, {'one' if self._asked else 'none'} asked for>"
