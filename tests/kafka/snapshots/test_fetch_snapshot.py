"""FetchSnapshot, and the fetches that lead to it, sent to both controllers on copies of one directory."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftd.messages.fetch_snapshot_request import (
    FetchSnapshotRequest,
    PartitionSnapshot,
    SnapshotId,
    TopicSnapshot,
)
from kraftd.metadata_dir.files.checkpoint import checkpoint_name
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID, OffsetAndEpoch
from kraftd.wire.error_code import ErrorCode
from testkit.client import Client
from testkit.cluster import Cluster
from testkit.node import Controller, Kind
from testkit.process import HOST, wait_until
from testkit.quorum import DESCRIBE
from tests.cli.run import run
from tests.kafka.snapshots.compacting import first_segment, snapshots

pytestmark = pytest.mark.kafka
# No-op records fill the log soon.
MAKING = {
    "metadata.log.max.record.bytes.between.snapshots": 1500,
    "internal.metadata.log.segment.bytes": 2000,
    "metadata.max.retention.bytes": 15_000,
    "metadata.max.idle.interval.ms": 10,
    "internal.metadata.delete.delay.millis": 0,
}
OBSERVER = 7
LARGE = 2**31 - 1


@dataclass
class Side:
    """One controller with the directory, and the facts that requests need."""

    client: Client
    cluster_id: str
    epoch: int
    first_segment: int
    oldest: OffsetAndEpoch
    newest: OffsetAndEpoch
    size: int
    address: str
    data: Path

    def snapshot(
        self,
        *,
        partition: int = 0,
        epoch: int = 0,
        at: OffsetAndEpoch | None = None,
        position: int = 0,
    ) -> PartitionSnapshot:
        """One partition of a request; `epoch` is added to the right one."""
        snapshot_id = SnapshotId(*(at or self.newest))
        return PartitionSnapshot(partition, self.epoch + epoch, snapshot_id, position)

    def request(self, *topics: TopicSnapshot, **more: Any) -> FetchSnapshotRequest:
        values = {"cluster_id": self.cluster_id, "replica_id": OBSERVER, "max_bytes": LARGE, **more}
        return FetchSnapshotRequest(topics=list(topics), **values)

    def one(self, max_bytes: int = LARGE, **more: Any) -> FetchSnapshotRequest:
        return self.request(topic(self.snapshot(**more)), max_bytes=max_bytes)

    def fetch(self, offset: int, epoch: int) -> FetchRequest:
        partition = FetchPartition(0, self.epoch, offset, epoch, -1, 0)
        topics = [FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])]
        return FetchRequest(
            cluster_id=self.cluster_id, replica_state=ReplicaState(OBSERVER, -1), max_bytes=1, topics=topics
        )

    def answer_view(self, request: Any, version: int) -> Any:
        """The answer without addresses and the log start, which Kafka forgets at a restart."""
        response = self.client.call(request, version)
        if isinstance(request, FetchRequest):
            [partition] = response.responses[0].partitions
            records = bytes(partition.records or b"")
            return partition.error_code, partition.snapshot_id, partition.diverging_epoch, records
        nodes = [node.node_id for node in response.node_endpoints]
        return response.error_code, response.topics, nodes


def topic(*partitions: PartitionSnapshot, name: str = METADATA_TOPIC) -> TopicSnapshot:
    return TopicSnapshot(name, list(partitions))


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """Kafka's and kraftd's, in the epoch after the one in which kraftd made the files."""
    home = tmp_path_factory.mktemp("files")
    with Cluster(home, "kraftd", controller_properties=MAKING) as maker, ExitStack() as stack:
        maker.start_controller()
        wait_until(lambda: froze_with_late_log(maker.controller), "a log that begins late")
        maker.controller.kill()
        found = []
        kinds: tuple[Kind, Kind] = ("apache", "kraftd")
        for kind in kinds:
            quiet = {"metadata.max.idle.interval.ms": 0}
            cluster = stack.enter_context(Cluster(home / kind, kind, controller_properties=quiet))
            shutil.copytree(maker.controller.data, cluster.controller.data)
            cluster.controller.start()
            cluster.controller.wait_ready()
            found.append(side_of(stack, cluster, maker.cluster_id))
        yield found[0], found[1]


def froze_with_late_log(controller: Controller) -> bool:
    """Return whether the controller is frozen now, with a log that begins late and two snapshots.

    While it runs, its retention may delete the older snapshot at any time, after the segments below it. A log
    that begins behind its oldest snapshot is in the middle of that, and the next start ends it.
    """
    controller.freeze()
    directory = controller.metadata_dir
    found = snapshots(directory)
    if len(found) > 1 and 0 < first_segment(directory) <= found[0].offset:
        return True
    controller.thaw()
    return False


def side_of(stack: ExitStack, cluster: Cluster, cluster_id: str) -> Side:
    directory = cluster.controller.metadata_dir
    oldest, *_, newest = snapshots(directory)
    size = (directory / checkpoint_name(newest)).stat().st_size
    client = stack.enter_context(Client(HOST, cluster.controller.port))
    epoch = client.call(DESCRIBE, 2).topics[0].partitions[0].leader_epoch
    return Side(
        client, cluster_id, epoch, first_segment(directory), oldest, newest, size,
        cluster.controller.address, cluster.controller.data,
    )  # fmt: skip


ALIKE: dict[str, Callable[[Side], Any]] = {
    "all of it": lambda side: side.one(),
    "one byte": lambda side: side.one(1),
    "no bytes": lambda side: side.one(0),
    "a piece that begins in the middle of a batch": lambda side: side.one(100, position=33),
    "the last byte": lambda side: side.one(position=side.size - 1),
    "an older one": lambda side: side.one(100, at=side.oldest),
    "another cluster": lambda side: side.request(topic(side.snapshot()), cluster_id="x"),
    "no cluster": lambda side: side.request(topic(side.snapshot()), cluster_id=None),
    "no replica id": lambda side: side.request(topic(side.snapshot()), replica_id=-1),
    "two topics, the first with two partitions": lambda side: side.request(
        topic(side.snapshot(), side.snapshot(), name="x"), topic(side.snapshot())
    ),
    "a fetch at 0": lambda side: side.fetch(0, 0),
    "a fetch below the log start": lambda side: side.fetch(side.first_segment - 1, side.newest.epoch),
    "a fetch at the oldest snapshot": lambda side: side.fetch(*side.oldest),
    "a fetch there with another epoch": lambda side: side.fetch(side.oldest.offset, 0),
    "a fetch at the newest snapshot": lambda side: side.fetch(*side.newest),
}


@pytest.mark.parametrize("name", ALIKE)
def test_both_controllers_answer_alike(sides: tuple[Side, Side], name: str) -> None:
    request = ALIKE[name](sides[1])
    for version in (17, 18) if isinstance(request, FetchRequest) else (0, 1):
        kafkas, ours = (side.answer_view(request, version) for side in sides)
        assert ours == kafkas


REFUSED: dict[str, tuple[ErrorCode, Callable[[Side], Any]]] = {
    "behind the end": (ErrorCode.POSITION_OUT_OF_RANGE, lambda side: side.one(position=side.size)),
    "far behind the end": (ErrorCode.POSITION_OUT_OF_RANGE, lambda side: side.one(position=2**40)),
    "before the beginning": (ErrorCode.POSITION_OUT_OF_RANGE, lambda side: side.one(position=-1)),
    "another offset": (
        ErrorCode.SNAPSHOT_NOT_FOUND,
        lambda side: side.one(at=OffsetAndEpoch(side.newest.offset + 1, side.newest.epoch)),
    ),
    "another epoch": (
        ErrorCode.SNAPSHOT_NOT_FOUND,
        lambda side: side.one(at=OffsetAndEpoch(side.newest.offset, side.newest.epoch + 1)),
    ),
    "the bootstrap checkpoint": (
        ErrorCode.SNAPSHOT_NOT_FOUND,
        lambda side: side.one(at=OffsetAndEpoch(0, 0)),
    ),
    "no snapshot id": (ErrorCode.SNAPSHOT_NOT_FOUND, lambda side: side.one(at=OffsetAndEpoch(-1, -1))),
    "the epoch before": (ErrorCode.FENCED_LEADER_EPOCH, lambda side: side.one(epoch=-1)),
    "the epoch after": (ErrorCode.UNKNOWN_LEADER_EPOCH, lambda side: side.one(epoch=1)),
    "another topic": (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        lambda side: side.request(topic(side.snapshot(), name="x")),
    ),
    "another partition": (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, lambda side: side.one(partition=1)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_has_an_error_that_kafka_fails_to_encode(sides: tuple[Side, Side], name: str) -> None:
    error, make = REFUSED[name]
    for version in (0, 1):
        kafkas, ours = (side.answer_view(make(side), version) for side in sides)
        assert kafkas == (ErrorCode.UNKNOWN_SERVER_ERROR, [], [])
        assert (ours[0], ours[1][0].partitions[0].error_code) == (ErrorCode.NONE, error)


SEVERAL: dict[str, Callable[[Side], tuple[TopicSnapshot, ...]]] = {
    "two partitions": lambda side: (topic(side.snapshot(partition=1), side.snapshot(position=5)),),
    "one partition twice": lambda side: (topic(side.snapshot(position=5), side.snapshot(position=9)),),
    "two topics": lambda side: (topic(side.snapshot(), name="x"), topic(side.snapshot(position=5))),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_the_metadata_partition_gets_the_bytes_of_unknown_partitions(
    sides: tuple[Side, Side], name: str
) -> None:
    pieces = []
    for side in sides:
        _, topics, _ = side.answer_view(side.request(*SEVERAL[name](side), max_bytes=101), 1)
        [piece] = topics[0].partitions
        assert (topics[0].name, piece.index, piece.position, piece.size) == (METADATA_TOPIC, 0, 5, side.size)
        pieces.append(bytes(piece.unaligned_records))
    assert len(pieces[0]) == 101 and pieces[1] == pieces[0]


FATAL: dict[str, tuple[ErrorCode, Callable[[Side], Any]]] = {
    "no topic": (ErrorCode.INVALID_REQUEST, lambda side: side.request()),
    "no partition": (ErrorCode.INVALID_REQUEST, lambda side: side.request(topic())),
    "fewer than no bytes": (ErrorCode.NONE, lambda side: side.one(-1)),
    "the leader asks itself": (
        ErrorCode.NONE,
        lambda side: side.request(topic(side.snapshot()), replica_id=100),
    ),
}


@pytest.mark.parametrize("name", FATAL)
def test_requests_that_end_kafkas_controller_are_answered_by_kraftd(
    sides: tuple[Side, Side], name: str
) -> None:
    error, make = FATAL[name]
    for version in (0, 1):
        assert sides[1].answer_view(make(sides[1]), version)[0] == error


def test_the_commands_read_snapshots_of_either_kind(sides: tuple[Side, Side]) -> None:
    for side in sides:
        by_quorum, by_files = ("--bootstrap", side.address), ("--directory", side.data)
        for words in (
            ("show", "--json"),
            ("show", "/provenance", "--as-of", side.newest.offset - 1),
            ("show", "/features", "--as-of", side.newest.offset + 1, "--json"),
            ("history", "--from", side.newest.offset, "--json"),
            ("topics", "--json"),
        ):
            of_quorum, of_files = run(*words, *by_quorum), run(*words, *by_files)
            assert (of_quorum.code, of_quorum.out) == (0, of_files.out), (words, of_quorum, of_files)
        refused = run("show", "--as-of", side.oldest.offset - 2, *by_quorum)
        assert refused.code == 1 and "is before what the log still covers" in refused.err
