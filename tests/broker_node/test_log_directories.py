"""DescribeLogDirs of a broker: its directories, their disks, and the logs in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import pytest

from kraftd.answers.effects import MetadataMoved, StopRequested
from kraftd.broker_node.partitions.replicas import Hosted, Replicas
from kraftd.ground.pace import at_once
from kraftd.log.errors import StorageFailure
from kraftd.log.offset_checkpoint import HIGH_WATERMARKS, decode_offsets
from kraftd.messages.describe_log_dirs_request import DescribableLogDirTopic, DescribeLogDirsRequest
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.broker_node.harness import PATHS, BrokerHarness, records


@pytest.fixture
def harness(tmp_path: Path) -> BrokerHarness:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t", 4)
    harness.create_topic("u", 2)
    return harness


def describe(harness: BrokerHarness, topics: list[DescribableLogDirTopic] | None, version: int = 5) -> Any:
    return harness.client_ask(ApiKey.DESCRIBE_LOG_DIRS, version, DescribeLogDirsRequest(topics))


def logs(answer: Any) -> list[tuple[str, int]]:
    return sorted(
        (topic.name, one.partition_index)
        for directory in answer.results
        for topic in directory.topics
        for one in topic.partitions
    )


@pytest.mark.parametrize("version", range(1, 6))
def test_all_logs_are_described_with_their_sizes(harness: BrokerHarness, version: int) -> None:
    batch = records(3)
    harness.produce("t", batch, index=2)
    answer = describe(harness, None, version)
    assert answer.error_code == 0
    assert [one.log_dir for one in answer.results] == list(PATHS)
    assert logs(answer) == [("t", 0), ("t", 1), ("t", 2), ("t", 3), ("u", 0), ("u", 1)]
    sizes = {
        (topic.name, one.partition_index): (one.partition_size, one.offset_lag, one.is_future_key)
        for directory in answer.results
        for topic in directory.topics
        for one in topic.partitions
    }
    assert sizes["t", 2] == (len(batch), 0, False) and sizes["t", 0] == (0, 0, False)
    total, usable = harness.disk.space_bytes(PATHS[0])
    known = (total, usable, False) if version >= 4 else (-1, -1, False)
    assert [(one.total_bytes, one.usable_bytes, one.is_cordoned) for one in answer.results] == [known] * 2


def test_only_the_partitions_that_are_named_are_described(harness: BrokerHarness) -> None:
    named = [DescribableLogDirTopic("t", (1, 3, 9)), DescribableLogDirTopic("unknown", (0,))]
    answer = describe(harness, named)
    assert logs(answer) == [("t", 1), ("t", 3)]
    assert [one.error_code for one in answer.results] == [0, 0]
    assert logs(describe(harness, [])) == []


def test_a_directory_that_failed_is_named_with_its_error(harness: BrokerHarness) -> None:
    kept = sorted(key for key, log in harness.directories.logs.items() if log.parent == PATHS[0])
    lost = next(key for key, log in harness.directories.logs.items() if log.parent == PATHS[1])

    def fault(operation: str, path: str) -> None:
        if path.startswith(f"{PATHS[1]}/"):
            raise StorageFailure(f"cannot {operation} {path}: an error of the disk. Replace it")

    harness.disk.fault = fault
    harness.produce(lost[0], records(), index=lost[1])
    first, second = describe(harness, None).results
    assert not first.error_code and logs(describe(harness, None)) == kept
    assert (second.error_code, second.topics, second.total_bytes) == (ErrorCode.KAFKA_STORAGE_ERROR, [], -1)


def test_logs_of_a_deleted_topic_are_gone(harness: BrokerHarness) -> None:
    harness.delete_topic("t")
    assert logs(describe(harness, None)) == [("u", 0), ("u", 1)]


def test_a_log_of_no_hosted_partition_is_set_aside_at_a_start(harness: BrokerHarness, tmp_path: Path) -> None:
    """As when the metadata was restored from a backup, or the log is from another broker."""
    kept, stray = records(3), records(2)
    harness.produce("t", kept)
    harness.pass_time(1_000)
    harness.directories.create("unknown", 0, b"\x09" * 16, harness.clock.ms)
    former = harness.directories.logs["t", 1]
    former.topic_id = None
    former.assign_topic_id(b"\x08" * 16)
    former.append([memoryview(stray)], [], harness.clock.ms)
    harness.executor.close_files()
    harness.disk.locked.clear()
    after = BrokerHarness(tmp_path, harness.disk)
    after.clock.ms = harness.clock.ms + 20_000
    after.run()
    after.pass_time(20_000)
    named = [name for path in PATHS for name in after.disk.list_others(path) if name.endswith("-stray")]
    assert sorted(name.split(".")[0] for name in named) == ["t-1", "unknown-0"]
    assert after.broker_lines.texts().count("a log was set aside: this broker does not host it") == 2
    assert len(after.read("t").records) == len(kept) and not after.read("t", index=1).records


def test_a_broker_that_stops_before_it_is_caught_up_sets_no_log_aside(
    harness: BrokerHarness, tmp_path: Path
) -> None:
    """What it has replayed so far may be older than the topics of its logs."""
    harness.directories.create("unknown", 0, b"\x09" * 16, harness.clock.ms)
    harness.executor.close_files()
    harness.disk.locked.clear()
    after = BrokerHarness(tmp_path, harness.disk)
    after.clock.ms = harness.clock.ms + 20_000
    after.start()
    after.executor.start()
    after.broker_step(StopRequested())
    after.pass_time(1_000)
    after.broker_step(MetadataMoved())
    after.pass_time(1_000)
    assert not [name for path in PATHS for name in after.disk.list_others(path) if name.endswith("-stray")]


def test_a_log_without_a_topic_id_is_set_aside_at_a_start(harness: BrokerHarness, tmp_path: Path) -> None:
    """Kafka writes the id before the first record, so it takes such a log for one without records."""
    harness.produce("t", records(3))
    harness.pass_time(1_000)
    path = harness.directories.logs["t", 0].directory
    harness.executor.close_files()
    harness.disk.remove(f"{path}/partition.metadata")
    harness.disk.locked.clear()
    after = BrokerHarness(tmp_path, harness.disk)
    after.clock.ms = harness.clock.ms + 20_000
    after.run()
    after.pass_time(20_000)
    named = [name for at in PATHS for name in after.disk.list_others(at) if name.endswith("-stray")]
    assert [name.split(".")[0] for name in named] == ["t-0"]
    assert not after.read("t").records
    assert after.produce("t", records()).base_offset == 0


def test_logs_without_records_cost_no_sync(tmp_path: Path) -> None:
    """Thousands of new partitions would wait for the disk at their creation, and at the stop."""
    harness = BrokerHarness(tmp_path).run()
    steps: list[tuple[str, str]] = []
    harness.disk.fault = lambda operation, path: steps.append((operation, path))
    harness.create_topic("t", 40)
    harness.executor.close_files()
    of_logs = [(operation, path) for operation, path in steps if "/t-" in path]
    written = [path for operation, path in steps if operation == "rename" and "recovery-point" in path]
    assert len(of_logs) > 40 * 4 and "sync" not in {operation for operation, _ in of_logs}
    assert len(written) <= len(PATHS)
    harness.disk.fault = None
    harness.disk.locked.clear()
    after = BrokerHarness(tmp_path, harness.disk)
    after.clock.ms = harness.clock.ms + 20_000
    after.run()
    after.pass_time(20_000)
    assert after.produce("t", records(), index=39).error_code == 0


def test_high_watermarks_are_looked_for_among_open_logs_only(
    harness: BrokerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Very many logs are made one after the other: meanwhile a look at all partitions would be long."""
    harness.produce("t", records(3), index=1)
    harness.threads.held = []
    harness.create_topic("v", 50)
    looked: list[tuple[str, int]] = []
    get = Replicas.get

    def listed(replicas: Replicas) -> NoReturn:
        raise AssertionError("all partitions are looked at")

    def noted(replicas: Replicas, topic: str, partition: int) -> Hosted | None:
        looked.append((topic, partition))
        return get(replicas, topic, partition)

    monkeypatch.setattr(Replicas, "__iter__", listed)
    monkeypatch.setattr(Replicas, "get", noted)
    harness.threads.held = None
    keys = [(one.topic, one.index) for one in harness.broker.replicas.moved]
    at_once(harness.executor.logs.checkpoint_high_watermarks(keys))
    assert sorted(set(looked)) == sorted(harness.directories.logs) and ("v", 49) not in looked
    harness.timer.run_soon()
    path = harness.directories.logs["t", 1].parent
    found = decode_offsets(harness.disk.read_bytes(f"{path}/{HIGH_WATERMARKS}"))
    assert dict(found)["t", 1] == 3


def test_the_checkpoint_has_each_move_of_a_high_watermark_and_no_deleted_topic(
    harness: BrokerHarness,
) -> None:
    def written() -> dict[tuple[str, int], int]:
        at_once(harness.executor._checkpoint_high_watermarks())
        harness.timer.run_soon()
        found: dict[tuple[str, int], int] = {}
        for path in PATHS:
            found |= decode_offsets(harness.disk.read_bytes(f"{path}/{HIGH_WATERMARKS}"))
        return found

    every = [*(("t", index) for index in range(4)), ("u", 0), ("u", 1)]
    expected = dict.fromkeys(every, 0)
    assert written() == expected
    for count in (3, 6):
        harness.produce("t", records(3), index=1)
        assert written() == expected | {("t", 1): count}
    harness.delete_topic("u")
    assert written() == {("t", 0): 0, ("t", 1): 6, ("t", 2): 0, ("t", 3): 0}
    assert not harness.broker.replicas.moved
