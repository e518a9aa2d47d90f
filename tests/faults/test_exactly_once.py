"""A node that serves transactional producers and groups is killed again and again: exactly once stays so.

A seed draws the moments: ``KRAFTD_KILLS_SEED``. How many there are with 50 producers: ``KRAFTD_KILLS_COUNT``.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from testkit.cluster import random_uuid
from testkit.node import CombinedNode
from testkit.process import wait_until
from tests.kafka.replication.pipelines import ABORTED, LibrdkafkaPipeline, Topics

SEED = int(os.environ.get("KRAFTD_KILLS_SEED", "1"))
KILLS = int(os.environ.get("KRAFTD_KILLS_COUNT", "20"))
PROGRESS_S = 300  # the most that clients may take to go on
SOURCE, LAST, PARTITIONS = "source", "last", 3
PROPERTIES = {
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 3,
    "broker.heartbeat.interval.ms": 500,
    "broker.session.timeout.ms": 6000,  # a busy machine seldom fences the node
    "group.consumer.min.heartbeat.interval.ms": 500,
    "group.consumer.heartbeat.interval.ms": 500,
    "group.consumer.min.session.timeout.ms": 6000,
    "group.consumer.session.timeout.ms": 6000,  # what a member that is gone holds is free after this
    "log.flush.interval.messages": 1,  # what a kill leaves is what the process had written
}
STUCK_S = 10.0  # a worker that is replaced meanwhile is a zombie, which must be fenced


class Node:
    """A combined node of kraftd, and what a client sees of it."""

    def __init__(self, home: Path) -> None:
        self.process = CombinedNode("kraftd", home, PROPERTIES)
        self.process.format(random_uuid(), "--standalone")
        self.process.start()
        self.process.wait_ready()

    def __repr__(self) -> str:
        return f"<Node {self.process!r}>"

    @property
    def bootstrap(self) -> str:
        return self.process.bootstrap

    def kill(self) -> None:
        """Kill -9, then start again."""
        self.process.kill()
        self.process.start()
        self.process.wait_ready()

    def make(self, *topics: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for created in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in topics]).values():
            created.result(30)

    def reader(self, group: str) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": group,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )

    def committed(self, group: str) -> list[int]:
        return self._ask(group, lambda one: [at.offset for at in one.committed(_places(SOURCE), 10)])

    def ends(self, topic: str) -> list[int]:
        return self._ask("ends", lambda one: [one.get_watermark_offsets(at, 10)[1] for at in _places(topic)])

    def _ask(self, group: str, question: Callable[[Consumer], list[int]]) -> list[int]:
        consumer = self.reader(group)
        try:
            return question(consumer)
        except KafkaException as error:
            raise OSError(str(error)) from error  # which a wait takes for "not yet"
        finally:
            consumer.close()

    def values(self, topic: str, partition: int) -> list[bytes]:
        """What a reader of committed records sees, up to the end."""
        consumer, place = self.reader("checker"), TopicPartition(topic, partition, 0)
        found: list[bytes] = []
        try:
            end = consumer.get_watermark_offsets(place, 10)[1]
            consumer.assign([place])
            until_s = time.monotonic() + 60
            while consumer.position([place])[0].offset < end:
                assert time.monotonic() < until_s, f"a reader of {topic}-{partition} is stuck before {end}"
                found += [one.value() for one in consumer.consume(500, 0.1) if one.error() is None]
        finally:
            consumer.close()
        return found


def _places(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, n) for n in range(PARTITIONS)]


def play(home: Path, protocols: tuple[str, ...], groups: int, producers: int, kills: int) -> None:
    """Copy one topic by each group, kill the node meanwhile; each copy must be the topic, once.

    producers: of all groups, each with a transactional id and a member.
    """
    rng = random.Random(SEED)
    node = Node(home)
    names = [f"copy-{number}" for number in range(groups)]
    with ExitStack() as stack:
        stack.callback(node.process.kill)
        node.make(SOURCE, LAST, *names)
        writer = Producer(
            {
                "bootstrap.servers": node.bootstrap,
                "enable.idempotence": True,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        workers = [producers // groups + (number < producers % groups) for number in range(groups)]
        pipelines = [
            LibrdkafkaPipeline(
                home,
                node.bootstrap,
                name,
                protocols[number % len(protocols)],
                Topics(SOURCE, name, LAST),
                workers[number],
                number,
                stuck_s=STUCK_S,
            )
            for number, name in enumerate(names)
        ]
        for one in pipelines:
            stack.callback(one.kill)
        written = 0

        def write(until: Callable[[], bool]) -> None:
            nonlocal written
            until_s = time.monotonic() + PROGRESS_S
            while not until():
                assert time.monotonic() < until_s, [one.last_errors() for one in pipelines]
                for partition in range(PARTITIONS):
                    writer.produce(SOURCE, b"%08d" % written, partition=partition)
                written += 1
                writer.poll(0.1)

        for _ in range(kills):
            before = [one.commits for one in pipelines]
            write(lambda before=before: sum(one.commits for one in pipelines) > sum(before))  # type: ignore[misc]
            until_s = time.monotonic() + rng.uniform(0, 2)
            write(lambda until_s=until_s: time.monotonic() > until_s)  # type: ignore[misc]
            node.kill()
        assert writer.flush(120) == 0
        expected = [b"%08d" % number for number in range(written)]

        def is_copied() -> bool:
            ends = node.ends(SOURCE)
            return ends == [written] * PARTITIONS and all(node.committed(name) == ends for name in names)

        wait_until(is_copied, "every group has committed all", 600, poll_s=0.5)
        for one in pipelines:
            one.stop()
        for name in names:
            for partition in range(PARTITIONS):
                found = node.values(name, partition)
                assert ABORTED not in found, f"{name}-{partition} shows what was aborted"
                assert found == expected, f"{name}-{partition}: {len(found)} of {written}"
        assert sum(one.restarts() for one in pipelines), "no kill met a transaction"
        assert '"level":"error"' not in node.process.log_text()


def test_copies_of_four_producers_are_exactly_once_after_kills(tmp_path: Path) -> None:
    # Classic members of librdkafka take a minute to go on, at a stock node as well.
    play(tmp_path, ("consumer",), groups=2, producers=4, kills=2)


@pytest.mark.thorough
def test_copies_of_fifty_producers_in_twenty_groups_are_exactly_once_after_kills(tmp_path: Path) -> None:
    play(tmp_path, ("classic", "consumer"), groups=20, producers=50, kills=KILLS)
