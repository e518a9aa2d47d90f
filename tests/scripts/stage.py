"""Shared by all commands of a scenario script: the world, and the output lines."""

from __future__ import annotations

from kraftd.wire.message import Message
from tests.raft.world import World


class Stage:
    """A world, and the output about it."""

    world: World

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.shown: set[str] = set()
        self.asked = 0
        self.enter(World(seed=1))

    def enter(self, world: World) -> None:
        """Another world; state of the last one's output is dropped."""
        self.world = world

    def tell(self, text: str) -> None:
        self.lines.append(text)

    def ask(self, who: str, node_id: int, request: Message, version: int | None = None) -> bool:
        """Ask a replica in the name of `who`; return whether it has answered. The answer is printed."""
        self.asked += 1
        request_id = f"{who}#{self.asked}"
        self.world.ask(node_id, request_id, request, version)
        return request_id in self.world.answers


def cluster_id(options: dict[str, str]) -> str | None:
    """The `cluster` of a request; that of the world where none is named."""
    named = options.get("cluster", "cluster")
    return None if named == "null" else "" if named == "empty" else named
