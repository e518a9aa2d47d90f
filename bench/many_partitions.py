"""``python -m bench.many_partitions``: one node that is a whole Kafka, with very many idle partitions.

Measured are its memory and CPU with them, and how long single requests for 10,000 of them hold its event
loop. README.md describes how.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kraftd.messages.delete_topics_request import DeleteTopicsRequest
from kraftd.messages.describe_log_dirs_request import DescribeLogDirsRequest
from kraftd.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftd.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kraftd.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kraftd.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kraftd.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kraftd.wire.records import build_records_batch
from testkit.client import Client
from testkit.process import HOST, Process, free_port, wait_until

CLUSTER_ID = "J2-XQFCPQPqlsMLqSD6K7g"
PARTITIONS_OF_A_TOPIC = 1_000
NAMED = 10_000  # partitions of a request
GIVE_UP_S = 60
MADE_A_SECOND = 200  # logs, at least
HELD = "the event loop was held"
BUCKET = re.compile(r'kraftd_loop_step_seconds_bucket\{le="([^"]+)"\} (\d+)')
Parts = list[tuple[str, range]]


class Node:
    """The process, and what its metrics and log say."""

    def __init__(self, home: Path, open_files: int, callbacks: str | None) -> None:
        self.port, controller_port, self.metrics_port = free_port(), free_port(), free_port()
        config = home / "server.properties"
        config.write_text(
            f"""process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://{HOST}:{self.port},CONTROLLER://{HOST}:{controller_port}
controller.listener.names=CONTROLLER
controller.quorum.voters=1@{HOST}:{controller_port}
log.dirs={home / "data"}
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
kraftd.metrics.listener={HOST}:{self.metrics_port}
kraftd.log.level=debug
"""
        )
        kraftd = [sys.executable, "-m", "kraftd"]
        limited = ["/bin/bash", "-c", f'ulimit -n {open_files}; exec "$@"', "bash", *kraftd]
        form = Process("format", home, lambda: [*kraftd, "format", "-c", str(config), "-t", CLUSTER_ID])
        form.start()
        wait_until(lambda: not form.alive, "the directory is formatted", GIVE_UP_S)
        timed = [*limited[:-3], sys.executable, "-m", "bench.loop_callbacks", callbacks or ""]
        command = limited if callbacks is None else timed
        self.process = Process("kraftd", home, lambda: [*command, "start", str(config)])
        self.start(GIVE_UP_S)

    def start(self, most_s: float) -> None:
        """Start the process, and wait until it serves."""
        self.process.start()
        wait_until(self._serves, "it serves", most_s)
        self.client = Client(HOST, self.port, client_id="bench", timeout_s=GIVE_UP_S)

    def _serves(self) -> bool:
        try:
            with Client(HOST, self.port, timeout_s=5) as client:
                return bool(client.call(MetadataRequest([]), 12).brokers)
        except OSError:
            return False

    def buckets(self) -> dict[float, int]:
        """The number of steps per histogram bucket, by the bucket's upper bound in milliseconds."""
        with urllib.request.urlopen(f"http://{HOST}:{self.metrics_port}/metrics", timeout=60) as answer:
            text = answer.read().decode()
        counts: dict[float, int] = {}
        below = 0
        for bound, count in BUCKET.findall(text):
            counts[float(bound) * 1000] = int(count) - below
            below = int(count)
        return counts

    def measure(self, name: str, work: Callable[[], object]) -> None:
        """Run a request; print its time and the longest step of the event loop."""
        time.sleep(0.3)
        before, position = self.buckets(), len(self.process.log_text())
        began_s = time.perf_counter()
        work()
        took_ms = (time.perf_counter() - began_s) * 1000
        time.sleep(0.3)
        after = self.buckets()
        below = max((bound for bound in after if after[bound] > before.get(bound, 0)), default=0.0)
        lines = self.process.log_text()[position:].splitlines()
        holds = [json.loads(line) for line in lines if HELD in line]
        longest = max((float(hold["took_ms"]) for hold in holds), default=below)
        by = ", ".join(sorted({str(hold["by"]) for hold in holds}))
        print(f"| {name} | {took_ms:,.0f} ms | {longest:g} ms | {len(holds)} {by} |", flush=True)


@contextmanager
def node(open_files: int, callbacks: str | None) -> Iterator[Node]:
    """A combined node that serves."""
    with tempfile.TemporaryDirectory(prefix="kraftd-bench-") as home:
        found = Node(Path(home), open_files, callbacks)
        try:
            yield found
        finally:
            found.process.stop()


def fill(node: Node, count: int) -> Parts:
    """Create the partitions; returns their topics."""
    parts = [(f"t{n:04d}", range(PARTITIONS_OF_A_TOPIC)) for n in range(count // PARTITIONS_OF_A_TOPIC)]
    for at in range(0, len(parts), 9):
        topics = [CreatableTopic(name, len(indexes), 1) for name, indexes in parts[at : at + 9]]
        answer = node.client.call(CreateTopicsRequest(topics, 60_000), 7)
        assert not any(one.error_code for one in answer.topics), answer
    wait_until(lambda: is_open(node, parts), "all logs are open", most_s(count), poll_s=0.1)
    return parts


def most_s(count: int) -> float:
    """How long the work on so many logs may take."""
    return GIVE_UP_S + count / MADE_A_SECOND


def is_open(node: Node, parts: Parts) -> bool:
    """Return whether the last log serves; logs are made in the order of their creation."""
    name, indexes = parts[-1]
    answer = node.client.call(ListOffsetsRequest(-1, 0, [_listing((name, indexes[-1:]), -1)]), 6)
    return not answer.topics[0].partitions[0].error_code


def restarts(node: Node, parts: Parts, count: int, idle_s: int) -> None:
    """Measure a start after a clean stop, and one after a kill."""
    stop = partial(node.process.stop, most_s(count))
    for name, end in (("a clean stop", stop), ("a kill", node.process.kill)):
        node.client.close()
        began_s = time.perf_counter()
        end()
        stopped_s = time.perf_counter() - began_s
        began_s = time.perf_counter()
        node.start(most_s(count))
        wait_until(lambda: is_open(node, parts), "all logs are open", most_s(count), poll_s=0.1)
        took_s, cpu_s = time.perf_counter() - began_s, node.process.cpu_s()
        mib, percent = idle(node, idle_s)
        print(
            f"{name} took {stopped_s:.1f} s; the next start {took_s:.1f} s, {cpu_s:.1f} s of a core; "
            f"then {mib:.0f} MiB, {percent:.2f} % of a core",
            flush=True,
        )


def _listing(part: tuple[str, range], timestamp: int) -> ListOffsetsTopic:
    return ListOffsetsTopic(part[0], [ListOffsetsPartition(n, timestamp=timestamp) for n in part[1]])


def _records() -> bytes:
    return bytes(build_records_batch([(int(time.time() * 1000), None, b"x" * 20, ())]))


def requests(node: Node, parts: Parts) -> None:
    """Measure the requests that name 10,000 partitions."""
    call, all_parts = node.client.call, parts
    parts = parts[: NAMED // PARTITIONS_OF_A_TOPIC]
    batch = _records()

    def produce(topics: Parts, acks: int) -> None:
        data = [
            TopicProduceData(name, partition_data=[PartitionProduceData(n, batch) for n in indexes])
            for name, indexes in topics
        ]
        answer = call(ProduceRequest(None, acks, 60_000, data), 12)
        assert not any(one.error_code for topic in answer.responses for one in topic.partition_responses)

    for acks in (1, -1):
        node.measure(f"Produce, a record each, acks={acks}", partial(produce, parts, acks))
    names = [MetadataRequestTopic(name=name) for name, _ in parts]
    node.measure("Metadata", lambda: call(MetadataRequest(names), 12))
    for text, timestamp in (("latest", -1), ("by time", 1), ("of the largest timestamp", -3)):
        listed = [_listing(part, timestamp) for part in parts]
        request = ListOffsetsRequest(-1, 0, listed)
        node.measure(f"ListOffsets, {text}", partial(call, request, 7))
    epochs = [
        OffsetForLeaderTopic(name, [OffsetForLeaderPartition(n, leader_epoch=0) for n in indexes])
        for name, indexes in parts
    ]
    node.measure("OffsetForLeaderEpoch", lambda: call(OffsetForLeaderEpochRequest(-1, epochs), 4))
    producers = DescribeProducersRequest([TopicRequest(name, tuple(indexes)) for name, indexes in parts])
    node.measure("DescribeProducers", lambda: call(producers, 0))
    deleted = [
        DeleteRecordsTopic(name, [DeleteRecordsPartition(n, 1) for n in indexes]) for name, indexes in parts
    ]
    node.measure("DeleteRecords", lambda: call(DeleteRecordsRequest(deleted, 60_000), 2))
    node.measure("DescribeLogDirs of all", lambda: call(DescribeLogDirsRequest(None), 4))
    groups(node, parts)
    fetches(node, all_parts, batch)
    node.measure(
        "DeleteTopics of 2,000 partitions",
        lambda: call(DeleteTopicsRequest([], tuple(name for name, _ in parts[:2]), 60_000), 5),
    )


def groups(node: Node, parts: Parts) -> None:
    """Measure what a group asks for 10,000 partitions."""
    call = node.client.call
    found = FindCoordinatorRequest(key_type=0, coordinator_keys=tuple(f"g{n}" for n in range(NAMED)))

    def has_coordinator() -> bool:
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=("g",))
        answer = call(OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g")]), 8)
        return not call(request, 4).coordinators[0].error_code and not answer.groups[0].error_code

    wait_until(has_coordinator, "the group has a coordinator", 60)
    node.measure("FindCoordinator of 10,000 groups", lambda: call(found, 4))
    commits = [
        OffsetCommitRequestTopic(
            name, partitions=[OffsetCommitRequestPartition(n, 1, committed_metadata="") for n in indexes]
        )
        for name, indexes in parts
    ]
    commit = OffsetCommitRequest("g", -1, "", topics=commits)

    def commit_all() -> None:
        answer = call(commit, 8)
        assert not any(one.error_code for topic in answer.topics for one in topic.partitions), answer

    node.measure("OffsetCommit", commit_all)
    named = [OffsetFetchRequestTopics(name, partition_indexes=tuple(indexes)) for name, indexes in parts]
    for text, topics in (("named", named), ("all", None)):
        fetch = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=topics)])
        node.measure(f"OffsetFetch, {text}", partial(call, fetch, 8))
    offsets = [
        OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(n) for n in indexes])
        for name, indexes in parts
    ]
    node.measure("OffsetDelete", lambda: call(OffsetDeleteRequest("g", offsets), 0))


def fetches(node: Node, parts: Parts, batch: bytes) -> None:
    """Measure a session of all partitions: made, then a fetch in which 10 have changed, then closed."""
    call = node.client.call
    topics = [
        FetchTopic(name, partitions=[FetchPartition(n, -1, 1, partition_max_bytes=1 << 20) for n in indexes])
        for name, indexes in parts
    ]
    found: dict[str, int] = {}

    def fetch(epoch: int, wait_ms: int, topics: Sequence[FetchTopic], offset: int | None = None) -> Any:
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=1 << 25,
            session_id=found.get("session", 0),
            session_epoch=epoch,
            topics=list(topics),
        )
        answer = call(request, 12)
        assert not answer.error_code, answer.error_code
        found["session"] = answer.session_id
        found["count"] = sum(len(topic.partitions) for topic in answer.responses)
        return answer

    total = sum(len(topic.partitions) for topic in topics)
    node.measure(f"Fetch, a session of {total:,}", lambda: fetch(0, 0, topics))
    assert found["session"], "no session"
    data = [TopicProduceData(parts[0][0], partition_data=[PartitionProduceData(n, batch) for n in range(10)])]
    call(ProduceRequest(None, 1, 60_000, data), 12)
    node.measure("Fetch, 10 of them changed", lambda: fetch(1, 500, ()))
    node.measure("Fetch, the session closed", lambda: fetch(-1, 0, ()))
    found["session"] = 0
    node.measure(f"Fetch without a session of {total:,}", lambda: fetch(-1, 0, topics))
    node.measure("the same, parked for 500 ms", lambda: fetch(-1, 500, [_at_end(one) for one in topics]))


def _at_end(topic: FetchTopic) -> FetchTopic:
    count = len(topic.partitions)
    rows = [FetchPartition(n, -1, 2 if n < 10 else 1, partition_max_bytes=1 << 20) for n in range(count)]
    return FetchTopic(topic.topic, partitions=rows)


def idle(node: Node, seconds: int) -> tuple[float, float]:
    """Resident MiB, and the share of a core while nothing is asked."""
    time.sleep(5)
    before_s = node.process.cpu_s()
    time.sleep(seconds)
    return node.process.rss_mib(), (node.process.cpu_s() - before_s) / seconds * 100


def written(node: Node, parts: Parts, seconds: int) -> float:
    """The share of a core while one partition gets a record a second."""
    batch, (topic, _) = _records(), parts[0]
    request = ProduceRequest(
        None, 1, 60_000, [TopicProduceData(topic, partition_data=[PartitionProduceData(0, batch)])]
    )
    before_s, end_s = node.process.cpu_s(), time.monotonic() + seconds
    while time.monotonic() < end_s:
        node.client.call(request, 12)
        time.sleep(1)
    return (node.process.cpu_s() - before_s) / seconds * 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--open-files", type=int, default=1_024)
    parser.add_argument("--idle-s", type=int, default=20)
    parser.add_argument("--only-idle", action="store_true")
    parser.add_argument("--restarts", action="store_true", help="stop and kill the node, and start it again")
    parser.add_argument("--callbacks", help="a file for callbacks of the event loop with too much CPU time")
    options = parser.parse_args()
    with node(options.open_files, options.callbacks) as found:
        empty_mib, empty_percent = idle(found, options.idle_s)
        began_s = time.perf_counter()
        parts = fill(found, options.partitions)
        took_s = time.perf_counter() - began_s
        full_mib, full_percent = idle(found, options.idle_s)
        print(f"{options.partitions:,} partitions, made in {took_s:.1f} s, {options.open_files} open files")
        print(f"idle: {empty_mib:.0f} MiB, then {full_mib:.0f} MiB ({full_mib - empty_mib:+.0f});", end=" ")
        print(f"{empty_percent:.2f} %, then {full_percent:.2f} % of a core", end=", ")
        print(f"{written(found, parts, options.idle_s):.2f} % with a record a second in one")
        if not options.only_idle:
            print("| request | answered after | longest step | steps over 10 ms |\n|---|---|---|---|")
            requests(found, parts)
        if options.restarts:
            restarts(found, parts, options.partitions, options.idle_s)


if __name__ == "__main__":
    main()
