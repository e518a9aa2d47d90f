"""Whether the answer for a partition is news to the reader of its slot."""

from __future__ import annotations

import pytest

from kraftd.fetch.slots import Slot
from kraftd.messages.fetch_request import FetchPartition
from kraftd.messages.fetch_response import EpochEndOffset, PartitionData
from kraftd.wire.error_code import ErrorCode
from tests.fetch.test_sessions import Server


def known_slot(high_watermark: int = 5, log_start_offset: int = 2) -> Slot:
    """A slot whose reader has got these offsets."""
    slot = Slot(Server().sessions.begin, ("a", 0), "a", bytes(16), FetchPartition(), 1)  # type: ignore[arg-type]
    assert slot.note_answer(PartitionData(0, 0, high_watermark, log_start_offset=log_start_offset), 0)
    return slot


def answer(**more: object) -> PartitionData:
    return PartitionData(0, high_watermark=5, log_start_offset=2, **more)  # type: ignore[arg-type]


def test_an_equal_answer_is_no_change_of_a_slot() -> None:
    slot = known_slot()
    assert not slot.note_answer(answer(), 0)
    assert slot.note_answer(answer(), 1)
    assert not slot.note_answer(answer(), 0)


@pytest.mark.parametrize("node_id", [0, 3])
def test_another_replica_and_a_diverging_epoch_are_news_each_time(node_id: int) -> None:
    slot = known_slot()
    for _ in range(2):
        assert slot.note_answer(answer(preferred_read_replica=node_id), 0)
        assert slot.note_answer(answer(diverging_epoch=EpochEndOffset(node_id, 7)), 0)


def test_moved_marks_are_news_once() -> None:
    slot = known_slot()
    for marks in ((6, 2), (6, 3), (5, 4)):
        moved = PartitionData(0, 0, marks[0], log_start_offset=marks[1])
        assert [slot.note_answer(moved, 0), slot.note_answer(moved, 0)] == [True, False]
        assert (slot.high_watermark, slot.log_start_offset) == marks


def test_an_error_is_news_and_so_is_its_end() -> None:
    slot = known_slot()
    failed = answer(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert [slot.note_answer(failed, 0), slot.note_answer(failed, 0), slot.note_answer(answer(), 0)] == [
        True,
        True,
        True,
    ]
    assert not slot.note_answer(answer(), 0)
