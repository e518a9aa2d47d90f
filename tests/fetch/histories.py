"""Random histories of topics and of clients that fetch them, for comparisons of fetch sessions."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from random import Random

from kraftd.fetch.session_cache import next_epoch
from kraftd.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from kraftd.types import Uuid
from kraftd.wire.error_code import ErrorCode
from testkit.synthetic import SyntheticPartitions, topic_id

NAMES = ("a", "b", "c", "d")
BATCH_BYTES = (61, 100, 400)


def named(version: int, name: str, one: Uuid) -> tuple[str, Uuid]:
    return ("", one) if version >= 13 else (name, bytes(16))


class World:
    """Topics that are created, deleted, grow and fail; `changed` is called with the key of each change."""

    def __init__(self, random: Random, changed: Callable[[Hashable], object]) -> None:
        self.random = random
        self.changed = changed
        self.source = SyntheticPartitions()
        self.ids: list[Uuid] = []
        for name in NAMES[:3]:
            self.create(name)

    def create(self, name: str) -> None:
        self.ids.append(topic_id(len(self.ids)))
        self.source.create(name, self.ids[-1], self.random.randint(1, 4))
        self.changed(self.ids[-1])
        for index in range(4):
            self.changed((name, index))

    def delete(self, name: str) -> None:
        self.source.delete(name)
        for index in range(4):
            self.changed((name, index))

    def change(self) -> None:
        random = self.random
        name = random.choice(NAMES)
        if name not in self.source.topics:
            return self.create(name)
        if random.random() < 0.05:
            return self.delete(name)
        partitions = self.source.topics[name][1]
        index = random.randrange(len(partitions))
        partition = partitions[index]
        act = random.random()
        if act < 0.5:
            partition.append(random.choice(BATCH_BYTES))
            if random.random() < 0.7:
                partition.high_watermark = partition.log_end_offset
        elif act < 0.7:
            partition.high_watermark = random.randint(partition.high_watermark, partition.log_end_offset)
        elif act < 0.8:
            partition.log_start_offset = random.randint(partition.log_start_offset, partition.high_watermark)
        elif act < 0.9:
            partition.leader_epoch += 1
        else:
            partition.error_code = random.choice([0, 0, int(ErrorCode.NOT_LEADER_OR_FOLLOWER)])
        return self.changed((name, index))


@dataclass
class Client:
    """A client with a session, by names or by ids."""

    version: int
    replica_id: int
    session_id: int = 0
    epoch: int = 0
    partitions: list[tuple[str, Uuid, int]] = field(default_factory=list)

    def request(self, world: World) -> tuple[int, FetchRequest]:
        """A random fetch of the client, sometimes an invalid one."""
        random = world.random
        version = self.version if random.random() < 0.97 else random.choice([12, 13])
        is_full = not self.epoch
        fetched = [] if random.random() < 0.4 and not is_full else self._some(world, 4)
        forgotten = [] if is_full or random.random() < 0.7 else self._some(world, 3)
        if random.random() < 0.03:
            forgotten = list(self.partitions)
        if is_full:
            self.partitions = []
        self.partitions = [*{*self.partitions, *fetched}]
        session_id, epoch = self.session_id, self.epoch
        if random.random() < 0.05:
            session_id = random.choice([session_id, 1, 77, -3])
            epoch = random.choice([-1, 0, 1, epoch + 1, epoch - 1, -7])
        request = FetchRequest(
            replica_state=ReplicaState(self.replica_id),
            replica_id=self.replica_id,
            max_bytes=random.choice([0, 70, 500, 2000, 1 << 30]),
            session_id=session_id,
            session_epoch=epoch,
            topics=[
                FetchTopic(*named(version, name, one), [self._position(world, name, index)])
                for name, one, index in fetched
            ],
            forgotten_topics_data=[
                ForgottenTopic(*named(version, name, one), (index,)) for name, one, index in forgotten
            ],
        )
        return version, request

    def _some(self, world: World, most: int) -> list[tuple[str, Uuid, int]]:
        random = world.random
        not_yet = topic_id(len(world.ids))
        return [
            (
                random.choice(NAMES),
                random.choice([*world.ids[-5:], not_yet]),
                random.randrange(4),
            )
            for _ in range(random.randint(0, most))
        ]

    def _position(self, world: World, name: str, index: int) -> FetchPartition:
        random = world.random
        known = world.source.topics.get(name)
        end = known[1][index].log_end_offset if known and index < len(known[1]) else 0
        return FetchPartition(
            index,
            random.choice([-1, -1, -1, 0, 1]),
            max(0, end - random.choice([-1, 0, 0, 0, 1, 2, 5])),
            random.choice([-1, -1, -1, 0, 2]),
            partition_max_bytes=random.choice([0, 61, 200, 1000, 1 << 20]),
        )

    def on_answer(self, sent_epoch: int, error_code: int, session_id: int) -> None:
        if error_code or not session_id:
            self.session_id = session_id if error_code else 0
            self.epoch = 0
        else:
            self.session_id = session_id
            self.epoch = next_epoch(max(sent_epoch, 0))
