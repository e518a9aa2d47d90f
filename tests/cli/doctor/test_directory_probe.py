"""What the doctor says of the log directories that brokers describe."""

from __future__ import annotations

from collections.abc import Collection

from kraftd.cli.doctor.directory_probe import judge_described
from kraftd.cli.doctor.findings import Level
from kraftd.messages.describe_log_dirs_response import DescribeLogDirsResponse, DescribeLogDirsResult
from kraftd.wire.error_code import ErrorCode

GIB = 1 << 30


def directory(path: str, usable_bytes: int, error_code: int = 0) -> DescribeLogDirsResult:
    total = -1 if usable_bytes < 0 else 100 * GIB
    return DescribeLogDirsResult(error_code, path, [], total_bytes=total, usable_bytes=usable_bytes)


def judged(
    *results: DescribeLogDirsResult, error_code: int = 0, is_own: bool = False, full: Collection[str] = ()
) -> list[tuple[Level, str, str]]:
    answer = DescribeLogDirsResponse(error_code=error_code, results=list(results))
    found = list(judge_described(3, answer, is_own=is_own, full=full))
    assert all(one.remedy for one in found if one.is_wrong)
    return [(one.level, one.subject, one.text) for one in found]


def test_directories_with_room_are_one_line() -> None:
    text = "its log directories are online: /a (50.0 GiB free, 50%), /b (its room is not known)"
    assert judged(directory("/a", 50 * GIB), directory("/b", -1)) == [(Level.OK, "node 3", text)]


def test_offline_and_full_directories_are_problems() -> None:
    offline = directory("/a", -1, ErrorCode.KAFKA_STORAGE_ERROR)
    assert judged(offline, directory("/b", GIB >> 5), directory("/c", 50 * GIB)) == [
        (Level.PROBLEM, "node 3", "its log directory /a is offline"),
        (Level.PROBLEM, "node 3", "the disk of its /b is full: 32.0 MiB free, 0%"),
    ]


def test_a_directory_that_is_known_to_be_full_is_not_named_again() -> None:
    full = directory("/b", GIB >> 5)
    assert judged(full, is_own=True, full={"/b"}) == judged(full, full={"node 3 /b"}) == []
    assert judged(full, is_own=True, full={"node 3 /b"}) == judged(full, full={"/b"}) != []


def test_a_broker_that_describes_none_is_a_note() -> None:
    (found,) = judged(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    assert found[0] is Level.NOTE and "CLUSTER_AUTHORIZATION_FAILED" in found[2]
