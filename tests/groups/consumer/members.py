"""Members of consumer groups in short."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest, TopicPartitions
from kraftd.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse

Ask = Callable[[Any, int], Any]
HEARTBEAT, DESCRIBE = 1, 1  # versions
REBALANCE_MS = 60_000


def heartbeat(
    member: str = "m1",
    epoch: int = 0,
    *,
    group: str = "g",
    topics: Sequence[str] | None = None,
    regex: str | None = None,
    instance: str | None = None,
    assignor: str | None = None,
    owned: Mapping[bytes, Sequence[int]] | None = None,
    rebalance_ms: int = -1,
) -> ConsumerGroupHeartbeatRequest:
    rows = None if owned is None else [TopicPartitions(topic, tuple(some)) for topic, some in owned.items()]
    names = None if topics is None else tuple(topics)
    return ConsumerGroupHeartbeatRequest(
        group, member, epoch, instance, None, rebalance_ms, names, regex, assignor, rows
    )


def joining(
    member: str, topics: Sequence[str] | None = ("orders",), **more: Any
) -> ConsumerGroupHeartbeatRequest:
    return heartbeat(member, 0, topics=topics, owned={}, rebalance_ms=REBALANCE_MS, **more)


def partitions(answer: ConsumerGroupHeartbeatResponse) -> dict[bytes, list[int]] | None:
    """The assignment of an answer, if it has one."""
    if answer.assignment is None:
        return None
    return {topic.topic_id: sorted(topic.partitions) for topic in answer.assignment.topic_partitions}


class Consumer:
    """A member that does what answers ask for, and reports what it has."""

    def __init__(self, ask: Ask, member_id: str, group: str = "g", **subscription: Any) -> None:
        self.ask = ask
        self.member_id = member_id
        self.group = group
        self.subscription = {"topics": ("orders",), **subscription}
        self.epoch = 0
        self.has: dict[bytes, list[int]] = {}

    def __repr__(self) -> str:
        return f"<Consumer {self.member_id} epoch {self.epoch} has {self.has}>"

    def join(self) -> Any:
        self.epoch, self.has = 0, {}
        return self.take(self.ask(joining(self.member_id, group=self.group, **self.subscription), HEARTBEAT))

    def beat(self, **more: Any) -> Any:
        """Send a heartbeat that reports what the member has."""
        instance = self.subscription.get("instance")
        request = heartbeat(
            self.member_id, self.epoch, group=self.group, instance=instance, owned=self.has, **more
        )
        return self.take(self.ask(request, HEARTBEAT))

    def leave(self, epoch: int = -1) -> Any:
        self.has = {}
        instance = self.subscription.get("instance")
        return self.ask(heartbeat(self.member_id, epoch, group=self.group, instance=instance), HEARTBEAT)

    def take(self, answer: Any) -> Any:
        if answer.error_code == 0:
            self.epoch = answer.member_epoch
            told = partitions(answer)
            self.has = self.has if told is None else told
        return answer

    def count(self) -> int:
        return sum(map(len, self.has.values()))


def settle(*consumers: Consumer) -> None:
    """Let members send heartbeats until nothing changes any more."""
    for _ in range(20):
        before = [(one.epoch, dict(one.has)) for one in consumers]
        for one in consumers:
            answer = one.beat()
            assert answer.error_code == 0, answer
        if before == [(one.epoch, one.has) for one in consumers]:
            return
    raise AssertionError(f"no end of changes: {consumers}")
