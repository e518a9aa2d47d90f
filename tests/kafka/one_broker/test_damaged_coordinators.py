"""A bit flips in a partition of each coordinator. After a clean stop that partition alone is not served,
until its file is restored. After a kill the log is cut where Apache Kafka cuts it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftd.wire.error_code import ErrorCode
from testkit.node import Kind
from testkit.process import wait_until
from tests.kafka.one_broker.coordinators_on_disk import (
    GROUPS,
    PARTITIONS,
    SHARES,
    STEPS,
    TOPICS,
    TRANSACTIONS,
    CoordinatorsOnDisk,
    flip,
)

pytestmark = pytest.mark.kafka

DAMAGED = 0  # the partition
CONTENT = {GROUPS: "groups", TRANSACTIONS: "transactional ids", SHARES: "share partitions"}
CUT = {
    GROUPS: 10,
    TRANSACTIONS: 10,
    SHARES: 9,
}  # what is left of a key; the initialization is a record of shares


@pytest.fixture
def coordinators(tmp_path: Path) -> Iterator[CoordinatorsOnDisk]:
    made = CoordinatorsOnDisk(tmp_path / "node", "kraftd")
    yield made
    made.node.kill()


def start_as(coordinators: CoordinatorsOnDisk, kind: Kind) -> None:
    coordinators.node.kind = kind
    coordinators.node.start()
    coordinators.node.wait_ready()
    for topic in TOPICS:
        wait_until(lambda topic=topic: coordinators.is_found(topic), f"{topic} is found", 60)  # type: ignore[misc]


def assert_all_serve(coordinators: CoordinatorsOnDisk) -> None:
    for topic in TOPICS:
        for index in range(PARTITIONS):
            key = coordinators.key_of(topic, index)
            wait_until(
                lambda of=(topic, key): coordinators.write(*of, STEPS + 1) == 0,  # type: ignore[misc]
                f"{topic}-{index} serves",
                60,
            )


def test_a_damaged_partition_goes_offline_alone_until_its_file_is_restored(
    coordinators: CoordinatorsOnDisk, tmp_path: Path
) -> None:
    node = coordinators.node
    assert node.stop() == 0
    shutil.copytree(node.data, tmp_path / "sound")
    where = {topic: flip(coordinators.segment(topic, DAMAGED)) for topic in TOPICS}
    shutil.copytree(node.data, tmp_path / "damaged")
    start_as(coordinators, "kraftd")
    for topic in TOPICS:
        code, _ = coordinators.settled(topic, DAMAGED, serves=False)
        assert code == ErrorCode.NOT_COORDINATOR, topic
        key = coordinators.key_of(topic, DAMAGED)
        assert coordinators.write(topic, key, STEPS + 1) == ErrorCode.NOT_COORDINATOR, topic
        for index in set(range(PARTITIONS)) - {DAMAGED}:
            assert coordinators.settled(topic, index) == (0, STEPS), f"{topic}-{index}"
        position, offset = where[topic]
        line = next(line for line in node.log_text().splitlines() if f"{CONTENT[topic]} could not be" in line)
        assert f'"partition":"{topic}-{DAMAGED}"' in line
        assert f"{coordinators.segment(topic, DAMAGED)}, byte {position} (offset {offset})" in line

    assert node.stop() == 0
    for topic in TOPICS:
        segment = coordinators.segment(topic, DAMAGED)
        shutil.copyfile(tmp_path / "sound" / segment.relative_to(node.data), segment)
    start_as(coordinators, "kraftd")
    for topic in TOPICS:
        assert coordinators.settled(topic, DAMAGED) == (0, STEPS), topic
    assert '"level":"error"' not in node.log_text()

    # Apache Kafka's coordinators check no checksums: they take what is there.
    node.kill()
    shutil.rmtree(node.data)
    shutil.copytree(tmp_path / "damaged", node.data)
    start_as(coordinators, "apache")
    assert_all_serve(coordinators)


def test_a_damaged_partition_is_cut_after_a_kill_as_by_apache_kafka(
    coordinators: CoordinatorsOnDisk, tmp_path: Path
) -> None:
    node = coordinators.node
    node.kill()
    where = {topic: flip(coordinators.segment(topic, DAMAGED)) for topic in TOPICS}
    shutil.copytree(node.data, tmp_path / "damaged")
    kinds: tuple[Kind, ...] = ("kraftd", "apache")
    for kind in kinds:
        start_as(coordinators, kind)
        for topic in TOPICS:
            for index in range(PARTITIONS):
                left = CUT[topic] if index == DAMAGED else STEPS
                assert coordinators.settled(topic, index) == (0, left), f"{topic}-{index} at {kind}"
        if kind == "kraftd":
            for topic, (position, offset) in where.items():
                segment = coordinators.segment(topic, DAMAGED)
                assert f"{segment} was cut at byte {position} (offset {offset})" in node.log_text()
        node.kill()
        shutil.rmtree(node.data)
        shutil.copytree(tmp_path / "damaged", node.data)
