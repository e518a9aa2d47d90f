"""One controller with very many partitions: a hundred brokers that only heartbeat, ten partitions a topic.

It goes through one controller's life: topics are created, with single creates in between; it restarts from
the log; it writes a checkpoint and restarts from it. One broker falls silent and another shuts down, each
leading a hundredth of all partitions. A second controller catches up by snapshot. README.md describes how
every figure is taken.
"""

from __future__ import annotations

import re
import selectors
import statistics
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Figures
from bench.hearts import Beat, Hearts
from bench.load import (
    CREATE_TOPICS_VERSION,
    FETCH_VERSION,
    BenchBroker,
    create_ms,
    quorum_position,
    take_frames,
)
from bench.measure import Plan, percentile
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.types import METADATA_TOPIC_ID
from kraftd.wire.api import ApiKey
from kraftd.wire.batch import iter_batches, values
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import parse_response
from kraftd.wire.table import table_of
from testkit.client import Client
from testkit.java import AS_KAFKA_STARTS
from testkit.node import Controller, Kind
from testkit.process import HOST, wait_until
from testkit.quorum import Quorum

NODE_ID, JOINER_ID, OTHER_JOINER_ID = 100, 101, 102
PARTITIONS, REPLICAS = 10, 3
REAL_INTERVAL_S = 2.0  # of a stock broker's heartbeats
DENSE_INTERVAL_S = 0.05  # while a measurement concerns their delay
SESSION_MS = 6000
LONG_SESSION_MS = 120_000
QUIET_S = 1.0  # without changes for this long, the controller has finished
STALL_S = 0.005
POLL_S = 0.005
GIVE_UP_S = 300
NEVER = {
    "metadata.log.max.record.bytes.between.snapshots": 1 << 40,
    "metadata.log.max.snapshot.interval.ms": 0,
}
SOON = {**NEVER, "metadata.log.max.snapshot.interval.ms": 4000}
API_VERSIONS = ApiVersionsRequest("bench", "1")
CHANGE_KEY = table_of(PartitionChangeRecord).key
LONGEST_MS, TOO_LONG = re.compile(r'longest_ms"?[=:]([\d.]+)'), re.compile(r'too_long"?[=:](\d+)')


@dataclass(frozen=True)
class ScalePlan:
    """The size of each measurement."""

    brokers: int = 100
    topics: int = 100_000
    early_topics: int = 10_000  # after this many topics, single creates are measured for the second time
    topics_a_request: int = 100
    connections: int = 4
    warm_creates: int = 50
    creates: int = 200
    restarts: int = 2
    heap: str = "-Xmx4g"


FULL = ScalePlan()
QUICK = ScalePlan(topics=10_000, early_topics=1_000, warm_creates=20, creates=60, restarts=1, heap="-Xmx1g")


class World:
    """A controller, the brokers that it knows, and the figures so far."""

    def __init__(self, quorum: Quorum, plan: ScalePlan) -> None:
        self.quorum, self.plan = quorum, plan
        self.node = quorum.controllers[NODE_ID]
        self.figures: Figures = {}
        self.stalls: list[tuple[int, float]] = []

    def configure(self, **properties: object) -> None:
        self.node.properties.update(properties)
        self.node.write_properties()

    def stop(self) -> None:
        """Stop the controller, and keep the log line about its held event loop, if there is one."""
        self.node.stop(timeout_s=120)
        text = self.node.log_text()
        count, longest_ms = TOO_LONG.search(text), LONGEST_MS.search(text)
        if count is not None and longest_ms is not None:
            self.stalls.append((int(count[1]), float(longest_ms[1])))


def cpu_s(pid: int) -> float:
    """User and system seconds of a process and of its ended children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / 100


def scale(kind: Kind, plan: Plan) -> Figures:
    """Run all measurements, in the order of a controller's life."""
    size = FULL if plan == Plan() else QUICK
    with tempfile.TemporaryDirectory(prefix="kraftd-bench-") as home:
        settings = {"broker.session.timeout.ms": LONG_SESSION_MS, **NEVER}
        with Quorum(Path(home), {NODE_ID: kind}, controller_properties=settings) as quorum:
            world = World(quorum, size)
            world.node.jvm = (
                *AS_KAFKA_STARTS,
                size.heap,
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            )
            quorum.start_controllers()
            port = world.node.port
            brokers = [BenchBroker(number + 1, port, quorum.cluster_id) for number in range(size.brokers)]
            for broker in brokers:
                broker.unfence()
            ids = [(broker.broker_id, broker.broker_epoch) for broker in brokers]
            for broker in brokers:
                broker.client.close()
            with Hearts(port, ids, REAL_INTERVAL_S) as hearts:
                create_all(world)
                restart(world, "log", SOON)
                write_checkpoint(world)
                restart(world, "checkpoint", {**NEVER, "broker.session.timeout.ms": SESSION_MS})
                lose_brokers(world, hearts, ids)
                bring_up(world)
            world.stop()
    if world.stalls:
        world.figures["scale_stalls"] = sum(count for count, _ in world.stalls)
        world.figures["scale_longest_hold_ms"] = max(longest for _, longest in world.stalls)
    return world.figures


# -- creating


def create_all(world: World) -> None:
    """Create all topics over several connections, with single creates before, in between and after."""
    plan, figures = world.plan, world.figures
    with Client(HOST, world.node.port, client_id="bench", timeout_s=GIVE_UP_S) as client:
        for number in range(plan.warm_creates):
            create_ms(client, [f"warm-{number}"])
        figures["scale_create_p50_at_0_ms"] = single_creates(client, plan, "first")
        early_s = create_topics(world, 0, plan.early_topics)
        figures["scale_create_p50_at_tenth_ms"] = single_creates(client, plan, "second")
        cpu_before = cpu_s(world.node.pid)
        late_s = create_topics(world, plan.early_topics, plan.topics)
        partition_count = (plan.topics - plan.early_topics) * PARTITIONS
        figures["scale_create_cpu_us"] = (cpu_s(world.node.pid) - cpu_before) / partition_count * 1e6
        figures["scale_partitions_per_s"] = plan.topics * PARTITIONS / (early_s + late_s)
        figures["scale_create_p50_at_all_ms"] = single_creates(client, plan, "third")
    figures["scale_rss_mib"] = world.node.rss_mib()


def single_creates(client: Client, plan: ScalePlan, prefix: str) -> float:
    """The median of some creates of one topic, in milliseconds."""
    return statistics.median(create_ms(client, [f"{prefix}-{number}"]) for number in range(plan.creates))


def create_topics(world: World, first: int, end: int) -> float:
    """Seconds until all those topics are created, with one open request on each of several connections.

    Raises RuntimeError if one is refused, ConnectionError if the server closes a connection.
    """
    step = world.plan.topics_a_request
    ranges = iter([range(start, min(end, start + step)) for start in range(first, end, step)])
    selector = selectors.DefaultSelector()
    clients = [Client(HOST, world.node.port, timeout_s=GIVE_UP_S) for _ in range(world.plan.connections)]
    began = time.perf_counter()
    under_way = 0
    for client in clients:
        selector.register(client.socket, selectors.EVENT_READ, (client, bytearray()))
        under_way += _create_next(client, ranges)
    while under_way:
        for key, _ in selector.select(1):
            client, buffer = key.data
            chunk = client.socket.recv(1 << 20)
            if not chunk:
                raise ConnectionError("the server closed a connection under load")
            buffer += chunk
            done, frame = take_frames(buffer)
            if done:
                under_way += _create_next(client, ranges) - 1
                _check(frame)
    took_s = time.perf_counter() - began
    for client in clients:
        client.close()
    return took_s


def _create_next(client: Client, ranges: Iterator[range]) -> int:
    numbers = next(ranges, None)
    if numbers is None:
        return 0
    topics = [CreatableTopic(f"topic-{number:06d}", PARTITIONS, REPLICAS) for number in numbers]
    client.socket.sendall(client.frame(CreateTopicsRequest(topics, 120_000, False), CREATE_TOPICS_VERSION))
    return 1


def _check(frame: bytes) -> None:
    _, answer = parse_response(ApiKey.CREATE_TOPICS, CREATE_TOPICS_VERSION, frame)
    refused = [topic.error_code for topic in answer.topics if topic.error_code]  # type: ignore[attr-defined]
    if refused:
        raise RuntimeError(f"{len(refused)} topics were refused: error {refused[0]}")


# -- restarts


def restart(world: World, source: str, last: Mapping[str, object]) -> None:
    """Stop and start the controller several times; the last start has other properties.

    Measured are the first answer to ApiVersions, the slowest one until the controller serves, and when it
    serves: from then on it accepts a create that is only validated.
    """
    node, figures = world.node, world.figures
    answers, slowest, serves, cpu = [], [], [], []
    for number in range(world.plan.restarts):
        world.stop()
        if number == world.plan.restarts - 1:
            world.configure(**last)
        node.start()
        first_s, longest_s, serves_s = watch_start(node)
        answers.append(first_s)
        slowest.append(longest_s)
        serves.append(serves_s)
        cpu.append(node.cpu_s())
    figures[f"scale_{source}_answers_s"] = statistics.median(answers)
    figures[f"scale_{source}_slowest_answer_ms"] = max(slowest) * 1000
    figures[f"scale_{source}_serves_s"] = statistics.median(serves)
    figures[f"scale_{source}_serves_cpu_s"] = statistics.median(cpu)
    figures[f"scale_{source}_rss_mib"] = node.rss_mib()


def watch_start(node: Controller) -> tuple[float, float, float]:
    """Seconds to the first ApiVersions answer, of the slowest such answer, and until the controller serves.

    RuntimeError if it does not start.
    """
    client = first_answered(node)
    first_s, longest_s = time.monotonic() - node.started_s, 0.0
    request = CreateTopicsRequest([CreatableTopic("only-validated", 1, REPLICAS)], 60_000, True)
    with client, Client(HOST, node.port, client_id="bench", timeout_s=GIVE_UP_S) as creator:
        while True:
            asked_s = time.monotonic()
            client.call(API_VERSIONS, version=4)
            longest_s = max(longest_s, time.monotonic() - asked_s)
            code = creator.call(request, CREATE_TOPICS_VERSION).topics[0].error_code
            if code == ErrorCode.NONE:
                return first_s, longest_s, time.monotonic() - node.started_s
            time.sleep(POLL_S)


def first_answered(node: Controller) -> Client:
    """A connection on which ApiVersions was answered; requests are repeated from the start on."""
    deadline_s = time.monotonic() + GIVE_UP_S
    while node.alive and time.monotonic() < deadline_s:
        try:
            client = Client(HOST, node.port, client_id="bench", timeout_s=GIVE_UP_S)
            client.call(API_VERSIONS, version=4)
        except OSError:
            time.sleep(POLL_S)
        else:
            return client
    raise RuntimeError(f"{node!r} does not start:\n{node.log_tail()}")


# -- the checkpoint


def write_checkpoint(world: World) -> None:
    """Wait for the checkpoint that is due by its age, and measure all processes of the controller."""
    node, figures = world.node, world.figures
    began_s = cpu_before_s = 0.0
    deadline_s = time.monotonic() + GIVE_UP_S
    while not (checkpoints := snapshots(node.metadata_dir, ".checkpoint")):
        if time.monotonic() > deadline_s:
            raise RuntimeError(f"{node!r} makes no checkpoint:\n{node.log_tail()}")
        if not began_s:
            now_s, used_s = time.monotonic(), cpu_s(node.pid)
            if children(node.pid) or snapshots(node.metadata_dir, ".part"):
                began_s = now_s
            else:
                cpu_before_s = used_s
        time.sleep(POLL_S)
    figures["scale_checkpoint_s"] = time.monotonic() - began_s
    wait_until(lambda: not children(node.pid), "the daemon has reaped the writer", GIVE_UP_S, poll_s=POLL_S)
    figures["scale_checkpoint_cpu_s"] = cpu_s(node.pid) - cpu_before_s
    figures["scale_checkpoint_mib"] = checkpoints[-1].stat().st_size / (1 << 20)
    figures["scale_checkpoint_peak_rss_mib"] = node.peak_rss_mib()


def snapshots(folder: Path, suffix: str) -> list[Path]:
    """The snapshots' files with that suffix, without the one that formatting writes at offset 0."""
    return sorted(path for path in folder.glob(f"*{suffix}") if not path.name.startswith("0" * 20))


def children(pid: int) -> list[str]:
    """The child processes that a process has not waited for yet."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [child for task in tasks for child in task.read_text().split()]


# -- brokers lost


@dataclass
class Moved:
    """An observer's view of changing partitions: the number of records, and two times (time.time).

    The first is the timestamp of the first batch, the second is when the last record was known to be
    committed.
    """

    count: int = 0
    first_s: float = 0.0
    last_s: float = 0.0


def lose_brokers(world: World, hearts: Hearts, ids: list[tuple[int, int]]) -> None:
    """Lose a broker by missing heartbeats, then another by its controlled shutdown."""
    hearts.every(DENSE_INTERVAL_S)
    time.sleep(SESSION_MS / 1000 / 2)  # afterwards every session has begun with one of these heartbeats
    for name, broker_id, lose in (
        ("fence", ids[0][0], hearts.silence),
        ("shutdown", ids[1][0], hearts.shut_down),
    ):
        with Client(HOST, world.node.port, client_id="bench", timeout_s=GIVE_UP_S) as client:
            hearts.take()
            position = quorum_position(client)
            lose(broker_id)
            moved = watch_changes(client, world.quorum.cluster_id, *position)
        began_s, took_ms = during(hearts.take(), moved)
        world.figures[f"scale_{name}_ms"] = (moved.last_s - began_s) * 1000
        world.figures[f"scale_{name}_records"] = moved.count
        if took_ms:  # there are none if the machine is so busy that sessions end without any answer
            world.figures[f"scale_{name}_heartbeat_p50_ms"] = statistics.median(took_ms)
            world.figures[f"scale_{name}_heartbeat_p99_ms"] = percentile(took_ms, 0.99)
            world.figures[f"scale_{name}_heartbeat_max_ms"] = max(took_ms)


def during(beats: list[Beat], moved: Moved) -> tuple[float, list[float]]:
    """When the controller began its changes, and the milliseconds of heartbeats from then to their end.

    It may have begun before the first record: heartbeats that were then waiting show since when.
    """
    waiting = [
        beat.due_s
        for beat in beats
        if beat.took_s > STALL_S and beat.due_s < moved.first_s < beat.due_s + beat.took_s
    ]
    began_s = min([*waiting, moved.first_s])
    meanwhile = [
        beat.took_s * 1000
        for beat in beats
        if beat.due_s + beat.took_s >= began_s and beat.due_s <= moved.last_s
    ]
    return began_s, meanwhile


def watch_changes(client: Client, cluster_id: str, epoch: int, offset: int) -> Moved:
    """Fetch as an observer from there on, until partitions have changed and no more change."""
    moved, last_change = Moved(), -1
    deadline_s = time.time() + GIVE_UP_S
    while time.time() < deadline_s:
        answer = client.call(observer_fetch(cluster_id, epoch, offset), FETCH_VERSION)
        now_s = time.time()
        (partition,) = answer.responses[0].partitions
        for batch in iter_batches(partition.records or b"", verify=False):
            offset = batch.header.next_offset
            if batch.header.is_control:
                continue
            changes = sum(value[1] == CHANGE_KEY for value in values(batch))
            if changes:
                moved.first_s = moved.first_s or batch.header.max_timestamp_ms / 1000
                moved.count += changes
                last_change = offset - 1
        if 0 <= last_change < partition.high_watermark:
            moved.last_s, last_change = now_s, -1
        if last_change < 0 and moved.last_s and now_s - moved.last_s > QUIET_S:
            return moved
    raise RuntimeError("no partition has changed")


def observer_fetch(cluster_id: str, epoch: int, offset: int) -> FetchRequest:
    """A fetch like a broker's, which waits a little at the end of the log."""
    partition = FetchPartition(
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=epoch,
        partition_max_bytes=8 << 20,
        replica_directory_id=uuid.UUID(int=77).bytes,
    )
    return FetchRequest(
        cluster_id=cluster_id,
        replica_state=ReplicaState(9000, -1),
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=8 << 20,
        session_epoch=-1,
        topics=[FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])],
    )


# -- a new voter


def bring_up(world: World) -> None:
    """Let two more controllers, formatted and empty, begin with the leader's snapshot: one of each kind."""
    other: Kind = "apache" if world.node.kind == "kraftd" else "kraftd"
    world.figures["scale_bring_up_mb_s"] = _bring_up(world, JOINER_ID, world.node.kind)
    world.figures["scale_bring_up_other_mb_s"] = _bring_up(world, OTHER_JOINER_ID, other)
    world.figures["scale_bring_up_peak_rss_mib"] = world.node.peak_rss_mib()


def _bring_up(world: World, node_id: int, kind: Kind) -> float:
    """MB/s at which a new controller fetches the snapshot; the controller is killed afterwards."""
    joiner = world.quorum.plan_observer(node_id, kind)
    joiner.jvm = world.node.jvm
    joiner.format(world.quorum.cluster_id, "--no-initial-controllers")
    seen: list[tuple[float, int]] = []  # time and size at the download's beginning and end
    watching = threading.Thread(target=_watch_download, args=(joiner.metadata_dir, seen))
    watching.start()
    joiner.start()  # in this thread, since a child ends with the thread that starts it
    watching.join()
    joiner.kill()
    (began_s, first_bytes), (ended_s, all_bytes) = seen
    return (all_bytes - first_bytes) / 1e6 / (ended_s - began_s)


def _watch_download(folder: Path, seen: list[tuple[float, int]]) -> None:
    deadline_s = time.monotonic() + GIVE_UP_S
    while not (finished := snapshots(folder, ".checkpoint")) and time.monotonic() < deadline_s:
        parts = [] if seen else snapshots(folder, ".part")
        with suppress(FileNotFoundError):
            seen += [(time.monotonic(), path.stat().st_size) for path in parts[:1]]
        time.sleep(0.001)
    seen += [(time.monotonic(), path.stat().st_size) for path in finished[:1]]
