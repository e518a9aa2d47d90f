"""A broker whose disks, controller or clients fail: what else it serves, and that nothing stays behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kraftd.broker_node.lifecycle import ANOTHER_PROCESS
from kraftd.log.errors import DiskFull, StorageFailure
from kraftd.log.memory_disk import MemoryDisk
from kraftd.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraftd.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.metadata.state import PartitionState
from kraftd.requests.events import ConnectionClosed
from kraftd.types import DIRECTORY_LOST
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.broker_node.harness import IDS, PATHS, BrokerHarness, records
from tests.log.data.logs import append


@pytest.fixture
def harness(tmp_path: Path) -> BrokerHarness:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t", 4)
    return harness


def failing(path: str) -> Callable[[str, str], None]:
    def fault(operation: str, at: str) -> None:
        if at.startswith(f"{path}/"):
            raise StorageFailure(f"cannot {operation} {at}: an error of the disk. Replace it")

    return fault


def full_for(name: str) -> Callable[[str, str], None]:
    """A disk without room for some files."""

    def fault(operation: str, at: str) -> None:
        if name in at and operation in ("create", "write"):
            raise DiskFull(f"cannot {operation} {at}: no space left on device. Make room on that disk")

    return fault


def in_directory(harness: BrokerHarness, path: str) -> list[int]:
    """The partitions of t whose logs are in a log directory."""
    return sorted(index for (_, index), log in harness.directories.logs.items() if log.parent == path)


def test_a_directory_that_fails_takes_its_partitions_alone(harness: BrokerHarness) -> None:
    lost, kept = in_directory(harness, PATHS[1]), in_directory(harness, PATHS[0])
    assert lost and kept
    parked = harness.client_send(ApiKey.FETCH, 12, harness.fetch_request("t", {lost[0]: 0}))
    harness.disk.fault = failing(PATHS[1])
    answer = harness.produce("t", records(), index=lost[0])
    assert (answer.error_code, answer.base_offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
    (partition,) = harness.response(parked).responses[0].partitions
    assert partition.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    for index in lost:
        assert harness.produce("t", records(), index=index).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert harness.read("t", index=index).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    for index in kept:
        assert harness.produce("t", records(), index=index).base_offset == 0
    assert not harness.failures
    harness.pass_time(5_000)  # a heartbeat names the directory, and the controller elects no leader there
    image = harness.node.image
    states = [image.partition(image.topic_names()["t"], n) for n in range(4)]
    assert [n for n, state in enumerate(states) if state is not None and state.leader < 0] == lost
    assert harness.produce("t", records(), index=kept[0]).base_offset == 1


def test_the_controller_learns_the_directory_of_each_log__kip858(harness: BrokerHarness) -> None:
    image, directories = harness.node.image, harness.directories
    for index in range(4):
        state = image.partition(image.topic_names()["t"], index)
        assert state is not None
        assert state.directory(100) == directories.id_of(directories.logs["t", index])
    assert "0 to be sent" in repr(harness.broker.directory_assignments)


def test_a_directory_that_fails_for_a_new_log_takes_its_partitions_with_it(harness: BrokerHarness) -> None:
    lost = in_directory(harness, PATHS[1])
    harness.disk.fault = failing(PATHS[1])
    harness.create_topic("u", 4)
    for index in lost:
        assert harness.produce("t", records(), index=index).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert [harness.produce("u", records(), index=n).error_code for n in range(4)] == [0] * 4
    lines = [fields for _, text, fields in harness.broker_lines.all if text == "a log directory is offline"]
    assert [line["directory"] for line in lines] == [PATHS[1]] and "Replace it" in lines[0]["error"]
    harness.disk.fault = failing(f"{PATHS[0]}/v-0")
    harness.create_topic("v")
    assert isinstance(harness.failures[0], StorageFailure)


def test_a_directory_that_fails_at_a_start_is_offline(harness: BrokerHarness, tmp_path: Path) -> None:
    harness.executor.close_files()
    harness.disk.locked.clear()
    harness.disk.fault = failing(PATHS[1])
    after = BrokerHarness(tmp_path, harness.disk)
    after.clock.ms = harness.clock.ms + 20_000
    after.run()
    after.pass_time(20_000)
    kept = in_directory(after, PATHS[0])
    assert kept and [after.produce("t", records(), index=n).error_code for n in kept] == [0] * len(kept)
    assert after.broker.lifecycle.offline_directories == (IDS[1],)
    image = after.node.image
    states = [image.partition(image.topic_names()["t"], n) for n in range(4)]
    assert [n for n, state in enumerate(states) if state is not None and state.leader >= 0] == kept


def test_the_process_ends_without_a_directory(harness: BrokerHarness) -> None:
    harness.disk.fault = failing(PATHS[1])
    harness.produce("t", records(), index=in_directory(harness, PATHS[1])[0])
    assert not harness.failures
    harness.disk.fault = failing(PATHS[0])
    harness.produce("t", records(), index=in_directory(harness, PATHS[0])[0])
    assert isinstance(harness.failures[0], StorageFailure)


def test_a_full_disk_refuses_and_takes_records_once_there_is_room(harness: BrokerHarness) -> None:
    disk = harness.disk
    total, usable = disk.space_bytes("/data")
    disk.capacity_bytes = total - usable
    assert harness.produce("t", records()).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    batch = records(2, producer_id=7, producer_epoch=0, base_sequence=0)
    assert harness.produce("t", batch, acks=-1).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    (told,) = [fields for level, _, fields in harness.broker_lines.all if level == "error"]
    assert (told["partition"], told["free_bytes"]) == ("t-0", 0), "one line a minute, not one a write"
    disk.capacity_bytes = None
    assert harness.produce("t", batch, acks=-1).base_offset == 0
    assert not harness.failures and not harness.directories.offline


def test_partitions_that_a_full_disk_did_not_take_serve_once_there_is_room(harness: BrokerHarness) -> None:
    disk = harness.disk
    disk.fault = full_for("/u-")
    harness.create_topic("u", 2)
    for index in range(2):
        assert harness.produce("u", records(), index=index).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert not harness.failures and not harness.directories.offline
    disk.fault = None
    harness.pass_time(2_000)
    for index in range(2):
        assert harness.produce("u", records(), index=index).base_offset == 0
    assert harness.broker.replicas.opening_count == 0


def test_a_partition_that_waited_for_room_and_is_deleted_leaves_nothing(harness: BrokerHarness) -> None:
    harness.disk.fault = full_for("/u-")
    harness.create_topic("u")
    harness.delete_topic("u")
    harness.disk.fault = None
    harness.pass_time(2_000)
    assert ("u", 0) not in harness.directories.logs


def test_what_follows_a_failed_append_in_the_same_step_leaves_no_gap(harness: BrokerHarness) -> None:
    """Two Produces that arrive together: the disk has room only for the second."""
    total, usable = harness.disk.space_bytes("/data")
    harness.disk.capacity_bytes = total - usable + 200
    requests = [harness.produce_request("t", {0: records(count)}) for count in (100, 1)]
    first = harness.client_send(ApiKey.PRODUCE, 12, *requests)
    parts = [harness.response(first + n).responses[0].partition_responses[0] for n in range(2)]
    assert [one.error_code for one in parts] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
    harness.disk.capacity_bytes = None
    assert harness.produce("t", records(3)).base_offset == 0
    assert harness.directories.logs["t", 0].log_end == 3
    assert harness.read("t").high_watermark == 3


def killed(before: BrokerHarness) -> MemoryDisk:
    """The disk after a kill of the process: no mark of a clean stop is on it."""
    before.executor.close_files()
    for path in PATHS:
        before.disk.remove(f"{path}/.kafka_cleanshutdown")
    before.disk.locked.clear()
    return before.disk


def restarted_with_damage(before: BrokerHarness, tmp_path: Path, *indexes: int) -> BrokerHarness:
    """The next process, after a kill and a flipped bit in the first batch of these partitions."""
    known = before.directories
    found = [known.logs.get(("t", index)) or known.damaged["t", index] for index in indexes]
    directories = [one.directory for one in found]
    disk = killed(before)
    for directory in directories:
        segment = next(one for one in disk.paths() if one.startswith(directory) and one.endswith(".log"))
        disk.flip_bit(segment, 100, 1)
    after = BrokerHarness(tmp_path, disk)
    after.clock.ms = before.clock.ms + 20_000
    after.run()
    after.pass_time(20_000)
    return after


def test_a_damaged_log_stays_offline_and_the_others_serve(tmp_path: Path) -> None:
    before = BrokerHarness(tmp_path).run()
    before.create_topic("t", 2)
    for index in range(2):
        before.produce("t", records(50), index=index)
    after = restarted_with_damage(before, tmp_path, 0)
    assert after.broker.lifecycle.broker_epoch > 0
    assert after.produce("t", records(), index=0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert after.read("t", index=0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert after.produce("t", records(), index=1).base_offset == 50


def test_a_damaged_log_is_reported_lost_until_a_start_opens_it(tmp_path: Path) -> None:
    def partition(harness: BrokerHarness) -> PartitionState:
        image = harness.view.image
        state = image.partition(image.topic_names()["t"], 0)
        assert state is not None
        return state

    before = BrokerHarness(tmp_path).run()
    before.create_topic("t")
    before.produce("t", records(50))
    after = restarted_with_damage(before, tmp_path, 0)
    assert (partition(after).leader, partition(after).directories) == (-1, (DIRECTORY_LOST,))
    again = restarted_with_damage(after, tmp_path, 0)  # the bit flips back
    assert partition(again).leader == again.view.node_id
    assert partition(again).directories[0] in IDS
    assert again.produce("t", records()).base_offset == 50


def test_damaged_logs_of_a_former_topic_keep_no_partition_offline(tmp_path: Path) -> None:
    before = BrokerHarness(tmp_path).run()
    before.create_topic("t", 3)
    for index in range(3):
        before.produce("t", records(50), index=index)
    for index in range(2):  # as if the topic had been deleted and made again while the broker was down
        former = before.directories.logs["t", index]
        former.topic_id = None
        former.assign_topic_id(b"\x08" * 16)
    # The present topic has a log in the other directory too, if the former one was offline meanwhile.
    directories = before.directories
    topic_id, present = directories.logs["t", 2].topic_id, directories.logs.pop(("t", 1)).parent
    other = IDS[1 - PATHS.index(present)]
    append(directories.create("t", 1, topic_id, before.clock.ms, directory_id=other), records(3))
    directories.logs["t", 1] = former
    after = restarted_with_damage(before, tmp_path, 0, 1)
    assert after.produce("t", records(), index=0).base_offset == 0
    assert after.produce("t", records(), index=1).base_offset == 3
    assert after.produce("t", records(), index=2).base_offset == 50
    named = [name for path in PATHS for name in after.disk.list_others(path) if name.endswith("-stray")]
    assert sorted(name.split(".")[0] for name in named) == ["t-0", "t-1"]


def test_a_topic_with_a_damaged_log_is_deleted_and_made_again(tmp_path: Path) -> None:
    before = BrokerHarness(tmp_path).run()
    before.create_topic("t")
    before.produce("t", records(50))
    after = restarted_with_damage(before, tmp_path, 0)
    assert after.produce("t", records()).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    after.delete_topic("t")
    after.create_topic("t")
    assert after.produce("t", records()).base_offset == 0
    after.pass_time(70_000)
    assert [name for path in PATHS for name in after.disk.list_others(path) if name.startswith("t-0.")] == []


def test_a_log_whose_recovery_finds_no_room_is_opened_once_there_is_some(tmp_path: Path) -> None:
    before = BrokerHarness(tmp_path).run()
    before.create_topic("t", 2)
    batch = records(50, producer_id=7, producer_epoch=0, base_sequence=0)
    for index in range(2):
        before.produce("t", batch, index=index)
    path = before.directories.logs["t", 0].parent
    disk = killed(before)

    def started(ms: int) -> BrokerHarness:
        after = BrokerHarness(tmp_path, disk)
        after.clock.ms = before.clock.ms + ms
        after.run()
        after.pass_time(20_000)
        return after

    disk.fault = full_for("/t-0/")
    full = started(20_000)
    assert not full.failures and not full.directories.offline
    assert full.produce("t", batch, index=0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert full.produce("t", batch, index=1).base_offset == 0
    full.pass_time(10_000)
    told = [(text, fields) for _, text, fields in full.broker_lines.all if "t-0" in str(fields)]
    assert [text for text, _ in told] == ["a partition stays offline"], "once, and not with each try"
    (found,) = [fields for _, text, fields in full.broker_lines.all if text.startswith("the disk is full")]
    assert (found["directory"], found["logs"]) == (path, 1)
    assert 0 < found["needed_bytes"] < found["free_bytes"]
    assert path in full.executor.logs.full_directories.ages_ms()
    assert full.executor.logs.full_directories.rooms()[path].needed_bytes == found["needed_bytes"]
    for _ in full.directories.close(full.clock.ms, 1, lambda key: None):
        pass
    assert [disk.exists(f"{one}/.kafka_cleanshutdown") for one in PATHS] == [one != path for one in PATHS]
    disk.locked.clear()

    again = started(60_000)
    assert again.produce("t", batch, index=0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    disk.fault = None
    again.pass_time(2_000)
    assert again.produce("t", batch, index=0).base_offset == 0, "a repetition, for its producer is known"
    assert again.produce("t", records(), index=0).base_offset == 50
    assert again.directories.is_loaded(path) and not again.directories.damaged
    assert again.executor.logs.full_directories.ages_ms() == {}


def test_a_log_that_waits_for_room_can_be_deleted(tmp_path: Path) -> None:
    before = BrokerHarness(tmp_path).run()
    before.create_topic("t")
    before.produce("t", records(50))
    disk = killed(before)
    disk.fault = full_for("/t-0/")
    after = BrokerHarness(tmp_path, disk)
    after.clock.ms = before.clock.ms + 20_000
    after.run()
    after.pass_time(20_000)
    assert after.produce("t", records()).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    after.delete_topic("t")
    disk.fault = None
    after.create_topic("t")
    after.pass_time(2_000)
    assert after.produce("t", records()).base_offset == 0


def test_records_and_producers_outlive_a_restart(tmp_path: Path) -> None:
    before = BrokerHarness(tmp_path).run()
    before.create_topic("t")
    batch = records(2, producer_id=7, producer_epoch=0, base_sequence=0)
    before.produce("t", batch)
    before.executor.close_files()
    before.disk.locked.clear()
    after = BrokerHarness(tmp_path, before.disk)
    after.clock.ms = before.clock.ms + 20_000
    after.run()
    after.pass_time(20_000)
    assert after.produce("t", batch).base_offset == 0
    assert after.read("t").high_watermark == 2


def test_a_repaired_directory_has_the_log_of_a_former_topic(harness: BrokerHarness, tmp_path: Path) -> None:
    index = in_directory(harness, PATHS[1])[0]
    harness.produce("t", records(3), index=index)
    harness.pass_time(1_000)
    harness.disk.fault = failing(PATHS[1])
    harness.produce("t", records(), index=index)
    harness.delete_topic("t")
    harness.create_topic("t", 4)
    batch = records(2, producer_id=7, producer_epoch=0, base_sequence=0)
    assert harness.produce("t", batch, index=index).base_offset == 0
    harness.pass_time(1_000)
    harness.executor.close_files()
    harness.disk.locked.clear()
    harness.disk.fault = None
    after = BrokerHarness(tmp_path, harness.disk)
    after.clock.ms = harness.clock.ms + 20_000
    after.run()
    after.pass_time(20_000)
    assert after.directories.logs["t", index].directory == f"{PATHS[0]}/t-{index}"
    assert after.read("t", index=index).high_watermark == 2
    assert after.produce("t", batch, index=index).base_offset == 0  # its producers are known
    assert [name for name in after.disk.list_others(PATHS[1]) if name.startswith(f"t-{index}.")]


def test_a_directory_in_which_a_log_cannot_be_deleted_is_offline(harness: BrokerHarness) -> None:
    assert in_directory(harness, PATHS[1])
    harness.disk.fault = failing(PATHS[1])
    harness.delete_topic("t")
    assert harness.broker.lifecycle.offline_directories == (IDS[1],)


# -- producer ids


def producer_id(harness: BrokerHarness, connection_id: int = 90) -> int:
    return harness.client_send(
        ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(None, 60_000), connection_id=connection_id
    )


def test_producer_ids_go_on_past_the_end_of_a_block(harness: BrokerHarness) -> None:
    given = {harness.response(producer_id(harness)).producer_id for _ in range(2_500)}
    assert len(given) == 2_500


def test_producers_wait_for_a_block_and_are_refused_without_one(harness: BrokerHarness) -> None:
    harness.wire.is_cut_off = True
    slots = [producer_id(harness) for _ in range(3)]
    harness.pass_time(29_000)
    assert not set(slots) & harness.wire.responses.keys()
    harness.pass_time(2_000)
    errors = [harness.response(slot).error_code for slot in slots]
    assert errors == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 3
    waiting = producer_id(harness)
    harness.wire.is_cut_off = False
    harness.pass_time(1_000)
    assert harness.response(waiting).error_code == 0


def test_producers_that_left_while_they_waited_leave_nothing(harness: BrokerHarness) -> None:
    harness.wire.is_cut_off = True
    for n in range(5):
        producer_id(harness, 100 + n)
        harness.broker_step(ConnectionClosed(100 + n))
    harness.wire.is_cut_off = False
    harness.pass_time(1_000)
    assert harness.response(producer_id(harness)).error_code == 0
    assert "0 producers wait" in repr(harness.broker.producer_ids)


def test_a_killed_broker_registers_within_a_second_of_its_old_sessions_end(tmp_path: Path) -> None:
    killed = BrokerHarness(tmp_path).run()
    killed.pass_time(1_000)
    killed.disk.locked.clear()
    after = BrokerHarness(tmp_path, killed.disk)
    after.clock.ms = killed.clock.ms + 500
    after.run()
    waited_ms = 0
    while after.broker.lifecycle.broker_epoch < 0:
        assert waited_ms < 20_000, "not registered"
        after.pass_time(100)
        waited_ms += 100
    refused = [
        (fields["error"], fields["remedy"])
        for _, _, fields in after.broker_lines.all
        if "again_in_ms" in fields
    ]
    assert set(refused) == {("DUPLICATE_BROKER_REGISTRATION", ANOTHER_PROCESS)}
    session_ms = after.config.broker_session_timeout_ms
    assert session_ms - 1_000 < waited_ms <= session_ms + 1_200


def test_a_new_replica_is_taken_while_a_directory_is_offline(harness: BrokerHarness) -> None:
    """It cannot have a log in the directory that failed, though its partition is older than the failure."""
    harness.unfenced(1)
    placed = CreatableTopic("w", -1, -1, [CreatableReplicaAssignment(0, (1,))])
    harness.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([placed], 30_000), 8)
    lost = in_directory(harness, PATHS[1])
    harness.disk.fault = failing(PATHS[1])
    harness.wire.is_cut_off = True  # the controller names no directory, as if there were a third
    harness.produce("t", records(), index=lost[0])
    move = ReassignableTopic("w", [ReassignablePartition(0, (1, 100))])
    answer = harness.ask(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, AlterPartitionReassignmentsRequest(topics=[move]), 8
    )
    assert not answer.responses[0].partitions[0].error_code
    harness.pass_time(100)
    assert harness.directories.logs["w", 0].parent == PATHS[0]
