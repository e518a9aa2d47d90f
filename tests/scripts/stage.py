"""What every command of a scenario script works with: the world, and the lines that tell what came of it."""

from __future__ import annotations

from kraftd.wire.message import Message
from tests.raft.world import World


class Stage:
    """A world, and what is told of it."""

    world: World

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.shown: set[str] = set()
        self.asked = 0
        self.enter(World(seed=1))

    def enter(self, world: World) -> None:
        """Another world: what was told of the last is over."""
        self.world = world

    def tell(self, text: str) -> None:
        self.lines.append(text)

    def ask(self, who: str, node_id: int, request: Message, version: int | None = None) -> bool:
        """Asks a replica in the name of `who`; its answer is told when it comes.  Whether it has come."""
        self.asked += 1
        request_id = f"{who}#{self.asked}"
        self.world.ask(node_id, request_id, request, version)
        return request_id in self.world.answers


def cluster_id(options: dict[str, str]) -> str | None:
    """The `cluster` of a request; that of the world where none is named."""
    named = options.get("cluster", "cluster")
    return None if named == "null" else "" if named == "empty" else named
