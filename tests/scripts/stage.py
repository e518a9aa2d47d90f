"""What every command of a scenario script works with: the world, and the lines that tell what came of it."""

from __future__ import annotations

from kraftd.wire.message import Message
from tests.raft.world import World


class Stage:
    """A world, and what is told of it."""

    def __init__(self) -> None:
        self.world = World(seed=1)
        self.lines: list[str] = []
        self.asked = 0

    def tell(self, text: str) -> None:
        self.lines.append(text)

    def ask(self, who: str, node_id: int, request: Message, version: int | None = None) -> bool:
        """Asks a replica in the name of `who`; its answer is told when it comes.  Whether it has come."""
        self.asked += 1
        request_id = f"{who}#{self.asked}"
        self.world.ask(node_id, request_id, request, version)
        return request_id in self.world.answers
