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
        self.request_count = 0
        self.enter(World(seed=1))

    def enter(self, world: World) -> None:
        """Begin with another world, without anything of the last one."""
        self.world = world

    def write(self, text: str) -> None:
        self.lines.append(text)

    def ask(self, client: str, node_id: int, request: Message, version: int | None = None) -> bool:
        """Send a replica a request of `client`; return whether it has answered. The answer is printed."""
        self.request_count += 1
        request_id = f"{client}#{self.request_count}"
        self.world.ask(node_id, request_id, request, version)
        return request_id in self.world.answers


def cluster_id(options: dict[str, str]) -> str | None:
    """The cluster id of a request: the option `cluster`, by default the world's."""
    named = options.get("cluster", "cluster")
    return None if named == "null" else "" if named == "empty" else named
