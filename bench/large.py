"""``python -m bench.large``: how long single large requests hold the event loop of a large controller.

The controller has a million partitions from ``bench.million``, and its brokers heartbeat from another
process. Each request is about as large as is allowed. Measured are its records, its answer's time, the
longest callback of the event loop, and the brokers' heartbeats meanwhile. README.md describes how.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.hearts import Hearts
from bench.load import CREATE_TOPICS_VERSION, HEARTBEAT_VERSION, quorum_position
from bench.million import Shape, directory_of, fill
from kraftd.messages import alter_partition_request as alter_partition
from kraftd.messages import create_topics_request as create_topics
from kraftd.messages import incremental_alter_configs_request as alter_configs
from kraftd.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraftd.messages.assign_replicas_to_dirs_request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from kraftd.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kraftd.messages.elect_leaders_request import ElectLeadersRequest
from kraftd.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftd.wire.error_code import ErrorCode
from testkit.client import Client
from testkit.process import HOST, free_port, wait_until
from testkit.quorum import Quorum

NODE_ID = 100
TOPIC, SET, PREFERRED, UNCLEAN = 2, 0, 0, 1  # of configs and elections
INTERVAL_S = 0.05  # of the heartbeats
SESSION_MS = 3000
HELD = "the event loop was held"
BUCKET = re.compile(r'kraftd_loop_step_seconds_bucket\{le="([^"]+)"\} (\d+)')
GIVE_UP_S = 300


@dataclass(frozen=True)
class Measured:
    """The effects of one request. longest_ms is exact above 10 ms; below, it is the bound of a histogram."""

    name: str
    records: int
    took_ms: float
    longest_ms: float
    too_long: int
    by: str
    slowest_beat_ms: float

    def __repr__(self) -> str:
        return f"<Measured {self.name}: {self.longest_ms:.1f} ms, {self.too_long} steps too long: {self.by}>"


class Large:
    """A controller with very many partitions, and the measurements so far."""

    def __init__(self, quorum: Quorum, shape: Shape, metrics_port: int, only: Sequence[str]) -> None:
        self.shape = shape
        self.measurements: list[Measured] = []
        self.node = quorum.controllers[NODE_ID]
        self.cluster_id = quorum.cluster_id
        self.client = Client(HOST, self.node.port, client_id="bench", timeout_s=GIVE_UP_S)
        self.hearts: Hearts | None = None
        self.only = only
        self._metrics = f"http://{HOST}:{metrics_port}/metrics"
        ids, self.assigned = topics_of(shape)
        self.names = [f"topic-{number:06d}" for number in range(shape.topics)]
        self.ids = dict(zip(self.names, ids, strict=True))

    def measure(self, name: str, work: Callable[[], object]) -> None:
        """Run the request, and measure how long it held the loop."""
        assert self.hearts is not None
        time.sleep(0.3)
        self.hearts.take()
        _, offset = quorum_position(self.client)
        before, position = self._buckets(), len(self.node.log_text())
        began_s = time.perf_counter()
        work()
        took_ms = (time.perf_counter() - began_s) * 1000
        time.sleep(0.3)
        after = self._buckets()
        lines = self.node.log_text()[position:].splitlines()
        holds = [json.loads(line) for line in lines if HELD in line]
        held_ms = [float(hold["took_ms"]) for hold in holds]
        below = max((bound for bound in after if after[bound] > before.get(bound, 0)), default=0.0)
        beats = self.hearts.take()
        measured = Measured(
            name,
            quorum_position(self.client)[1] - offset,
            took_ms,
            max(held_ms, default=below),
            len(held_ms),
            ", ".join(f"{hold['by']} {hold['took_ms']} ms" for hold in holds),
            max((beat.took_s * 1000 for beat in beats), default=0.0),
        )
        self.measurements.append(measured)
        print(measured, flush=True)

    def _buckets(self) -> dict[float, int]:
        """The number of steps per histogram bucket, by the bucket's upper bound in milliseconds."""
        with urllib.request.urlopen(self._metrics, timeout=GIVE_UP_S) as answer:
            text = answer.read().decode()
        counts: dict[float, int] = {}
        below = 0
        for bound, count in BUCKET.findall(text):
            counts[float(bound) * 1000] = int(count) - below
            below = int(count)
        return counts

    def ask(self, request: Any, version: int) -> Any:
        return self.client.call(request, version)


def topics_of(shape: Shape) -> tuple[list[bytes], list[list[tuple[int, ...]]]]:
    """Of each topic by ``bench.million``: its id, and the replicas of its partitions."""
    from bench.million import topics

    ids: list[bytes] = []
    assigned: list[list[tuple[int, ...]]] = []
    for record, _ in topics(shape):
        if isinstance(record, TopicRecord):
            ids.append(record.topic_id)
            assigned.append([])
        elif isinstance(record, PartitionRecord):
            assigned[-1].append(record.replicas)
    return ids, assigned


@contextmanager
def controller(shape: Shape, only: Sequence[str]) -> Iterator[Large]:
    """Start it; wait until it leads and has heartbeats of all its brokers."""
    with tempfile.TemporaryDirectory(prefix="kraftd-bench-") as home:
        metrics_port = free_port()
        settings = {
            "broker.session.timeout.ms": SESSION_MS,
            "auto.leader.rebalance.enable": "false",
            "metadata.log.max.record.bytes.between.snapshots": 1 << 40,
            "metadata.log.max.snapshot.interval.ms": 0,
            "kraftd.metrics.listener": f"{HOST}:{metrics_port}",
            "kraftd.log.level": "debug",
        }
        with Quorum(Path(home), {NODE_ID: "kraftd"}, controller_properties=settings) as quorum:
            node = quorum.controllers[NODE_ID]
            node.format(quorum.cluster_id, "--initial-controllers", quorum.initial)
            fill(node.data, shape, as_checkpoint=True)
            large = None
            node.start()
            wait_until(lambda: _leads(node.port), "it leads", GIVE_UP_S)
            ids = [(broker_id, broker_id) for broker_id in range(1, shape.brokers + 1)]
            with Hearts(node.port, ids, INTERVAL_S) as hearts:
                large = Large(quorum, shape, metrics_port, only)
                large.hearts = hearts
                time.sleep(1)
                yield large
                large.client.close()


def _leads(port: int) -> bool:
    request = create_topics.CreateTopicsRequest([create_topics.CreatableTopic("t", 1, 1)], 1000, True)
    with Client(HOST, port, timeout_s=GIVE_UP_S) as client:
        return bool(client.call(request, CREATE_TOPICS_VERSION).topics[0].error_code == ErrorCode.NONE)


# -- the requests, in the order of their measurement


def creates(large: Large) -> None:
    """Create topics and partitions, placed and assigned."""
    created = create_topics.CreatableTopic
    brokers = large.shape.brokers

    def create(*topics: create_topics.CreatableTopic) -> None:
        answer = large.ask(create_topics.CreateTopicsRequest(list(topics), 60_000), CREATE_TOPICS_VERSION)
        assert not any(topic.error_code for topic in answer.topics), answer.topics[0]

    def rows(count: int, first: int = 0) -> list[create_topics.CreatableReplicaAssignment]:
        return [
            create_topics.CreatableReplicaAssignment(
                index, tuple((first + index + at) % brokers + 1 for at in range(3))
            )
            for index in range(count)
        ]

    large.measure(
        "CreateTopics: 900 topics of 10 partitions",
        lambda: create(*[created(f"many-{number}", 10, 3) for number in range(900)]),
    )
    large.measure(
        "CreateTopics: 900 topics of 10 partitions, assigned",
        lambda: create(*[created(f"assigned-{number}", -1, -1, rows(10, number)) for number in range(900)]),
    )
    large.measure("CreateTopics: a topic of 9,900 partitions", lambda: create(created("wide", 9_900, 3)))
    large.measure(
        "CreateTopics: a topic of 9,900 partitions, assigned",
        lambda: create(created("wide-assigned", -1, -1, rows(9_900))),
    )
    # One replica each, all of them on the broker that will be lost.
    alone = [
        created(
            f"alone-{number}",
            -1,
            -1,
            [create_topics.CreatableReplicaAssignment(index, (50,)) for index in range(10)],
        )
        for number in range(900)
    ]
    large.measure("CreateTopics: 900 topics of 10 partitions on one broker", lambda: create(*alone))

    def grow(*topics: CreatePartitionsTopic) -> None:
        answer = large.ask(CreatePartitionsRequest(list(topics), 60_000), 3)
        assert not any(topic.error_code for topic in answer.results), answer.results[0]

    large.measure(
        "CreatePartitions: 10 more of 990 topics",
        lambda: grow(*[CreatePartitionsTopic(name, 20, None) for name in large.names[:990]]),
    )
    large.measure(
        "CreatePartitions: 9,900 more of a topic",
        lambda: grow(CreatePartitionsTopic(large.names[1000], 9_910, None)),
    )


def configs(large: Large) -> None:
    """Change configs of very many topics."""

    def alter(names: Sequence[str], value: str) -> None:
        resources = [
            alter_configs.AlterConfigsResource(
                TOPIC, name, [alter_configs.AlterableConfig("retention.ms", SET, value)]
            )
            for name in names
        ]
        answer = large.ask(alter_configs.IncrementalAlterConfigsRequest(resources, False), 1)
        assert not any(one.error_code for one in answer.responses), answer.responses[0]

    def describe(names: Sequence[str], keys: tuple[str, ...] | None) -> None:
        resources = [DescribeConfigsResource(TOPIC, name, keys) for name in names]
        answer = large.ask(DescribeConfigsRequest(resources, False, False), 4)
        assert len(answer.results) == len(names)

    large.measure("IncrementalAlterConfigs: 10,000 topics", lambda: alter(large.names[:10_000], "1"))
    large.measure(
        "DescribeConfigs: 10,000 topics, one key", lambda: describe(large.names[:10_000], ("retention.ms",))
    )
    large.measure("DescribeConfigs: 3,000 topics, all keys", lambda: describe(large.names[:3_000], None))


def reassignments(large: Large) -> None:
    """Move replicas, and cancel the moves."""
    chosen = large.names[2_000:3_000]

    def alter(move: Callable[[tuple[int, ...]], tuple[int, ...] | None]) -> None:
        topics = []
        for name in chosen:
            assigned = large.assigned[int(name[-6:])]
            rows = [ReassignablePartition(index, move(replicas)) for index, replicas in enumerate(assigned)]
            topics.append(ReassignableTopic(name, rows))
        answer = large.ask(AlterPartitionReassignmentsRequest(60_000, topics=topics), 1)
        assert not any(row.error_code for topic in answer.responses for row in topic.partitions)

    def moved(replicas: tuple[int, ...]) -> tuple[int, ...]:
        other = next(broker for broker in range(1, large.shape.brokers) if broker not in replicas)
        return (other, *replicas[1:])

    large.measure("AlterPartitionReassignments: 10,000 partitions", lambda: alter(moved))
    large.measure(
        "ListPartitionReassignments: all of 10,000",
        lambda: large.ask(ListPartitionReassignmentsRequest(60_000, None), 0),
    )
    large.measure("AlterPartitionReassignments: 10,000 called off", lambda: alter(lambda _: None))


def leader_requests(large: Large) -> None:
    """Send requests of a broker that leads, or hosts, very many partitions."""
    broker = 20
    led = [
        (name, index, replicas)
        for name, assigned in zip(large.names[5_000:], large.assigned[5_000:], strict=True)
        for index, replicas in enumerate(assigned)
        if replicas[0] == broker
    ][:5_000]

    def propose(isr: Callable[[tuple[int, ...]], tuple[int, ...]], partition_epoch: int) -> None:
        topics: dict[str, alter_partition.TopicData] = {}
        for name, index, replicas in led:
            members = [alter_partition.BrokerState(member, member) for member in isr(replicas)]
            row = alter_partition.PartitionData(index, 0, (), members, 0, partition_epoch)
            topics.setdefault(name, alter_partition.TopicData(large.ids[name], [])).partitions.append(row)
        answer = large.ask(alter_partition.AlterPartitionRequest(broker, broker, list(topics.values())), 3)
        assert not any(row.error_code for topic in answer.topics for row in topic.partitions), answer.topics[
            0
        ]

    large.measure("AlterPartition: 5,000 ISRs shrink", lambda: propose(lambda replicas: replicas[:2], 0))
    large.measure("AlterPartition: 5,000 ISRs grow again", lambda: propose(lambda replicas: replicas, 1))

    def assign() -> None:
        topics: dict[str, TopicData] = {}
        for name, index, _ in led:
            topics.setdefault(name, TopicData(large.ids[name], [])).partitions.append(PartitionData(index))
        folder = DirectoryData(directory_of(broker), list(topics.values()))
        answer = large.ask(AssignReplicasToDirsRequest(broker, broker, [folder]), 0)
        assert not answer.error_code

    large.measure("AssignReplicasToDirs: 5,000 replicas", assign)


def brokers_lost(large: Large) -> None:
    """Lose brokers and bring them back; elect leaders."""
    assert large.hearts is not None
    hearts = large.hearts

    def beat(broker: int, epoch: int, **fields: Any) -> Any:
        _, offset = quorum_position(large.client)
        return large.ask(BrokerHeartbeatRequest(broker, epoch, offset, **fields), HEARTBEAT_VERSION)

    def register(broker: int, previous: int) -> int:
        request = BrokerRegistrationRequest(
            broker_id=broker,
            cluster_id=large.cluster_id,
            incarnation_id=Random(time.time_ns()).randbytes(16),
            listeners=[Listener("PLAINTEXT", HOST, 1000 + broker, 0)],
            features=large_features(large),
            log_dirs=(directory_of(broker),),
            previous_broker_epoch=previous,
        )
        answer = large.ask(request, 4)
        assert not answer.error_code, answer
        return int(answer.broker_epoch)

    def wait_for_fenced(broker: int) -> None:
        fenced = "broker fenced"
        before = large.node.log_text().count(fenced)
        hearts.silence(broker)
        wait_until(lambda: large.node.log_text().count(fenced) > before, "it is fenced", GIVE_UP_S)

    def lose(broker: int) -> Callable[[], None]:
        return lambda: wait_for_fenced(broker)

    def come_back(broker: int) -> Callable[[], None]:
        def back() -> None:
            epoch = register(broker, broker)
            answer = beat(broker, epoch)
            assert not answer.error_code and not answer.is_fenced

        return back

    large.measure("a broker with 30,000 replicas falls silent", lose(10))
    large.measure("it comes back", come_back(10))
    hearts.silence(10)
    large.measure(
        "ElectLeaders: preferred, all partitions",
        lambda: large.ask(ElectLeadersRequest(PREFERRED, None, 60_000), 2),
    )
    large.measure(
        "ElectLeaders: preferred, all partitions, none to do",
        lambda: large.ask(ElectLeadersRequest(PREFERRED, None, 60_000), 2),
    )
    large.measure("a broker fences itself", lambda: beat(11, 11, want_fence=True))
    large.measure("and is free again", lambda: beat(11, 11))
    large.measure(
        "a broker loses its only directory",
        lambda: large.ask(
            BrokerHeartbeatRequest(12, 12, 12, offline_log_dirs=(directory_of(12),)), HEARTBEAT_VERSION
        ),
    )
    large.measure("the broker of 9,000 single replicas falls silent", lose(50))
    large.measure(
        "ElectLeaders: unclean, all partitions",
        lambda: large.ask(ElectLeadersRequest(UNCLEAN, None, 60_000), 2),
    )
    large.measure("it comes back and leads them", come_back(50))
    large.measure("a broker falls silent", lose(30))
    large.measure(
        "UnregisterBroker of it, which has 30,000 replicas",
        lambda: large.ask(UnregisterBrokerRequest(30), 0),
    )
    large.measure("UnregisterBroker of a live one", lambda: large.ask(UnregisterBrokerRequest(31), 0))


def large_features(large: Large) -> list[Feature]:
    from kraftd.messages.api_versions_request import ApiVersionsRequest

    offered = large.client.call(ApiVersionsRequest("bench", "1"), version=4).supported_features
    return [Feature(f.name, f.min_version, f.max_version) for f in offered]


def deletes(large: Large) -> None:
    """Delete topics."""

    def delete(names: Sequence[str]) -> None:
        topics = [DeleteTopicState(name, bytes(16)) for name in names]
        answer = large.ask(DeleteTopicsRequest(topics, (), 60_000), 6)
        assert not any(topic.error_code for topic in answer.responses), answer.responses[0]

    large.measure("DeleteTopics: 10,000 topics of 10 partitions", lambda: delete(large.names[10_000:20_000]))
    large.measure("DeleteTopics: two topics of 9,900 partitions", lambda: delete(["wide", "wide-assigned"]))


PARTS: dict[str, Callable[[Large], None]] = {
    "creates": creates,
    "configs": configs,
    "reassignments": reassignments,
    "leaders": leader_requests,
    "brokers": brokers_lost,
    "deletes": deletes,
}


def table(measured: Sequence[Measured]) -> Table:
    shown = Table(title="Large requests at very many partitions")
    shown.add_column("")
    for column in ("records", "answer", "longest hold", "holds over 10 ms", "slowest heartbeat"):
        shown.add_column(column, justify="right")
    for one in measured:
        longest = f"{one.longest_ms:.1f} ms" if one.too_long else f"<= {one.longest_ms:.0f} ms"
        cells = f"{one.records:,}", f"{one.took_ms:,.0f} ms", longest, str(one.too_long)
        shown.add_row(one.name, *cells, f"{one.slowest_beat_ms:.0f} ms")
    return shown


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.large", description=__doc__)
    parser.add_argument("--topics", type=int, default=Shape.topics, help="of ten partitions each")
    parser.add_argument("--only", choices=sorted(PARTS), action="append", help="just these requests")
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    chosen = options.only or list(PARTS)
    with controller(Shape(topics=options.topics), chosen) as large:
        for name, part in PARTS.items():
            if name in chosen:
                part(large)
        measured = large.measurements
    Console(highlight=False, width=140).print(table(measured))
    if options.json is not None:
        options.json.write_text(json.dumps([vars(one) for one in measured], indent=2) + "\n")


if __name__ == "__main__":
    main()
