"""The advertised addresses that are reported, when they are checked again, and how often that is logged."""

from __future__ import annotations

import pytest

from kraftd.host.checks.address_check import AGAIN_MS, CORRECT, PERIOD_MS, REPEAT_MS, AddressCheck, Target
from kraftd.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse, PartitionData, TopicData
from kraftd.types import ReplicaKey
from kraftd.wire.error_code import ErrorCode

OWN = Target(ReplicaKey(1, b"a" * 16), "10.0.0.1", 9093)
OTHER = Target(ReplicaKey(2, None), "fd00::2", 9093)


def answer(code: ErrorCode, top: ErrorCode = ErrorCode.NONE) -> BeginQuorumEpochResponse:
    return BeginQuorumEpochResponse(top, [TopicData("__cluster_metadata", [PartitionData(0, code, 1, 1)])])


def test_an_address_is_checked_at_once_then_rarely_and_soon_after_a_failure() -> None:
    check = AddressCheck(1)
    assert check.due([OWN, OTHER], 0) == [OWN, OTHER]
    check.answered(OWN, answer(ErrorCode.NONE), 0)
    check.failed(OTHER, "Connection refused", 0)
    assert check.due([OWN, OTHER], AGAIN_MS - 1) == []
    assert check.due([OWN, OTHER], AGAIN_MS) == [OTHER]
    check.answered(OTHER, answer(ErrorCode.NONE), AGAIN_MS)
    assert check.due([OWN, OTHER], PERIOD_MS) == [OWN]


@pytest.mark.parametrize(
    ("code", "top", "finding"),
    [
        (ErrorCode.INVALID_VOTER_KEY, ErrorCode.NONE, "another node answers there"),
        (ErrorCode.NONE, ErrorCode.INCONSISTENT_CLUSTER_ID, "a node of another cluster answers there"),
        (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NONE, ""),
        (ErrorCode.INVALID_REQUEST, ErrorCode.NONE, ""),
    ],
)
def test_an_address_of_another_node_is_reported_after_two_answers(
    code: ErrorCode, top: ErrorCode, finding: str
) -> None:
    check = AddressCheck(1)
    check.due([OWN, OTHER], 0)
    for target in (OWN, OTHER):
        check.answered(target, answer(code, top), 0)
        assert check.lines() == [] and check.report(0) == []
    for target in (OWN, OTHER):
        check.answered(target, answer(code, top), 0)
    expected = [
        f"node 1 (this node) advertises 10.0.0.1:9093, and {finding}; {CORRECT}",
        f"node 2 advertises [fd00::2]:9093, and {finding}; {CORRECT}",
    ]
    assert check.lines() == (expected if finding else [])


def test_a_wrong_address_is_logged_at_once_and_then_once_a_minute_until_it_is_right() -> None:
    check = AddressCheck(1)
    check.due([OWN], 0)
    for _ in range(3):
        check.failed(OWN, "[Errno -2] Name or service not known", 0)
    (report,) = check.report(0)
    assert (report.target, report.text, report.seen) == (OWN, "the name does not resolve", 3)
    check.failed(OWN, "speaks HTTP", REPEAT_MS - 1)
    assert check.report(REPEAT_MS - 1) == []
    assert [one.seen for one in check.report(REPEAT_MS)] == [1]
    check.answered(OWN, answer(ErrorCode.NONE), REPEAT_MS)
    for _ in range(3):
        check.failed(OWN, "closed by the other side", REPEAT_MS)  # the answer of a node with a full disk
    assert check.report(3 * REPEAT_MS) == check.lines() == []


def test_a_node_that_is_no_longer_checked_is_forgotten() -> None:
    check = AddressCheck(1)
    check.due([OWN, OTHER], 0)
    for _ in range(2):
        check.failed(OTHER, "Connection refused", 0)
    check.due([OWN], 1)
    check.failed(OTHER, "Connection refused", 1)
    check.answered(OTHER, answer(ErrorCode.NONE), 1)
    assert check.lines() == []
