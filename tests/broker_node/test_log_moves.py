"""Logs are copied to other directories of their broker, and then take the place of those before (KIP-113)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.broker_node.effects import ReplaceLog
from kraftd.log.errors import DiskFull, StorageFailure
from kraftd.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kraftd.messages.describe_log_dirs_request import DescribeLogDirsRequest
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.broker_node.harness import IDS, PATHS, BrokerHarness, records

KEY = ("t", 0)


@pytest.fixture
def harness(tmp_path: Path) -> BrokerHarness:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t", segment_bytes="1048576")
    return harness


def ask(harness: BrokerHarness, path: str, topic: str = "t", index: int = 0) -> int:
    """Ask for a move; returns the slot of the answer."""
    request = AlterReplicaLogDirsRequest(
        [AlterReplicaLogDir(path, [AlterReplicaLogDirTopic(topic, (index,))])]
    )
    return harness.client_send(ApiKey.ALTER_REPLICA_LOG_DIRS, 2, request)


def move(harness: BrokerHarness, path: str, topic: str = "t", index: int = 0) -> ErrorCode:
    found = harness.response(ask(harness, path, topic, index))
    return ErrorCode(found.results[0].partitions[0].error_code)


def other(harness: BrokerHarness) -> str:
    """The directory that does not have the log."""
    return next(path for path in PATHS if path != harness.directories.logs[KEY].parent)


def described(harness: BrokerHarness) -> list[tuple[str, int, bool]]:
    """Directory, lag and whether it is a future log, of each log of the topic."""
    answer = harness.client_ask(ApiKey.DESCRIBE_LOG_DIRS, 5, DescribeLogDirsRequest(None))
    return [
        (directory.log_dir, one.offset_lag, one.is_future_key)
        for directory in answer.results
        for topic in directory.topics
        for one in topic.partitions
    ]


def assigned(harness: BrokerHarness) -> bytes:
    image = harness.node.image
    found = image.partition(image.topic_names()["t"], 0)
    assert found is not None
    return bytes(found.directory(100))


def content(harness: BrokerHarness) -> bytes:
    return bytes(harness.read("t").records)


def restarted(harness: BrokerHarness, tmp_path: Path, disk: Any = None) -> BrokerHarness:
    """The broker after a kill, with what its disk has."""
    harness.disk.locked.clear()
    after = BrokerHarness(tmp_path, disk or harness.disk)
    after.clock.ms = harness.clock.ms + 20_000
    after.run()
    after.pass_time(20_000)
    return after


def half_moved(harness: BrokerHarness) -> tuple[str, str, bytes]:
    """Begin a move that the controller does not accept: where the log is, where it goes, and its records."""
    present, target = harness.directories.logs[KEY].parent, other(harness)
    harness.produce("t", records(5, producer_id=7, producer_epoch=0, base_sequence=0))
    harness.wire.is_cut_off = True
    assert move(harness, target) is ErrorCode.NONE
    harness.pass_time(200)
    return present, target, content(harness)


def test_a_log_moves_with_its_records_and_producers__kip113(harness: BrokerHarness) -> None:
    target = other(harness)
    first = records(3, producer_id=7, producer_epoch=0, base_sequence=0)
    assert harness.produce("t", bytearray(first)).error_code == 0
    assert harness.produce("t", records(2, producer_id=7, producer_epoch=0, base_sequence=3)).error_code == 0
    before = content(harness)
    assert move(harness, target) is ErrorCode.NONE
    harness.pass_time(3_000)
    log = harness.directories.logs[KEY]
    assert log.directory == f"{target}/t-0" and not harness.directories.futures
    assert assigned(harness) == IDS[PATHS.index(target)]
    assert described(harness) == [(target, 0, False)]
    assert content(harness) == before
    assert harness.produce("t", bytearray(first)).base_offset == 0, "a duplicate is known as such"
    assert harness.produce("t", records(1, producer_id=7, producer_epoch=0, base_sequence=5)).error_code == 0
    assert log.log_end == 6 and log.epochs.entries == [(0, 0)]


def test_records_that_come_during_a_move_are_moved_too__kip113(harness: BrokerHarness) -> None:
    target = other(harness)
    harness.produce("t", records(5))
    harness.wire.is_cut_off = True  # the controller does not accept the new directory
    move(harness, target)
    harness.pass_time(100)
    harness.produce("t", records(4))
    present = harness.directories.logs[KEY].parent
    assert sorted(described(harness)) == sorted([(present, 0, False), (target, 4, True)])
    harness.pass_time(1_000)
    assert harness.directories.logs[KEY].parent == present
    harness.wire.is_cut_off = False
    harness.pass_time(5_000)
    assert harness.directories.logs[KEY].parent == target and harness.directories.logs[KEY].log_end == 9


def test_a_move_to_the_present_directory_ends_a_move__kip113(harness: BrokerHarness) -> None:
    present, target = harness.directories.logs[KEY].parent, other(harness)
    harness.produce("t", records(5))
    harness.threads.held = []
    ask(harness, target)
    run_held(harness)
    assert KEY in harness.directories.futures
    assert move(harness, present) is ErrorCode.NONE
    assert not harness.directories.futures
    run_held(harness)
    harness.threads.held = None
    harness.pass_time(3_000)
    assert harness.directories.logs[KEY].parent == present and not harness.directories.futures
    assert described(harness) == [(present, 0, False)]
    assert harness.produce("t", records(1)).error_code == 0


def run_held(harness: BrokerHarness) -> None:
    """Let the threads do what was held back, and no more."""
    held, harness.threads.held = harness.threads.held or [], []
    for work in held:
        work()
    harness.timer.run_soon()


def error_at(harness: BrokerHarness, slot: int) -> ErrorCode | None:
    """The error of a move that was asked for; None while there is no answer."""
    found = harness.response(slot)
    return None if found is None else ErrorCode(found.results[0].partitions[0].error_code)


def test_a_thread_makes_future_logs_one_after_the_other__kip113(harness: BrokerHarness) -> None:
    harness.create_topic("u", 4)
    present = {key: log.parent for key, log in harness.directories.logs.items()}
    moved = [key for key, path in sorted(present.items()) if path == PATHS[0]]
    assert len(moved) > 1
    rows = [AlterReplicaLogDirTopic(topic, (index,)) for topic, index in moved]
    request = AlterReplicaLogDirsRequest([AlterReplicaLogDir(PATHS[1], rows)])
    harness.wire.is_cut_off = True
    harness.threads.held = []
    made: list[str] = []

    def note(operation: str, path: str) -> None:
        if "-future" in path:
            made.append(operation)

    harness.disk.fault = note
    slot = harness.client_send(ApiKey.ALTER_REPLICA_LOG_DIRS, 2, request)
    assert made == [], "the event loop makes no directory and no file"
    for count in range(len(moved)):
        assert len(harness.directories.futures) == count and harness.response(slot) is None
        run_held(harness)
    assert sorted(harness.directories.futures) == moved and made
    answer = harness.response(slot)
    assert all(not one.error_code for topic in answer.results for one in topic.partitions)


def test_a_move_that_is_cancelled_before_its_log_is_made_leaves_none__kip113(harness: BrokerHarness) -> None:
    present, target = harness.directories.logs[KEY].parent, other(harness)
    harness.threads.held = []
    slot = ask(harness, target)
    assert move(harness, present) is ErrorCode.NONE and error_at(harness, slot) is None
    run_held(harness)
    assert error_at(harness, slot) is ErrorCode.NONE and not harness.directories.futures
    harness.threads.held = None
    harness.pass_time(3_000)
    assert described(harness) == [(present, 0, False)]
    assert move(harness, target) is ErrorCode.NONE
    harness.pass_time(3_000)
    assert harness.directories.logs[KEY].parent == target


def test_the_last_of_two_moves_counts_if_neither_log_is_made_yet__kip113(harness: BrokerHarness) -> None:
    present, target = harness.directories.logs[KEY].parent, other(harness)
    harness.threads.held = []
    harness.wire.is_cut_off = True
    slots = [ask(harness, path) for path in (target, present, target)]
    run_held(harness)
    assert error_at(harness, slots[0]) is ErrorCode.NONE and not harness.directories.futures
    run_held(harness)
    assert error_at(harness, slots[2]) is ErrorCode.NONE
    assert harness.directories.futures[KEY].parent == target
    harness.threads.held, harness.wire.is_cut_off = None, False
    harness.pass_time(5_000)
    assert harness.directories.logs[KEY].parent == target and not harness.directories.futures


def test_a_topic_that_is_deleted_while_a_future_log_is_made_leaves_none__kip113(
    harness: BrokerHarness,
) -> None:
    harness.threads.held = []
    slot = ask(harness, other(harness))
    harness.delete_topic("t")
    run_held(harness)
    harness.threads.held = None
    harness.pass_time(3_000)
    assert not harness.directories.futures and not harness.directories.logs
    assert error_at(harness, slot) is ErrorCode.NONE


def test_a_stop_accounts_for_the_future_log_that_is_being_made__kip113(
    harness: BrokerHarness, tmp_path: Path
) -> None:
    target = other(harness)
    harness.produce("t", records(5))
    harness.threads.held = []
    ask(harness, target)
    harness.executor.close_files()
    run_held(harness)
    assert KEY in harness.directories.futures
    after = restarted(harness, tmp_path)
    assert after.directories.logs[KEY].parent == target, "the move goes on after a restart"


def test_a_directory_that_fails_while_a_future_log_is_made_refuses_the_move__kip858(
    harness: BrokerHarness,
) -> None:
    present, target = harness.directories.logs[KEY].parent, other(harness)
    harness.threads.held = []
    slot = ask(harness, target)
    harness.executor.logs.directories.fail(target, StorageFailure("the disk is gone"))
    run_held(harness)
    assert error_at(harness, slot) is ErrorCode.KAFKA_STORAGE_ERROR
    assert not harness.directories.futures
    harness.threads.held = None
    harness.pass_time(1_000)
    assert described(harness) == [(present, 0, False)]


def test_a_move_that_cannot_be_is_refused_as_in_kafka__kip113(harness: BrokerHarness) -> None:
    assert move(harness, "/nowhere") is ErrorCode.LOG_DIR_NOT_FOUND
    assert move(harness, PATHS[0], "unknown") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert move(harness, PATHS[0], "t", 1) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert move(harness, PATHS[0], "t" * 249) is ErrorCode.INVALID_TOPIC_EXCEPTION
    harness.create_topic("u")
    target = other(harness)
    assert harness.directories.logs["u", 0].parent == target
    for path in PATHS:
        assert move(harness, path, f"later{path[1:]}", 1) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        harness.create_topic(f"later{path[1:]}", 2)
        assert harness.directories.logs[f"later{path[1:]}", 1].parent == path
    harness.broker.cordoning.paths = frozenset({target})
    assert move(harness, target) is ErrorCode.INVALID_REPLICA_ASSIGNMENT

    def fault(operation: str, path: str) -> None:
        if path.startswith(f"{target}/"):
            raise StorageFailure(f"cannot {operation} {path}: an error of the disk. Replace it")

    harness.broker.cordoning.paths = frozenset()
    present = harness.directories.logs[KEY].parent
    harness.disk.fault = fault
    assert move(harness, target) is ErrorCode.KAFKA_STORAGE_ERROR
    assert harness.produce("t", records()).error_code == 0
    assert harness.produce("u", records()).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert move(harness, present, "u") is ErrorCode.KAFKA_STORAGE_ERROR
    harness.broker.cordoning.paths = frozenset({present})
    assert move(harness, present, "u") is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_directory_that_fails_during_a_move_takes_only_the_future_log__kip858(
    harness: BrokerHarness,
) -> None:
    present, target, _ = half_moved(harness)

    def fault(operation: str, path: str) -> None:
        if path.startswith(f"{target}/"):
            raise StorageFailure(f"cannot {operation} {path}: an error of the disk. Replace it")

    harness.disk.fault = fault
    harness.produce("t", records(2))
    harness.pass_time(2_000)
    assert target in harness.directories.offline and not harness.directories.futures
    harness.wire.is_cut_off = False
    harness.pass_time(5_000)
    assert harness.produce("t", records(1)).error_code == 0
    assert assigned(harness) == IDS[PATHS.index(present)]


def test_a_future_log_of_a_failed_directory_replaces_no_other__kip858(
    harness: BrokerHarness,
) -> None:
    present, target, _ = half_moved(harness)
    harness.directories.fail(target, StorageFailure("the disk is gone"))
    harness.executor.futures.replace(ReplaceLog(*KEY))  # the controller had accepted the new directory
    harness.timer.run_soon()
    harness.wire.is_cut_off = False
    harness.pass_time(5_000)
    assert harness.directories.logs[KEY].parent == present and not harness.executor.futures.has_any
    assert assigned(harness) == IDS[PATHS.index(present)]


def test_a_future_log_that_is_being_flushed_keeps_its_name_until_then__kip113(harness: BrokerHarness) -> None:
    half_moved(harness)
    harness.produce("t", records(2))
    harness.pass_time(1_000)
    future = harness.directories.futures[KEY]
    assert (future.log_end, future.recovery_point) == (7, 5)
    harness.threads.held = []
    harness.directories.resources.unflushed[future] = None
    harness.executor.logs.flush()
    harness.executor.futures.replace(ReplaceLog(*KEY))  # the controller had accepted the new directory
    harness.timer.run_soon()
    assert harness.directories.futures == {KEY: future}
    run_held(harness)
    assert future.recovery_point == 7
    harness.threads.held = None
    harness.wire.is_cut_off = False
    harness.pass_time(5_000)
    assert harness.directories.logs[KEY] is future and not harness.directories.offline


def test_a_move_to_a_full_disk_goes_on_when_there_is_room__kip113(harness: BrokerHarness) -> None:
    target = other(harness)
    harness.produce("t", records(5, producer_id=7, producer_epoch=0, base_sequence=0))
    before = content(harness)

    def fault(operation: str, path: str) -> None:
        if path.startswith(f"{target}/") and path.endswith(".log") and operation == "write":
            raise DiskFull(f"cannot write to {path}: no space left on device. Make room on that disk")

    harness.disk.fault = fault
    assert move(harness, target) is ErrorCode.NONE
    harness.pass_time(10_000)
    lines = [fields for _, text, fields in harness.broker_lines.all if text == "a log is not copied on"]
    assert len(lines) == 1 and KEY in harness.directories.futures
    harness.disk.fault = None
    harness.pass_time(5_000)
    assert harness.directories.logs[KEY].parent == target and not harness.directories.futures
    assert content(harness) == before
    assert set(harness.broker.replicas.get("t", 0).partition.producers.entries) == {7}  # type: ignore[union-attr]


def test_a_move_goes_on_after_a_kill__kip113(harness: BrokerHarness, tmp_path: Path) -> None:
    _, target, _ = half_moved(harness)
    harness.produce("t", records(2))
    before = content(harness)
    after = restarted(harness, tmp_path)
    assert after.directories.logs[KEY].directory == f"{target}/t-0" and content(after) == before
    assert assigned(after) == IDS[PATHS.index(target)]


def full_for_futures(operation: str, path: str) -> None:
    if "-future/" in path and operation in ("create", "write"):
        raise DiskFull(f"cannot {operation} {path}: no space left on device. Make room on that disk")


def test_a_future_log_whose_recovery_finds_no_room_waits_for_it_alone__kip113(
    harness: BrokerHarness, tmp_path: Path
) -> None:
    present, target, before = half_moved(harness)
    harness.disk.fault = full_for_futures
    after = restarted(harness, tmp_path)
    assert not after.directories.offline and not after.directories.is_loaded(target)
    assert after.directories.logs[KEY].parent == present and content(after) == before
    (line,) = [fields for _, text, fields in after.broker_lines.all if text.startswith("the disk is full")]
    assert (line["directory"], line["logs"]) == (target, 1)
    after.create_topic("u", 2)
    assert not any(after.produce("u", records(), index=n).error_code for n in range(2)), "the others go on"
    assert move(after, target) is ErrorCode.KAFKA_STORAGE_ERROR, "it waits"
    after.disk.fault = None
    after.pass_time(5_000)
    assert after.directories.logs[KEY].parent == target and content(after) == before
    assert after.directories.is_loaded(target) and not after.executor.futures.has_any
    assert set(after.broker.replicas.get(*KEY).partition.producers.entries) == {7}  # type: ignore[union-attr]


@pytest.mark.parametrize("how", ["stays", "deleted", "while it is opened"])
def test_a_future_log_that_waits_for_room_can_be_given_up__kip113(
    harness: BrokerHarness, tmp_path: Path, how: str
) -> None:
    present, _, before = half_moved(harness)
    harness.disk.fault = full_for_futures
    after = restarted(harness, tmp_path)
    if how == "deleted":
        after.delete_topic("t")
    elif how == "while it is opened":
        after.threads.held = []
        after.pass_time(1_000)
        assert move(after, present) is ErrorCode.NONE
        after.disk.fault = None
        run_held(after)
        after.threads.held = None
    else:
        assert move(after, present) is ErrorCode.NONE
    after.disk.fault = None
    after.pass_time(70_000)
    assert not after.executor.futures.has_any
    assert not [name for path in PATHS for name in after.disk.list_others(path) if "future" in name]
    if how != "deleted":
        assert after.directories.logs[KEY].parent == present and content(after) == before
    assert all(map(after.directories.is_loaded, PATHS))


def test_a_log_that_is_half_replaced_waits_for_room_in_its_new_place__kip113(
    harness: BrokerHarness, tmp_path: Path
) -> None:
    """The process ended while a future log took the place of the present one: no other has its records."""
    _, target, before = half_moved(harness)
    harness.wire.is_cut_off = False
    harness.pass_time(5_000)
    assert assigned(harness) == IDS[PATHS.index(target)]
    harness.executor.close_files()
    harness.disk.remove(f"{target}/.kafka_cleanshutdown")
    harness.disk.rename(f"{target}/t-0", f"{target}/t-0.{'f' * 32}-future")
    harness.disk.fault = full_for_futures
    after = restarted(harness, tmp_path)
    assert after.produce("t", records()).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    after.disk.fault = None
    after.pass_time(5_000)
    assert after.directories.logs[KEY].directory == f"{target}/t-0" and content(after) == before
    assert after.produce("t", records()).base_offset == 5


class Killed(BaseException):
    """The process ends, in the middle of a step."""


def test_a_kill_at_any_operation_of_a_move_loses_nothing__kip113(tmp_path: Path) -> None:
    """The log is in one of both directories, with all of its records, and then in the one that was asked for.
    What was written is there after a kill, in the order of the operations.
    """
    operations, number = 0, -1
    while number < operations:
        harness = BrokerHarness(tmp_path).run()
        harness.create_topic("t")
        target = other(harness)
        harness.produce("t", records(3, producer_id=7, producer_epoch=0, base_sequence=0))
        before = content(harness)
        done: list[str] = []

        def fault(operation: str, path: str, done: list[str] = done, number: int = number) -> None:
            if path.startswith(PATHS):
                done.append(operation)
                if len(done) - 1 == number:
                    raise Killed(f"{operation} {path}")

        harness.disk.fault = fault
        try:
            move(harness, target)
            harness.pass_time(3_000)
            assert number in (-1, len(done)) and harness.directories.logs[KEY].parent == target
        except Killed:
            harness.disk.fault = None
            after = restarted(harness, tmp_path)
            assert content(after) == before, done
            move(after, target)
            after.pass_time(3_000)
            assert after.directories.logs[KEY].parent == target and not after.directories.futures, done
            assert content(after) == before
        if number < 0:
            operations = len(done)
            assert done.count("rename") >= 2
        number += 1
