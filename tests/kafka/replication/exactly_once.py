"""Copies by transactions in a cluster of three brokers that die, freeze and roll while coordinators move.

A seed draws the transaction.version, the protocols of the groups, and the order of what happens.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import NewTopic

from kraftd.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraftd.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraftd.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kraftd.wire.batch import iter_batches, records
from testkit.client import Client
from testkit.node import Kind
from testkit.process import HOST, wait_until
from tests.kafka.replication.mixed import PARTITIONS, TOPIC, MixedCluster, Writer, is_doubled
from tests.kafka.replication.pipelines import (
    ABORTED,
    KEYS,
    Committer,
    JavaPipeline,
    LibrdkafkaPipeline,
    Topics,
)

KINDS: dict[str, dict[int, Kind]] = {
    "kraftd-stock-kraftd": {1: "kraftd", 2: "apache", 3: "kraftd"},
    "stock-kraftd-stock": {1: "apache", 2: "kraftd", 3: "apache"},
    "kraftd-alone": {1: "kraftd", 2: "kraftd", 3: "kraftd"},
}
INTERNAL = ("__consumer_offsets", "__transaction_state")
WORKERS = 2  # of each pipeline
FREEZE_S = 4.0  # longer than a session, and than replica.lag.time.max.ms
_COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "1048576",
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "100",
    "min.insync.replicas": "2",
}
PAUSE_S = 0.05  # of the writer: copies keep up on a busy machine
_PROTOCOLS = ("classic", "consumer")


class Seen(NamedTuple):
    """What happened in a run."""

    seed: int
    records: int
    leaders: dict[str, set[Kind]]  # of internal topics
    restarts: dict[str, int]  # of workers, by group
    blows: list[str]


class Scenario:
    """See the module. `say` gets a line about each thing that happens."""

    def __init__(self, cluster: MixedCluster, seed: int, say: Callable[[str], None] = lambda _: None) -> None:
        self.cluster, self.seed, self.rng, self.say = cluster, seed, random.Random(seed), say
        self.leaders: dict[str, set[Kind]] = {name: set() for name in INTERNAL}
        self.blows: list[str] = []
        self.version = 1 + seed % 2

    def __repr__(self) -> str:
        return f"<Scenario of seed {self.seed}, {len(self.blows)} blows>"

    # --- the beginning ---

    def begin(self) -> None:
        """Topics, clients, and the first records through all."""
        cluster, rng = self.cluster, self.rng
        self._finalize_version()
        pairs = [Topics(TOPIC, f"{name}-copy", f"{name}-last") for name in ("java", "librdkafka")]
        plain = {"min.insync.replicas": "2"}
        first, second, third = cluster.ids
        placed = [[first, second, third], [second, third, first]]
        made = [NewTopic(TOPIC, PARTITIONS, replica_assignment=placed, config=plain)]
        made += [NewTopic(one.copy, PARTITIONS, replica_assignment=placed, config=plain) for one in pairs]
        made += [
            NewTopic(one.last, PARTITIONS, replica_assignment=placed, config=_COMPACTED) for one in pairs
        ]
        for created in cluster.admin.create_topics(made).values():
            created.result(30)
        cluster.wait_until_in_sync()
        protocols = rng.sample(_PROTOCOLS, 2)
        self.say(f"transaction.version {self.version}, java {protocols[0]}, librdkafka {protocols[1]}")
        self.writer = Writer(cluster.bootstrap, PAUSE_S)
        self.committer = Committer(cluster.bootstrap, "committer", TOPIC)
        java = JavaPipeline(
            cluster.home, cluster.bootstrap, "java", protocols[0], pairs[0], WORKERS, self.seed
        )
        other = LibrdkafkaPipeline(
            cluster.home, cluster.bootstrap, "librdkafka", protocols[1], pairs[1], WORKERS, self.seed
        )
        self.pipelines: list[JavaPipeline | LibrdkafkaPipeline] = [java, other]
        self._wait_for_copies()

    def _finalize_version(self) -> None:
        """Finalize the transaction.version: up, else down."""
        with Client(HOST, self.cluster.controller.port) as client:
            for upgrade_type in (1, 2):
                update = FeatureUpdateKey("transaction.version", self.version, upgrade_type=upgrade_type)
                answer = client.call(UpdateFeaturesRequest(30_000, [update]), 1)
                if not answer.error_code and not any(one.error_code for one in answer.results):
                    return
        raise AssertionError(answer)

    # --- what happens ---

    def play(self, until_s: float = 0.0) -> None:
        """Kill, freeze and roll each broker once in a random order, then go on until this monotonic time."""
        blows = (self._kill, self._freeze, self._roll)
        while True:
            plan = [(blow, broker_id) for blow in blows for broker_id in self.cluster.ids]
            self.rng.shuffle(plan)
            for blow, broker_id in plan:
                self._move_coordinators()
                name = f"{blow.__name__[1:]} {broker_id}"
                self.say(name)
                self.blows.append(name)
                blow(broker_id)
                self._note_leaders()
                self.cluster.wait_until_in_sync()
                self.say("  in sync")
                self._wait_for_copies()
                restarts = [one.restarts() for one in self.pipelines]
                self.say(f"  copied, {restarts} restarts, last {self._last_errors()}")
            if time.monotonic() > until_s:
                return

    def _last_errors(self) -> list[str]:
        return [error for one in self.pipelines for error in one.last_errors()[-1:]]

    def _kill(self, broker_id: int) -> None:
        node = self.cluster.broker(broker_id)
        node.kill()
        wait_until(lambda: broker_id not in self.cluster.leaders(), f"another than {broker_id} leads", 60)
        self._note_leaders()
        time.sleep(self.rng.random() * 2)
        node.start()

    def _freeze(self, broker_id: int) -> None:
        self.cluster.broker(broker_id).freeze()
        time.sleep(FREEZE_S * self.rng.choice((0.3, 1, 2)))
        self.cluster.broker(broker_id).thaw()

    def _roll(self, broker_id: int) -> None:
        node = self.cluster.broker(broker_id)
        node.stop()
        node.start()

    def _move_coordinators(self) -> None:
        """Let drawn brokers lead the partitions of coordinators, and those of the copies."""
        topics = [*INTERNAL, *(one.topics.copy for one in self.pipelines)]
        self.place_leaders(topics, lambda: self.rng.choice(self.cluster.ids))
        time.sleep(self.rng.random() * 2)

    def place_leaders(self, topics: Iterable[str], draw: Callable[[], int]) -> None:
        """Make a drawn broker of each partition the preferred leader, and elect it."""
        ids, rows, elections = self.cluster.ids, [], []
        for topic in topics:
            parts = []
            for index in range(PARTITIONS):
                leader = draw()
                parts.append(ReassignablePartition(index, (leader, *(one for one in ids if one != leader))))
            rows.append(ReassignableTopic(topic, parts))
            elections.append(TopicPartitions(topic, tuple(range(PARTITIONS))))
        with Client(HOST, self.cluster.controller.port) as client:
            answer = client.call(AlterPartitionReassignmentsRequest(30_000, True, rows), 1)
            assert not answer.error_code, answer
            client.call(ElectLeadersRequest(0, elections, 30_000), 2)

    def _note_leaders(self) -> None:
        for name, kinds in self.leaders.items():
            for one in self.cluster.partitions(name).values():
                if one.leader in self.cluster.ids:
                    kinds.add("kraftd" if one.leader in self.cluster.ours else "apache")

    # --- the end ---

    def end(self) -> Seen:
        """Let all be copied, and compare what is there with what must be."""
        cluster = self.cluster
        self.writer.stop()
        cluster.wait_for_live_brokers(*cluster.ids)
        cluster.wait_until_in_sync()
        self._wait_for_copies()
        for one in self.pipelines:
            one.stop()
        self.committer.stop()
        self.check()
        records_written = sum(self.writer.counts())
        restarts = {one.group: one.restarts() for one in self.pipelines}
        return Seen(self.seed, records_written, self.leaders, restarts, self.blows)

    def close(self) -> None:
        """End what still runs."""
        self.writer.stop()
        for one in self.pipelines:
            one.kill()

    def _wait_for_copies(self) -> None:
        """Wait until the groups have committed what is written now."""
        ends = self._ends(TOPIC)

        def have_copied() -> bool:
            return all(
                self._committed(one.group)[n] >= ends[n] for one in self.pipelines for n in range(PARTITIONS)
            )

        try:
            wait_until(have_copied, f"the groups are at {ends}", 150, poll_s=0.2)
        except TimeoutError:
            for one in self.pipelines:
                self.say(f"{one.group} is at {self._committed(one.group)}: {one.last_errors()}")
            raise

    def _ends(self, topic: str) -> list[int]:
        return self._ask("ends", lambda one: [one.get_watermark_offsets(at, 10)[1] for at in _places(topic)])

    def _committed(self, group: str) -> list[int]:
        return self._ask(group, lambda one: [at.offset for at in one.committed(_places(TOPIC), 10)])

    def _ask(self, group: str, question: Callable[[Consumer], list[int]]) -> list[int]:
        """Ask brokers by a new client, until they answer."""
        found: list[int] = []

        def is_answered() -> bool:
            consumer = Consumer(
                {"bootstrap.servers": self.cluster.bootstrap, "group.id": group, "log_level": 0}
            )
            try:
                found[:] = question(consumer)
            except KafkaException as error:
                raise OSError(str(error)) from error
            finally:
                consumer.close()
            return True

        wait_until(is_answered, f"an answer about {group}", 60)
        return found

    def check(self) -> None:
        """Exactly once, nothing aborted, commits and last values kept, equal replicas: at each leader."""
        cluster = self.cluster
        copies = [one.topics.copy for one in self.pipelines]
        lasts = [one.topics.last for one in self.pipelines]
        written = [self._values_on_disk(TOPIC, n) for n in range(PARTITIONS)]
        for n, values in enumerate(written):
            assert self.writer.acknowledged[n] <= set(values), "an acknowledged record is lost"
            assert not is_doubled(cluster.log(cluster.ids[0], n)), "a record is written twice"
        for broker_id in cluster.ids:
            self.place_leaders([*INTERNAL, *copies, *lasts], lambda broker_id=broker_id: broker_id)  # type: ignore[misc]
            wait_until(
                lambda broker_id=broker_id: self._leads(broker_id, [*INTERNAL, *copies, *lasts]),  # type: ignore[misc]
                f"{broker_id} leads all",
                60,
            )
            for copy in copies:
                for n, values in enumerate(written):
                    found = [value for _, value in self.read_committed(copy, n)]
                    assert found == values, f"{copy}-{n} at {broker_id}: {difference(values, found)}"
            for last in lasts:
                for n, values in enumerate(written):
                    of_keys = dict(self.read_committed(last, n))
                    expected = {b"%d" % (int(value) % KEYS): value for value in values}
                    assert of_keys == expected, f"{last}-{n} at {broker_id}: {of_keys}, not {expected}"
            for one in self.pipelines:
                assert self._committed(one.group) == self._ends(TOPIC), f"{one.group} at {broker_id}"
            found_offset = self._committed(self.committer.group)[0]
            assert not self.committer.lost, self.committer.lost
            assert found_offset >= self.committer.acknowledged, "a commit is lost"
        for topic in (TOPIC, *copies, *INTERNAL):
            wait_until(lambda topic=topic: cluster.logs_are_equal(topic), f"logs of {topic} are equal", 20)  # type: ignore[misc]
        for node in cluster.ours.values():
            assert '"level":"error"' not in node.log_text()

    def _leads(self, broker_id: int, topics: Iterable[str]) -> bool:
        found = self.cluster.metadata().topics
        return all(part.leader == broker_id for name in topics for part in found[name].partitions.values())

    def _values_on_disk(self, topic: str, partition: int) -> list[bytes]:
        log = self.cluster.log(self.cluster.ids[0], partition, topic)
        return [bytes(one.value or b"") for batch in iter_batches(log) for one in records(batch)]

    def read_committed(self, topic: str, partition: int) -> list[tuple[bytes | None, bytes]]:
        """Keys and values that a reader of committed records sees, up to the high watermark."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap,
                "group.id": "checker",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        place = TopicPartition(topic, partition, 0)
        found = []
        try:
            end = self._ends(topic)[partition]
            consumer.assign([place])
            until_s = time.monotonic() + 60
            while consumer.position([place])[0].offset < end:
                assert time.monotonic() < until_s, f"a reader of {topic}-{partition} is stuck before {end}"
                for one in consumer.consume(500, 0.1):
                    if one.error() is None:
                        assert one.value() != ABORTED, f"{topic}-{partition} shows what was aborted"
                        found.append((one.key(), one.value()))
        finally:
            consumer.close()
        return found


def _places(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, n) for n in range(PARTITIONS)]


def difference(expected: list[bytes], found: list[bytes]) -> str:
    """What is missing, too much, or in another order."""
    missing, doubled = set(expected) - set(found), len(found) - len(set(found))
    order = next((n for n, (one, two) in enumerate(zip(expected, found, strict=False)) if one != two), -1)
    return (
        f"{len(expected)} expected, {len(found)} found, {doubled} doubled, missing {sorted(missing)[:5]},"
        f" first difference at {order}"
    )


def play(
    home: Path,
    kinds: str,
    controller: Kind,
    seed: int,
    seconds: float = 0.0,
    say: Callable[[str], None] = lambda _: None,
) -> Seen:
    """A run in a cluster of its own; AssertionError or TimeoutError name what is wrong."""
    with MixedCluster(home, KINDS[kinds], controller) as cluster:
        scenario = Scenario(cluster, seed, say)
        try:
            scenario.begin()
            scenario.play(time.monotonic() + seconds if seconds else 0.0)
            return scenario.end()
        finally:
            scenario.close()
