"""What random requests of a broker are drawn from: the topics there are, and what was answered before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from kraftd.wire.message import Message

T = TypeVar("T")
Drawn = tuple[Message, int]
STRANGE_ID = b"\x55" * 16
# Topics that every run begins with. Those whose name begins with "codec" are compressed anew by each node.
TOPICS: dict[str, dict[str, str]] = {
    "plain": {},
    "wide": {"index.interval.bytes": "1"},
    "append": {"message.timestamp.type": "LogAppendTime"},
    "rolls": {"segment.ms": "500", "index.interval.bytes": "1"},
    "compact": {"cleanup.policy": "compact"},
    "limits": {
        "max.message.bytes": "1500",
        "message.timestamp.before.max.ms": "100000000",
        "min.insync.replicas": "2",
    },
    "codec.zstd": {"compression.type": "zstd"},
    "codec.none": {"compression.type": "uncompressed"},
}
MISSING = "missing"


@dataclass
class Session:
    """A fetch session: its epoch, and the version of its requests."""

    version: int
    epoch: int


@dataclass
class World:
    """The state that requests are drawn from."""

    versions: dict[int, tuple[int, int]]  # that Kafka serves
    topic_ids: dict[str, bytes] = field(default_factory=dict)
    producers: dict[int, int] = field(default_factory=dict)  # id -> next sequence
    sessions: dict[int, Session] = field(default_factory=dict)
    members: dict[str, tuple[str, int]] = field(default_factory=dict)  # group -> member id, generation
    prefix: str = ""


class Randomness:
    """Random draws; `kinds` has the requests to draw, and how often each."""

    kinds: dict[object, int]

    def __init__(self, random: Random, world: World) -> None:
        self.random, self.world = random, world

    def rarely(self, share: float = 0.1) -> bool:
        return self.random.random() < share

    def one(self, options: Sequence[T]) -> T:
        return self.random.choice(options)

    def near(self, number: int, share: float = 0.1) -> int:
        return number + self.one((-1, 1, 1000)) if self.rarely(share) else number

    def last(self, key: int) -> int:
        return self.world.versions[key][1]

    def version(self, key: int) -> int:
        first, last = self.world.versions[key]
        return last if self.rarely(0.4) else self.random.randint(first, last)

    def topic(self) -> str:
        if self.rarely(0.06):
            return self.one((MISSING, "", "a b", "__consumer_offsets"))
        return self.one(tuple(name for name in self.world.topic_ids if name[0] != "_"))

    def index(self) -> int:
        return self.one((2, 9, -1)) if self.rarely(0.05) else self.one((0, 0, 1))

    def offset(self) -> int:
        if self.rarely(0.06):
            return self.one((-1, 10**9, -5))
        return self.one((0, 1, 2, 3, 10, 20, 50, 100, 200))

    def named(self, name: str, by_id: bool) -> tuple[str, bytes]:
        """The name and the id of a topic, as a request has one of them."""
        return ("", self.world.topic_ids.get(name, STRANGE_ID)) if by_id else (name, bytes(16))
